"""The accuracy of a discovery on a user's own table: hide labels, discover, score."""
