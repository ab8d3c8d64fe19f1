"""Meaning of action numbers, for kernels; `rules.action_parts` is the same for Python.

The groups of numbers are `rules.ACTION_GROUPS`. Each function below takes an action of its group.
"""

from __future__ import annotations

from carolus_env.engine.rules import (
    DESTINATIONS,
    FIRST_CROWN,
    FIRST_DISC,
    FIRST_MOVE,
    FIRST_PLACE,
)
from carolus_env.system.arrays import Int
from carolus_env.system.compiler import kernel


@kernel
def disc_of(action: Int) -> Int:
    """Return the number of the disc played, 1 to 5."""
    return action - FIRST_DISC + 1


@kernel
def crown_clan_of(action: Int) -> Int:
    """Return the clan that the crown becomes."""
    return action - FIRST_CROWN


@kernel
def steps_of(action: Int) -> Int:
    """Return the Emperor's steps, 1 to 5."""
    return action - FIRST_MOVE + 1


@kernel
def clan_of(action: Int) -> Int:
    """Return the clan of the paladin placed."""
    return (action - FIRST_PLACE) // DESTINATIONS


@kernel
def destination_of(action: Int) -> Int:
    """Return the paladin's destination: 0 the court, 1 + k the region k from the Emperor's."""
    return (action - FIRST_PLACE) % DESTINATIONS
