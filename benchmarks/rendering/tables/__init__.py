"""One module per table, with the name of its page."""
