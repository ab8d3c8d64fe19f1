"""Games and positions as JSON: written, checked, read, compared."""
