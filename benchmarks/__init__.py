"""What the project measures; docs/benchmarks.md holds the results."""
