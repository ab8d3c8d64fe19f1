"""Games whose learner chooses whole turns: a decision is a disc, a crown or a turn.

In every game the candidates of the decision are listed (`planning.plans`), and the learner
observes a row of numbers for each (`layout`) and picks one by its index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env import engine
from carolus_env.bots.lockstep import Rows
from carolus_env.engine import rules
from carolus_env.engine.kernels import turns
from carolus_env.engine.kernels.courts import most_elsewhere
from carolus_env.engine.kernels.regions import count_at, paladins_out, strengths
from carolus_env.engine.kernels.turns import acts_this_round, write_seats
from carolus_env.engine.observation import check_players, length_of, slices_of
from carolus_env.engine.rules import DISCS, PHASE_NAMES, Rules
from carolus_env.engine.state import STATE, Ints, States, as_states, common_players, pick
from carolus_env.envs.learner import FinishedGames, LearnerGames, Opponents
from carolus_env.planning import plans
from carolus_env.planning.heuristic import FEATURES, all_weights, write_features
from carolus_env.planning.plans import MOST_PLACEMENTS, MOST_PLANS, WIDTHS, CandidateList
from carolus_env.system.arrays import F32, I8, I64, Int, Records, float32, int64
from carolus_env.system.compiler import entry, inlined, kernel, separate
from carolus_env.system.options import instance, one_of, whole_number, whole_numbers

MOST_ACTIONS: Final = MOST_PLACEMENTS + 1  # of a turn: paladins and the Emperor's move


@dataclass(frozen=True)
class Turns:
    """Options of a turn's candidates, listed best first by the planner's fitted evaluation.

    Discs and crowns are all listed, lowest first. A value that is not allowed is a ValueError.

    Attributes:
        candidates: maximum number of candidates, 5 to 4,096.
        plans: destinations of paladins besides the player's court: ``"stop"``, the region where the
            Emperor stops; ``"one"``, any one region; ``"all"``, anywhere.
    """

    candidates: int = 16
    plans: str = "stop"

    def __post_init__(self) -> None:
        whole_number("candidates", self.candidates, DISCS, MOST_PLANS)
        one_of("plans", self.plans, WIDTHS)

    def box(self, players: int) -> spaces.Box:
        """Return the space of a game's rows, ``(K, length)``."""
        return spaces.Box(-LIMIT, LIMIT, (self.candidates, length(players)), np.float32)

    def candidate_list(self, players: int) -> CandidateList:
        """Return the list that candidates in games of ``players`` players are written to."""
        weights = all_weights()[players]
        return CandidateList.of(WIDTHS.index(self.plans), weights, self.candidates)


class Listed(NamedTuple):
    """The candidates of ``N`` games, at most K in each."""

    counts: npt.NDArray[np.int64]  # (N,) 0 when the game is over
    left_out: npt.NDArray[np.int64]  # (N,) candidates that are not listed
    choices: npt.NDArray[np.int8]  # (N, K, 5) the actions of each in order, then -1
    rows: npt.NDArray[np.float32]  # (N, K, length) their features, then zeros

    @classmethod
    def nothing(cls, n: int, players: int, turns: Turns) -> Listed:
        k, (counts, left_out) = turns.candidates, np.zeros((2, n), np.int64)
        choices = np.zeros((n, k, MOST_ACTIONS), np.int8)
        return cls(counts, left_out, choices, np.zeros((n, k, length(players)), np.float32))

    @property
    def masks(self) -> npt.NDArray[np.bool_]:
        """``(N, K)``, which rows are candidates."""
        mask: npt.NDArray[np.bool_] = np.arange(self.rows.shape[1]) < self.counts[:, None]
        return mask

    def actions_of(self, states: States, game: int, number: int) -> list[int]:
        """Return the actions, in order, of a candidate of ``states[game]``."""
        if not 0 <= number < self.counts[game]:
            raise IllegalChoiceError.of(game, states[game], int(number), int(self.counts[game]))
        return [action for action in self.choices[game, number].tolist() if action >= 0]


def candidates_of(states: States, turns: Turns) -> Listed:
    """List the candidates of games of one number of players; a ValueError for several."""
    players = common_players(states := as_states(states), "candidates")
    listed = Listed.nothing(len(states), players, turns)
    lists = turns.candidate_list(players)
    list_in_games(states, np.arange(len(states)), lists, View.new(), listed)
    return listed


