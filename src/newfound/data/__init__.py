"""Data: tables and their formats, the corpus and its checks, demo data."""
