"""Group vectors: k-means, prototypes, optimal transport, the number of categories, metrics."""
