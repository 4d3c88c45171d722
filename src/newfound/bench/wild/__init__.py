"""Tables as people have them: labels of any origin, uneven sizes, out-of-scope texts, K unknown.

`newfound bench wild` (`command`) cuts such tables from data sets (`sources`, `tables`), runs
methods of this package and peers on them (`runner`, `peers`), scores the answers on the unlabelled
texts (`scoring`) and appends one result line per run. `grid` renders the lines as Markdown.
"""
