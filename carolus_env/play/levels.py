"""How strong an opponent should be: easy, medium or hard, and the agent that plays so.

The agents are rungs of the ladder (docs/ladder.md), where `planner` is rated 0: the rung nearest to
-1,000, the one nearest to -300, and the strongest. A test compares them with the ratings.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Level(NamedTuple):
    """A level of strength.

    Attributes:
        name: of the level.
        about: in a few words.
        agents: the spec of the agent that plays so, by number of players.
    """

    name: str
    about: str
    agents: dict[int, str]


LEVELS: Final = (
    Level(
        "easy",
        "plans its turns, but plays many of them at random",
        {2: "planner:errors=0.33", 3: "planner:errors=0.52", 4: "planner:errors=0.56"},
    ),
    Level(
        "medium",
        "plans its turns, and errs now and then",
        {2: "planner:errors=0.09", 3: "planner:errors=0.15", 4: "planner:errors=0.14"},
    ),
    Level(
        "hard",
        "searches ahead with a trained network: the strongest of the ladder",
        {2: "search:2p,sims=100", 3: "search:3p,sims=100", 4: "search:4p,sims=100"},
    ),
)
"""From the weakest to the strongest."""

RATINGS: Final = {"easy": -1000, "medium": -300}
"""What the rating of a level should be; of the last level, the highest."""
