"""Measurements of the project; docs/benchmarks.md holds the results."""
