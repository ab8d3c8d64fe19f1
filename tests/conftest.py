"""How Hypothesis searches: the same examples every time, or more and new ones on demand.

``HYPOTHESIS_PROFILE=thorough`` plays 20 times as many games, other ones at every run.

What a process says when it first compiles is not said in tests: the output that they compare does
not depend on what is compiled already.
"""

import os

from hypothesis import HealthCheck, settings

from carolus_env.system import compiler

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "quick",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=40,
    suppress_health_check=SLOW,
)
settings.register_profile(
    "thorough", deadline=None, database=None, max_examples=500, suppress_health_check=SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

compiler.notice._started = 1.0  # as if it had been said