class IllegalChoiceError(engine.IllegalActionError):
    """An index of no candidate; ``action`` is the index, ``legal`` are the allowed ones."""

    @classmethod
    def of(cls, game: int, state: np.void, action: int, count: int) -> IllegalChoiceError:
        player, phase = int(state["player"]), PHASE_NAMES[state["phase"]]
        choices = f"player {player} may choose candidates 0 to {count - 1} in phase {phase}"
        attributes = {"player": player, "action": action, "legal": list(range(count))}
        return cls(f"game {game}: {choices}, got {action}", game=game, **attributes)


class TurnGames(LearnerGames):
    """`LearnerGames` in which a decision is a disc, a crown or a whole turn.

    Attributes:
        counts: ``(n,)`` int64, the candidates in each game; 0 when it is over.
        choices: ``(n, K, 5)`` int8, the actions of each candidate in order, then -1.
        left_out: ``(n,)`` int64, the number of candidates that are not listed.
        rows: ``(n, K, length)`` float32, their features (`layout`), then zeros.
    """

    def __init__(
        self,
        rules: Rules,
        n: int,
        opponents: Opponents,
        *,
        turns: Turns | None = None,
        **options: Any,
    ) -> None:
        instance("rules", rules, Rules, "carolus_env.Rules")
        n = whole_number("n, the number of games,", n, 1)
        self.turns = turns or Turns()
        self.actions = self.turns.candidates
        self._listed = Listed.nothing(n, rules.players, self.turns)
        self.counts, self.left_out, self.choices, self.rows = self._listed
        self._lists, self._view = self.turns.candidate_list(rules.players), View.new()
        super().__init__(rules, n, opponents, **options)

    def box(self, dtype: np.dtype[Any]) -> spaces.Box:
        return self.turns.box(self.rules.players)

    def actions_of(self, number: int) -> list[int]:
        return self._listed.actions_of(self.states, 0, number)

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Return a mask of the indices that are candidates: ``(n, K)`` int8."""
        if out is None:
            return self._listed.masks.astype(np.int8)
        out[:] = self._listed.masks
        return out

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out[:] = self.rows
        return out

    def last_observations(self, ended: FinishedGames, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return zeros: nothing is left to choose."""
        return np.zeros((len(ended.rows), *self.rows.shape[1:]), dtype)

    def infos(self) -> dict[str, npt.NDArray[Any]]:
        return {"choices": self.choices, "left_out": self.left_out}

    def _decide(self, actions: Ints, rows: Rows, forfeits: bool) -> Rows:
        actions = whole_numbers("actions", actions, rows.shape)
        legal = (actions >= 0) & (actions < self.counts[rows])
        if not legal.all():
            if not forfeits:
                wrong = int(np.argmin(legal))
                game, number = int(rows[wrong]), int(actions[wrong])
                raise IllegalChoiceError.of(game, self.states[game], number, int(self.counts[game]))
            engine.forfeit(self.states, rows=rows[~legal])
            self._prepare(rows[~legal])
        deciding = rows[legal]
        chosen = self.choices[deciding, actions[legal]]
        for numbers in chosen.T.astype(np.int64):  # their first actions, then the second ones ...
            going = numbers >= 0
            games, numbers = deciding[going], numbers[going]
            before = None if self.watcher is None else pick(self.states, games)
            engine.step(self.states, numbers, rows=games)
            if self.watcher is not None:
                self.watcher.decided(games, before, numbers)
        return deciding

    def _prepare(self, rows: Rows) -> None:
        list_in_games(self.states, rows, self._lists, self._view, self._listed)


@entry
def list_in_games(
    states: Records, rows: I64, candidates: CandidateList, view: View, listed: Listed
) -> None:
    """List the candidates in these games."""
    for i in range(rows.shape[0]):
        g = rows[i]
        choices, encoded = listed.choices[g], listed.rows[g]
        listed.counts[g] = write_candidates(states[g], candidates, view, choices, encoded)
        listed.left_out[g] = candidates.scratch.total[0] - listed.counts[g]


AHEAD: Final = 8  # number of regions ahead of the Emperor that have entries of their own
KINDS: Final = ("disc", "crown", "turn")
LIMIT: Final = 8.0  # entries lie from -LIMIT to LIMIT; none but a rare count is cut off there


class Block(NamedTuple):
    """A run of entries of a row; ``scale`` is the factor of a count."""

    name: str
    shape: tuple[int, ...]
    scale: float
    meaning: str


