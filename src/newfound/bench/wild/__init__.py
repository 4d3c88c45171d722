"""Tables as people have them: labels of any origin, uneven sizes, out-of-scope texts, K unknown.

`newfound bench wild` cuts such tables from data sets (`tables`), runs methods of this package and
others on them (`methods`, `peers`), scores the answers on the unlabelled texts (`scoring`) and
appends one result line per run (`runner`).
"""
