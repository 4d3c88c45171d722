"""What a person reads of a category: name, keywords, typical texts, and a map of all texts."""
