"""The losses, one file per family; each equation is one function."""