@cache
def layout(players: int) -> tuple[Block, ...]:
    """Return the blocks of a row in games of 2, 3 or 4 players, in order."""
    check_players(players)
    teams, seats = rules.TEAMS[players], (players,)
    # fmt: off
    return (
        Block("candidate", (), 1.0, "1; rows after the last candidate are all 0"),
        Block("kind", (len(KINDS),), 1.0, "one-hot: " + ", ".join(KINDS)),
        Block("over", (), 1.0, "1 if the game is over after it"),
        Block("share", (), 1.0, "the team's win share then, else 0"),
        Block("features", (teams, len(FEATURES)), 1.0, "of each team the planner's features, each with its scale (docs/bots.md)"),
        Block("acts", seats, 1.0, "the seat is still to act this round"),
        Block("disc_played", (players, rules.DISCS), 1.0, "one-hot for each seat: disc of this round"),
        Block("discs_in_hand", (players, rules.DISCS), 1.0, "1 for each disc in the hand of the seat"),
        Block("crowns", seats, 0.3, "undecided crowns of each seat"),
        Block("regions", (), 1 / rules.TERRITORIES, "regions in the circle"),
        Block("round", (), 0.05, "rounds begun"),
        Block("held", (rules.CLANS,), 1.0, "of each clan: 1 if the team controls it, -1 if another does, else 0"),
        Block("lead", (rules.CLANS,), 0.25, "of each clan: paladins in the player's court less the most in another"),
        Block("reserve", (rules.CLANS,), 0.3, "of each clan: paladins in the player's reserve"),
        Block("threat", (rules.CLANS,), 0.3, "of each clan: the most paladins in an opponent's reserve"),
        Block("out", (rules.CLANS,), 0.06, "of each clan: paladins on the regions"),
        Block("margin", (AHEAD,), 0.2, "of each region ahead of the Emperor, the next first: the team's strength less the highest of another team; 0 where there is none"),
        Block("castles", (AHEAD,), 0.25, "of each: castles of the team, or less 0 those of another"),
    )
    # fmt: on


@cache
def length(players: int) -> int:
    """Return the number of entries in a row."""
    return length_of(layout(players))


def slices(players: int) -> dict[str, slice]:
    """Return the slice of each block in a row."""
    return slices_of(layout(players))


class View(NamedTuple):
    """Scratch to encode candidates."""

    after: States  # (1,): the position after a candidate
    features: npt.NDArray[np.float64]  # (4, F): the features of each team
    seats: npt.NDArray[np.int64]  # (4,): the seats, from the player's side

    @classmethod
    def new(cls) -> View:
        features = np.zeros((rules.MAX_TEAMS + 1, len(FEATURES)))
        return cls(np.zeros(1, STATE), features, np.zeros(rules.MAX_PLAYERS, np.int64))


# ------------------------------------------------------------------------------------ rows

# Kernels need the scales as numbers.
_FEATURES = np.array([feature.scale for feature in FEATURES], np.float32)
_SCALE = {block.name: float32(block.scale) for block in layout(2)}
_CROWNS, _REGIONS, _ROUND = _SCALE["crowns"], _SCALE["regions"], _SCALE["round"]
_LEAD, _RESERVE, _THREAT = _SCALE["lead"], _SCALE["reserve"], _SCALE["threat"]
_OUT, _MARGIN, _CASTLES = _SCALE["out"], _SCALE["margin"], _SCALE["castles"]
_LIMIT = float32(LIMIT)


@kernel
def _put(row: F32, at: Int, count: float, scale: np.float32) -> Int:
    """Write an entry; returns the place of the next."""
    row[at] = min(max(float32(count) * scale, -_LIMIT), _LIMIT)
    return at + 1


@inlined
def _write_players(s: np.void, seats: Any, row: F32, at: Int) -> Any:
    """Write blocks acts, disc_played, discs_in_hand and crowns; return the next place."""
    players = int64(s["players"])
    for k in range(players):
        row[at + k] = 0
    for place in range(players):
        if acts_this_round(s, place):
            for k in range(players):
                if seats[k] == int64(s["order"][place]):
                    row[at + k] = 1
    at += players
    for k in range(players):
        played = int64(s["discs_played"][seats[k]])
        for disc in range(rules.DISCS):
            row[at + disc] = float32(played == disc + 1)
        at += rules.DISCS
    for k in range(players):
        hand = int64(s["discs_in_hand"][seats[k]])
        for disc in range(rules.DISCS):
            row[at + disc] = float32(hand >> disc & 1)
        at += rules.DISCS
    for k in range(players):
        at = _put(row, at, s["crowns"][seats[k]], _CROWNS)
    return at


