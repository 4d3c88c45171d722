"""One module per table, named as the file that it is rendered to."""
