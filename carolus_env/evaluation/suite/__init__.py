"""A suite of decisions whose choices were rolled out, by which an agent's loss is measured.

``data`` the suite and its files; ``stages`` where in a game a position is; ``choices`` what agents
choose; ``making`` new suites; ``measure`` an agent's loss; ``report`` tables, the worst decisions;
``decisions/`` the package's suites. docs/suite.md explains them.

    python -m carolus_env.evaluation.suite --players 2 --decisions 300 --out 2p.jsonl.gz
"""
