"""Playing with people, in a browser or a terminal, and viewing recorded games."""
