"""What every layer needs: the compiler, safe files, checks of untrusted data, threads."""
