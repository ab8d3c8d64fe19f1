"""A suite of decisions whose choices were rolled out, by which an agent's regret is measured.

``data`` the suite and its files; ``measure`` an agent's choices and regret; ``report`` tables, the
worst decisions; ``decisions/`` the package's suites, which ``python -m benchmarks.suite`` made.
docs/suite.md explains them.
"""
