"""Playing with people, in a browser, and viewing recorded games."""
