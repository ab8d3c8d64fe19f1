"""The memory of the search: its settings and trees, as the kernels of `tree` take them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import MAX_TEAMS
from carolus_env.engine.state import STATE, States
from carolus_env.planning.plans import PlanScratch
from carolus_env.system.arrays import Int
from carolus_env.system.compiler import kernel

NODE: Final = np.dtype(
    [
        ("key", "<u8"),  # identifies a position among those after one choice
        ("sibling", "<i4"),  # the next of these positions, 0: none
        ("first_edge", "<i4"),
        ("edges", "<i4"),  # number of choices
        ("visits", "<i4"),
        ("team", "i1"),  # the team to move
    ]
)
EDGE: Final = np.dtype(
    [
        ("plan", "<i8"),  # see `plans.pack`
        ("prior", "<f8"),  # sums to 1 over the edges of a node
        ("value", "<f8", (MAX_TEAMS,)),  # sum over the visits
        ("first_value", "<f8"),  # to the team to move, before the first visit
        ("visits", "<i4"),
        ("child", "<i4"),  # the first position after it, 0: none yet
    ]
)
LONGEST: Final = 200
"""Maximum number of choices on a path."""
_USUAL_WIDTH: Final = 32  # choices per position that there is memory for, on average

CHANCES: Final = ("open", "explicit")
LEAVES: Final = ("planner", "playout")
CROWNS: Final = ("planner", "value")
OPEN, EXPLICIT = range(len(CHANCES))
BY_PLANNER, BY_VALUE = range(len(CROWNS))
PLANNER, PLAYOUT, CHOICES = range(len(LEAVES) + 1)
# `CHOICES`: the position after each choice of the leaf is valued, by a network or an `Evaluator`.


class Settings(NamedTuple):
    """Search options, as numbers."""

    chance: int
    """`OPEN` or `EXPLICIT`."""
    leaf: int
    """`PLANNER`, `PLAYOUT` or `CHOICES`."""
    crowns: int
    """Chooser of a roll's crowns inside the tree: `BY_PLANNER` or `BY_VALUE`."""
    root: int
    """Allowed destinations of paladins in plans at the root: an index into `plans.WIDTHS`."""
    plans: int
    """Allowed destinations in plans of later turns."""
    root_width: int
    """Maximum number of plans considered at the root."""
    width: int
    """Maximum number of plans considered in later turns."""
    exploration: float
    """The factor c of PUCT."""
    temperature: float
    """Temperature of the priors."""


class Forest(NamedTuple):
    """Memory for T searches side by side, a tree for each game; or one of them, see `tree_of`.

    Of a tree the arrays lack the first axis, but ``leaf``, ``after`` and ``listed``: those have 1.
    """

    nodes: npt.NDArray[np.void]
    """``(T, nodes)`` NODE; the first is the root."""
    edges: npt.NDArray[np.void]
    """``(T, edges)`` EDGE; those of a node stand side by side."""
    used: npt.NDArray[np.int64]
    """``(T, 2)`` int64: the numbers of nodes and of edges in use."""
    path: npt.NDArray[np.int64]
    """``(T, 1 + LONGEST)`` int64: the length of the simulation's path, then its edges."""
    leaf: States
    """``(T,)`` STATE: the position that the simulation has come to."""
    after: States
    """``(T,)`` STATE, scratch: the position after a choice."""
    chances: npt.NDArray[np.float64]
    """``(T, 3)`` float64: the value of the leaf, each team's win probability."""
    listed: npt.NDArray[np.int64]
    """``(T,)`` int64: the number of choices at the leaf."""
    plans: npt.NDArray[np.int64]
    """``(T, width)`` int64: these choices, see `plans.pack`."""
    values: npt.NDArray[np.float64]
    """``(T, width)`` float64: their logits; of plans, the log odds of winning."""
    outcomes: npt.NDArray[np.float64]
    """``(T, width, 3)`` float64: with `CHOICES`, each team's win probability after each choice."""
    scratch: PlanScratch
    """Scratch to plan turns, reused for each tree."""

    @classmethod
    def new(cls, trees: int, nodes: int, width: int) -> Forest:
        """Allocate memory.

        Args:
            trees: the number of trees.
            nodes: the positions that fit into a tree. When it is full, simulations still value and
                count their leaves, but do not add them.
            width: most choices considered in a position.
        """
        return cls(
            np.zeros((trees, nodes), NODE),
            np.zeros((trees, nodes * min(width, _USUAL_WIDTH) + width), EDGE),
            np.zeros((trees, 2), np.int64),
            np.zeros((trees, LONGEST + 1), np.int64),
            np.zeros(trees, STATE),
            np.zeros(trees, STATE),
            np.zeros((trees, MAX_TEAMS)),
            np.zeros(trees, np.int64),
            np.zeros((trees, width), np.int64),
            np.zeros((trees, width)),
            np.zeros((trees, width, MAX_TEAMS)),
            PlanScratch.new(),
        )


@kernel
def tree_of(forest: Forest, g: Int) -> Forest:
    """Return the part of game ``g``, as views; the scratch is shared."""
    return Forest(
        forest.nodes[g],
        forest.edges[g],
        forest.used[g],
        forest.path[g],
        forest.leaf[g : g + 1],
        forest.after[g : g + 1],
        forest.chances[g],
        forest.listed[g : g + 1],
        forest.plans[g],
        forest.values[g],
        forest.outcomes[g],
        forest.scratch,
    )
