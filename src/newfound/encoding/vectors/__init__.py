"""Vectors that this package does not compute: given by the user, or from another encoder."""
