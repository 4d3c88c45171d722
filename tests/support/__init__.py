"""What several tests share: small texts and tables, tiny data sets, a browser."""
