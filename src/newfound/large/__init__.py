"""Large tables: fit on a sample, and assign every text by the fitted model.

A method compares texts with each other, so its time grows faster than the table. Above `fit_texts`
texts `newfound.pipeline.discover` takes these steps:

1. Encode every text once with the frozen encoder; the vectors lie in a memory-mapped file
   (`vectors`), and checkpoints keep them. Workers may share this step (`sharing`).
2. Fold near-duplicates, and draw a sample that keeps labels and rare texts (`duplicates`,
   `sample`).
3. Fit the method on the sample, and describe the categories and draw the map with its texts.
4. Assign all texts in one pass over the vectors, block by block (`assigning`), and count the sizes
   of the categories (`result`).
"""
