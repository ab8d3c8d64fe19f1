"""Tools of every layer: the compiler, safe files, checks of untrusted data, threads."""
