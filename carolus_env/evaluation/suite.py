"""Suites of decisions whose choices were rolled out: JSON Lines, a header, then one a decision.

``decisions/`` has the package's suites, which ``python -m benchmarks.suite`` made. The files are
untrusted data (`carolus_env.system.untrusted`); docs/suite.md explains them, docs/formats.md
describes the format.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.engine.rules import (
    ACTIONS,
    CASTLES_TO_WIN,
    MAX_PLAYERS,
    MIN_REGIONS,
    TERRITORIES,
    Rules,
)
from carolus_env.engine.state import States, as_states
from carolus_env.evaluation.rollouts import KINDS, after, kind_of
from carolus_env.evaluation.sampling import Sampler, value_function
from carolus_env.notation import from_text
from carolus_env.records import Record, play_event, start_of
from carolus_env.records.record import FORMAT as RECORD_FORMAT
from carolus_env.records.record import VERSION as RECORD_VERSION
from carolus_env.system.options import whole_number
from carolus_env.system.untrusted import (
    DataError,
    check,
    expect,
    get,
    integer,
    one_of,
    parse_json,
    shown,
)

FORMAT: Final = "carolus-suite"
VERSION: Final = 2
HALVES: Final = ("learn", "report")
"""The half to learn and tune by, and the half for published results."""

STAGES: Final = ("opening", "middle", "end")
"""Opening: no team has a third of the castles that it needs to win. End: a team has two thirds of
them, or at most `FEW_REGIONS` regions are left. Middle: the rest."""
FEW_REGIONS: Final = MIN_REGIONS + 2

MAX_BYTES: Final = 256 * 2**20
"""Maximum number of unpacked bytes of a file."""
_MOST_EVENTS: Final = 100_000


class SuiteError(ValueError):
    """A file that is not a suite, or that does not fit; the text says where and why."""


@dataclass(frozen=True)
class Candidate:
    """A choice that was rolled out.

    Attributes:
        actions: action numbers, in order.
        value: the win probability of the team that decides.
        error: standard error of the value.
        regret: regret against the best candidate, in games with the same dice.
        regret_error: standard error of the regret; 0 for the best one.
        games: number of games played from it.
        dropped: True: significantly worse, and played no further.
    """

    actions: tuple[int, ...]
    value: float
    error: float
    regret: float
    regret_error: float
    games: int
    dropped: bool


@dataclass(frozen=True)
class SuitePosition:
    """A position in which a decision is due, with its candidates, the best one first.

    Attributes:
        number: number in the suite, from 0.
        position: a line of `carolus_env.notation`, without generator.
        kind: one of `rollouts.KINDS`.
        stage: one of `STAGES`.
        half: one of `HALVES`.
        team: the team that decides.
        seated: the agent at each seat of the game that it comes from.
        game: the game up to the decision, as `SuitePosition.record` reads it.
        candidates: the choices that were rolled out.
    """

    number: int
    position: str
    kind: str
    stage: str
    half: str
    team: int
    seated: tuple[str, ...]
    game: dict[str, Any]
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The candidate with the highest value."""
        return self.candidates[0]

    def state(self) -> States:
        """Return the position: ``(1,)``, with generator 0."""
        states = from_text(self.position, seed=0)
        states["generator"] = 0
        return states

    def record(self) -> Record:
        """Return the game up to the decision as a record, which replays (`carolus_env.records`).

        Raises:
            SuiteError: when there is no such game, or it leads to another position.
        """
        where = f"decision {self.number}: game"
        try:
            record = _record(self.game, Rules(len(self.seated)), where)
            game = start_of(record)
            for event in record["events"]:
                event["player"] = int(game["player"][0])
                play_event(game, event)
        except (ValueError, TypeError) as error:
            raise SuiteError(f"{where}: {error}") from None
        game["generator"] = 0
        if game.tobytes() != self.state().tobytes():
            raise SuiteError(f"{where}: it does not lead to the position")
        return record


