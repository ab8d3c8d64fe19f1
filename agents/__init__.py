"""Scripts that made the shipped agents; see README.md."""
