"""Encoding: encoders, batches of tokens, feature maps and the feature cache."""
