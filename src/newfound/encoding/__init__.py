"""From texts to vectors: encoders, batches, feature maps, the cache of what frozen layers give."""
