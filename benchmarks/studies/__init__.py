"""Studies that answered one question each; see README.md."""
