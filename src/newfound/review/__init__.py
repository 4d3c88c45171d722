"""`newfound review`: a local page on which a person decides on the categories of a run."""
