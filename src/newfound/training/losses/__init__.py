"""Losses, one module per family and one function per equation."""