@dataclass(frozen=True)
class Suite:
    """Decisions of games with one number of players.

    Attributes:
        header: the keys of `benchmarks.suite.Plan.header`.
        decisions: the decisions, by number.
        digest: twelve hexadecimal digits that change with anything in it.
    """

    header: dict[str, Any]
    decisions: tuple[SuitePosition, ...]
    digest: str

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

        Raises:
            ValueError: for a value function that does not exist here.
        """
        value = value_function(self.header["value"], self.players)
        rounds = self.header["rounds"] or None
        return Sampler(self.base, seed, value, rounds, stratified=False)

    def has(self, decision: object) -> bool:
        """Return whether it is a decision of this suite, though maybe with other candidates."""
        return isinstance(decision, SuitePosition) and decision.position in self._positions

    @cached_property
    def _positions(self) -> frozenset[str]:
        return frozenset(one.position for one in self.decisions)

    def half(self, name: str) -> list[SuitePosition]:
        """Return the decisions of one half, or of ``all``.

        Raises:
            ValueError: for another name.
        """
        if name not in (*HALVES, "all"):
            raise ValueError(f"half must be one of {', '.join(HALVES)} or all, got {name!r}")
        return [decision for decision in self.decisions if name in (decision.half, "all")]


def stages_of(states: States) -> npt.NDArray[np.int64]:
    """Return the stage of each game, as an index of `STAGES`: ``(N,)``."""
    states = as_states(states)
    needed = np.array(CASTLES_TO_WIN)[states["players"].astype(np.int64)]
    most = states["castles"].max(axis=1).astype(np.int64)
    end = (3 * most >= 2 * needed) | (states["regions"] <= FEW_REGIONS)
    return np.where(end, 2, np.where(3 * most >= needed, 1, 0))


# ------------------------------------------------------------------------------------ games


def pack_game(record: Record) -> dict[str, Any]:
    """Return a compact record: set-up, and each event as an action number or a roll's faces."""
    events = [
        event["action"] if "action" in event else "".join(map(str, event["roll"]))
        for event in record["events"]
    ]
    return {**record["setup"], "events": events}


def _record(game: dict[str, Any], rules: Rules, where: str) -> Record:
    """Return the record that `pack_game` shortened, without the players of its events."""
    events = get(game, "events", list, where)
    if len(events) > _MOST_EVENTS:
        raise DataError(f"{where}.events must be at most {_MOST_EVENTS:,}, got {len(events):,}")
    result: list[dict[str, Any]] = []
    for index, event in enumerate(events):
        if isinstance(event, str) and 1 <= len(event) <= 9 and set(event) <= set("012345"):
            result.append({"roll": [int(face) for face in event]})
        else:
            result.append({"action": check(event, int, f"{where}.events[{index}]")})
    record: Record = {
        "format": RECORD_FORMAT,
        "version": RECORD_VERSION,
        "rules": rules.to_dict(),
        "setup": {
            "territories": get(game, "territories", list, where),
            "first_player": integer(game, "first_player", 0, rules.players - 1, where),
        },
        "events": result,
        "result": None,
    }
    if len(record["setup"]["territories"]) != TERRITORIES:
        raise DataError(f"{where}.territories must be {TERRITORIES} clans")
    return record


# ------------------------------------------------------------------------------------ reading


def shipped(players: int) -> Suite:
    """Return the package's suite for 2, 3 or 4 players.

    Raises:
        SuiteError: when the package has none.
    """
    return _shipped(whole_number("players", players, 2, MAX_PLAYERS))


@cache
def _shipped(players: int) -> Suite:
    name = f"{players}p.jsonl.gz"
    file = resources.files(__package__) / "decisions" / name
    try:
        data = file.read_bytes()
    except OSError:
        raise SuiteError(f"the package has no suite for {players} players") from None
    return read_bytes(data, name)


