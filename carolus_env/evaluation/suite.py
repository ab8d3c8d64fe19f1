"""Suites of decisions whose choices were rolled out: JSON Lines, a header, then one a decision.

``decisions/`` has the package's suites, which ``python -m benchmarks.suite`` made and checked; here
they are trusted by their hash. docs/bench.md explains them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final

from carolus_env.engine.rules import MAX_PLAYERS, Rules
from carolus_env.engine.state import States, copy
from carolus_env.evaluation.sampling import Sampler, value_function
from carolus_env.notation import from_text
from carolus_env.records import Record, play_event, record, start_of
from carolus_env.system.options import whole_number

HASHES: Final = {2: "a5d78e01a9a6", 3: "57a809bb49f3", 4: "48e9440e5473"}  # by number of players
HALVES: Final = ("learn", "report")
"""The half to learn and tune by, and the half for published results."""
STAGES: Final = ("opening", "middle", "end")  # `benchmarks.suite.stages_of` tells them apart


@dataclass(frozen=True)
class Candidate:
    """A choice that was rolled out."""

    actions: tuple[int, ...]
    value: float  # the win probability of the team that decides
    error: float  # its standard error
    regret: float  # against the best candidate, in games with the same dice
    regret_error: float  # its standard error; 0 for the best one
    games: int
    dropped: bool  # True: significantly worse, and played no further


@dataclass(frozen=True)
class SuitePosition:
    """A position in which a decision is due."""

    number: int  # in the suite, from 0
    position: str  # a line of `carolus_env.notation`, without generator
    kind: str  # one of `rollouts.KINDS`
    stage: str  # one of `STAGES`
    half: str  # one of `HALVES`
    team: int  # the team that decides
    seated: tuple[str, ...]  # the agent at each seat of the game that it comes from
    game: dict[str, Any]  # the game up to the decision, as `record` reads it
    candidates: tuple[Candidate, ...]  # the best one first

    def state(self) -> States:
        """Return the position: ``(1,)``, with generator 0."""
        return copy(self._state)

    @cached_property
    def _state(self) -> States:
        states = from_text(self.position, seed=0)
        states["generator"] = 0
        return states

    def record(self) -> Record:
        """Return the game up to the decision as a record, which replays (`carolus_env.records`)."""
        events: list[dict[str, Any]] = [
            {"roll": [*map(int, event)]} if isinstance(event, str) else {"action": event}
            for event in self.game["events"]
        ]
        result: Record = {
            "format": record.FORMAT,
            "version": record.VERSION,
            "rules": Rules(len(self.seated)).to_dict(),
            "setup": {key: self.game[key] for key in ("territories", "first_player")},
            "events": events,
            "result": None,
        }
        game = start_of(result)
        for event in events:
            event["player"] = int(game["player"][0])
            play_event(game, event)
        return result


@dataclass(frozen=True)
class Suite:
    """Decisions of games with one number of players."""

    header: dict[str, Any]  # the keys of `benchmarks.suite.SuiteRecipe.header`
    decisions: tuple[SuitePosition, ...]  # by number
    digest: str  # twelve hexadecimal digits that change with anything in it

    @property
    def players(self) -> int:
        """Number of players of every game."""
        return int(self.header["players"])

    @property
    def base(self) -> str:
        """Spec of the agent that played the rollouts."""
        return str(self.header["base"])

    def sampler(self, seed: int) -> Sampler:
        """Return a sampler that plays games as in the rollouts, with other dice.

        Not stratified: a game's first roll would depend on the other games.
        """
        value = value_function(self.header["value"], self.players)
        return Sampler(self.base, seed, value, self.header["rounds"] or None, stratified=False)

    def half(self, name: str) -> list[SuitePosition]:
        """Return the decisions of one half, or of ``all``."""
        if name not in (*HALVES, "all"):
            raise ValueError(f"half must be one of {', '.join(HALVES)} or all, got {name!r}")
        return [decision for decision in self.decisions if name in (decision.half, "all")]


def shipped(players: int) -> Suite:
    """Return the package's suite for 2, 3 or 4 players; it is read once."""
    return _shipped(whole_number("players", players, 2, MAX_PLAYERS))


@cache
def _shipped(players: int) -> Suite:
    file = resources.files(__package__) / "decisions" / f"{players}p.jsonl.gz"
    damaged = f"{file}: damaged, install the package again"
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(f"{damaged} ({error})") from None
    if (found := _digest(content)) != HASHES[players]:
        raise ValueError(f"{damaged} (hash {HASHES[players]} expected, got {found})")
    return parsed(content)


def parsed(content: bytes) -> Suite:
    """Return the suite of a file's lines, which are trusted."""
    header, *lines = map(json.loads, content.splitlines())
    return Suite(header, tuple(map(_decision, lines)), _digest(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def _decision(line: dict[str, Any]) -> SuitePosition:
    candidates = []
    for entry in line.pop("candidates"):
        regret, error, actions = entry.pop("loss"), entry.pop("loss_error"), entry.pop("actions")
        candidates.append(Candidate(tuple(actions), regret=regret, regret_error=error, **entry))
    return SuitePosition(seated=tuple(line.pop("met")), candidates=tuple(candidates), **line)
