"""`make torture`: faults of many kinds, and a count of what they broke. One module per family."""
