"""How the shipped agents were made; see README.md."""
