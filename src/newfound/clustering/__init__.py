"""Clustering: k-means, prototypes, optimal transport, number of categories, metrics."""
