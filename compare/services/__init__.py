"""Use cases with the database. See README.md."""
