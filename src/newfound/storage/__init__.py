"""Results and models on disk, and export to other tools."""
