"""Descriptions of categories: names, keywords, typical texts, and a 2-D map of all texts."""
