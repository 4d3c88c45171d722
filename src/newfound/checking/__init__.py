"""How good a discovery is on a user's own table: hide some labels, discover, score what returns."""