def read_suite(path: str | os.PathLike[str]) -> Suite:
    """Read the suite in a file.

    Raises:
        SuiteError: when the file does not hold one, with its line.
        OSError: when it cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return read_bytes(data, os.fspath(path))


def read_bytes(data: bytes, name: str) -> Suite:
    """Parse a suite from the content of a file, plain or gzip.

    Raises:
        SuiteError: when it does not hold one, with its line.
    """
    content = _unpacked(data, name)
    header: dict[str, Any] | None = None
    decisions: list[SuitePosition] = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            if header is None:
                header = check_header(parse_json(line))
            else:
                decisions.append(_decision(parse_json(line), header, len(decisions)))
        except ValueError as error:  # also of positions and of illegal actions
            raise SuiteError(f"{name}, line {number}: {error}") from None
    if header is None:
        raise SuiteError(f"{name}: empty, expected a header with format {FORMAT!r}")
    if len(decisions) != header["decisions"]:
        raise SuiteError(f"{name}: {header['decisions']} decisions expected, got {len(decisions)}")
    return Suite(header, tuple(decisions), hashlib.sha256(content).hexdigest()[:12])


def check_header(data: object) -> dict[str, Any]:
    """Check the header of a suite, as far as it is used, and return it.

    Raises:
        DataError: naming the first thing wrong.
    """
    header: dict[str, Any] = check(data, dict, "the header")
    expect(header, format=FORMAT, version=VERSION)
    integer(header, "players", 2, 4)
    integer(header, "decisions", 1, 10**7)
    for key in ("base", "value"):
        get(header, key, str)
    integer(header, "rounds", 0, 1000)
    if not 0 < get(header, "error", float) < 1:
        raise DataError(f"error must lie between 0 and 1, got {shown(header['error'])}")
    often = get(header, "per_game", dict)
    for kind in KINDS:
        if get(often, kind, float, "per_game") < 0:
            raise DataError(f"per_game.{kind} must not be negative, got {shown(often[kind])}")
    return header


def _unpacked(data: bytes, name: str) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        unzip = zlib.decompressobj(wbits=31)
        try:
            data = unzip.decompress(data, MAX_BYTES + 1)
        except zlib.error as error:
            raise SuiteError(f"{name}: damaged gzip data ({error})") from None
        if not unzip.eof and len(data) <= MAX_BYTES:
            raise SuiteError(f"{name}: the gzip data is cut short")
    if len(data) > MAX_BYTES:
        raise SuiteError(f"{name}: more than {MAX_BYTES:,} bytes")
    return data


def _decision(data: object, header: dict[str, Any], number: int) -> SuitePosition:
    line: dict[str, Any] = check(data, dict, "a decision")
    if (stated := get(line, "number", int)) != number:
        raise DataError(f"number must be {number}, got {shown(stated)}")
    met = get(line, "met", list)
    if len(met) != header["players"] or not all(isinstance(spec, str) for spec in met):
        raise DataError(f"met must be {header['players']} strings, got {shown(met)}")
    entries = get(line, "candidates", list)
    if len(entries) < 2:
        raise DataError(f"candidates must be two or more, got {len(entries)}")
    result = SuitePosition(
        number,
        get(line, "position", str),
        one_of(line, "kind", KINDS),
        one_of(line, "stage", STAGES),
        one_of(line, "half", HALVES),
        integer(line, "team", 0, 2),
        tuple(met),
        get(line, "game", dict),
        tuple(_candidate(each, f"candidates[{k}]") for k, each in enumerate(entries)),
    )
    _check_position(result, header)
    return result


def _candidate(data: object, where: str) -> Candidate:
    entry: dict[str, Any] = check(data, dict, where)
    actions = get(entry, "actions", list, where)
    if not 1 <= len(actions) <= 5:
        raise DataError(f"{where}.actions must be 1 to 5, got {len(actions)}")
    for action in actions:
        if not 0 <= check(action, int, f"{where}.actions") < ACTIONS:
            raise DataError(f"{where}.actions must be from 0 to {ACTIONS - 1}, got {shown(action)}")
    numbers = {}
    for key, low in (("value", 0), ("error", 0), ("loss", -1), ("loss_error", 0)):
        numbers[key] = float(get(entry, key, float, where))
        if not low <= numbers[key] <= 1:
            raise DataError(f"{where}.{key} must be from {low} to 1, got {shown(entry[key])}")
    return Candidate(
        tuple(actions),
        value=numbers["value"],
        error=numbers["error"],
        regret=numbers["loss"],
        regret_error=numbers["loss_error"],
        games=integer(entry, "games", 1, 10**9, where),
        dropped=get(entry, "dropped", bool, where),
    )


def _check_position(decision: SuitePosition, header: dict[str, Any]) -> None:
    state = decision.state()
    result: Sequence[tuple[str, object, object]] = (
        ("players", header["players"], int(state["players"][0])),
        ("kind", decision.kind, kind_of(state[0])),
        ("stage", decision.stage, STAGES[int(stages_of(state)[0])]),
        ("team", decision.team, int(state["team"][0, state["player"][0]])),
    )
    for name, stated, real in result:
        if stated != real:
            raise DataError(f"{name} must be {real!r}, as in the position, got {shown(stated)}")
    ends = after(state[0], [candidate.actions for candidate in decision.candidates])
    if len(np.unique(ends)) < len(ends):
        raise DataError("two candidates lead to the same position")
