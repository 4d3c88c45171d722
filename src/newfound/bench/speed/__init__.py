"""`newfound bench speed`: seconds and memory of encoding, training, k-means and whole commands."""