@inlined
def _write_clans(s: np.void, player: Int, team: Int, row: F32, at: Int) -> Any:
    """Write blocks held, lead, reserve, threat and out; return the next place."""
    for clan in range(rules.CLANS):
        holder = int64(s["control"][clan])
        held = 0 if holder == rules.NOBODY else (1 if int64(s["team"][holder]) == team else -1)
        most, threat = most_elsewhere(s, player, clan)
        column = at + clan
        row[column] = held
        _put(row, column + rules.CLANS, int64(s["courts"][player, clan]) - most, _LEAD)
        _put(row, column + 2 * rules.CLANS, s["reserves"][player, clan], _RESERVE)
        _put(row, column + 3 * rules.CLANS, threat, _THREAT)
        _put(row, column + 4 * rules.CLANS, paladins_out(s, clan), _OUT)
    return at + 5 * rules.CLANS


@inlined
def _write_regions(s: np.void, team: Int, row: F32, at: Int) -> Any:
    """Write blocks margin and castles; return the next place."""
    teams, n, emperor = int64(s["teams"]), int64(s["regions"]), int64(s["emperor"])
    rival_1, rival_2 = (team + 1) % teams, (team + 2) % teams  # of two teams, rival_2 is ``team``
    circle, circle_1 = strengths(s, team), strengths(s, rival_1)
    circle_2 = strengths(s, rival_2) if teams > 2 else circle_1
    for k in range(AHEAD):
        row[at + k], row[at + AHEAD + k] = 0, 0
        if k >= n:
            continue
        region = (emperor + k + 1) % n
        owner, castles = int64(s["region_owner"][region]), int64(s["region_castles"][region])
        own = count_at(circle, region) + castles * int64(owner == team)
        other = count_at(circle_1, region) + castles * int64(owner == rival_1)
        if teams > 2:
            other = max(other, count_at(circle_2, region) + castles * int64(owner == rival_2))
        _put(row, at + k, own - other, _MARGIN)
        _put(row, at + AHEAD + k, castles if owner == team else -castles, _CASTLES)
    return at + 2 * AHEAD


@separate
def write_row(s: np.void, player: Int, kind: Int, view: View, row: F32) -> Int:
    """Write the row of ``s``, the position after a candidate of a kind; returns its length."""
    team, teams = int64(s["team"][player]), int64(s["teams"])
    over = s["phase"] == rules.OVER
    row[0] = 1
    for k in range(len(KINDS)):
        row[1 + k] = float32(k == kind)
    at = 1 + len(KINDS)
    row[at] = float32(over)
    row[at + 1] = float32(turns.team_win_share(s, team)) if over else float32(0)
    at += 2
    write_seats(s, player, view.seats)
    write_features(s, view.features)
    for other in range(teams):
        counted = view.features[(team + other) % teams]
        for k in range(_FEATURES.shape[0]):
            at = _put(row, at, counted[k], _FEATURES[k])
    at = _write_players(s, view.seats, row, at)
    at = _put(row, at, s["regions"], _REGIONS)
    at = _put(row, at, s["round"], _ROUND)
    at = _write_clans(s, player, team, row, at)
    return _write_regions(s, team, row, at)


@separate
def write_candidates(
    s: np.void, candidates: plans.CandidateList, view: View, choices: I8, rows: F32
) -> Int:
    """List the candidates of the player to move, and write the actions and the row of each.

    Returns their number, at most K; 0 when the game is over.
    """
    count = 0
    if s["phase"] == rules.OVER:
        candidates.scratch.total[0] = 0
    else:
        count = plans.list_candidates(s, candidates)
        kind = 2 if plans.in_turn(s) else (0 if s["phase"] == rules.DISC else 1)
        for k in range(count):
            view.after[0] = s
            plans.play_plan(view.after[0], candidates.plans[k])
            plan = candidates.plans[k]
            for step in range(choices.shape[1]):
                choices[k, step] = plans.first_of(plan)  # -1 when none is left
                plan = plans.rest_of(plan)
            write_row(view.after[0], int64(s["player"]), kind, view, rows[k])
    for k in range(count, choices.shape[0]):
        for step in range(choices.shape[1]):
            choices[k, step] = -1
        for j in range(rows.shape[1]):
            rows[k, j] = 0
    return count
