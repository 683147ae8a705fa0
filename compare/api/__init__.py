"""The HTTP API, version 1. See README.md."""
