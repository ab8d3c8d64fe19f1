"""Games whose learner chooses whole turns: a decision is a disc, a crown or a turn.

In every game the candidates of the decision are listed (`planning.plans`), and the learner
observes a row of numbers for each (`candidates`) and picks one by its index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env import engine
from carolus_env.bots.lockstep import Rows
from carolus_env.engine.rules import DISCS, PHASE_NAMES, Rules
from carolus_env.engine.state import Ints, States, pick
from carolus_env.envs.candidates import LIMIT, View, length, write_candidates
from carolus_env.envs.learner import FinishedGames, LearnerGames, Opponents
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import MOST_PLACEMENTS, MOST_PLANS, WIDTHS, CandidateList
from carolus_env.system.arrays import I64, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import instance, one_of, whole_number, whole_numbers

MOST_ACTIONS: Final = MOST_PLACEMENTS + 1
"""Actions of a turn, at most: paladins and the Emperor's move."""


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
            raise IllegalChoiceError(game, states[game], int(number), int(self.counts[game]))
        return [action for action in self.choices[game, number].tolist() if action >= 0]


def candidates_of(states: States, turns: Turns) -> Listed:
    """List the candidates of games of one number of players."""
    players = int(states["players"][0])
    listed = Listed.nothing(len(states), players, turns)
    lists = turns.candidate_list(players)
    list_in_games(states, np.arange(len(states)), lists, View.new(), listed)
    return listed


class IllegalChoiceError(engine.IllegalActionError):
    """An index of no candidate; ``action`` is the index, ``legal`` are the allowed ones."""

    def __init__(self, game: int, state: np.void, action: int, count: int) -> None:
        player, phase = int(state["player"]), PHASE_NAMES[state["phase"]]
        super().__init__(game, player, phase, action, list(range(count)))
        self.args = (
            f"game {game}: player {player} may choose candidates 0 to {count - 1} in phase "
            f"{phase}, got {action}",
        )


class TurnGames(LearnerGames):
    """`LearnerGames` in which a decision is a disc, a crown or a whole turn.

    Attributes:
        counts: ``(n,)`` int64, the candidates in each game; 0 when it is over.
        choices: ``(n, K, 5)`` int8, the actions of each candidate in order, then -1.
        left_out: ``(n,)`` int64, the number of candidates that are not listed.
        rows: ``(n, K, length)`` float32, their features (`candidates.layout`), then zeros.
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

    # -------------------------------------------------------------------------------- decisions

    def box(self, dtype: np.dtype[Any]) -> spaces.Box:
        """Return the space of a learner's rows."""
        return self.turns.box(self.rules.players)

    def actions_of(self, number: int) -> list[int]:
        """Return the actions, in order, of a candidate in the first game."""
        return self._listed.actions_of(self.states, 0, number)

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Return a mask of the indices that are candidates: ``(n, K)`` int8."""
        if out is None:
            return self._listed.masks.astype(np.int8)
        out[:] = self._listed.masks
        return out

    def observations(self, out: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Copy `rows` into ``out``."""
        out[:] = self.rows
        return out

    def last_observations(self, ended: FinishedGames, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return zeros: nothing is left to choose."""
        return np.zeros((len(ended.rows), *self.rows.shape[1:]), dtype)

    def infos(self) -> dict[str, npt.NDArray[Any]]:
        """Return `choices` and `left_out`."""
        return {"choices": self.choices, "left_out": self.left_out}

    # -------------------------------------------------------------------------------- inside

    def _decide(self, actions: Ints, rows: Rows, forfeits: bool) -> Rows:
        actions = whole_numbers("actions", actions, rows.shape)
        legal = (actions >= 0) & (actions < self.counts[rows])
        if not legal.all():
            if not forfeits:
                wrong = int(np.argmin(legal))
                game, number = int(rows[wrong]), int(actions[wrong])
                raise IllegalChoiceError(game, self.states[game], number, int(self.counts[game]))
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
        """List the candidates in these rows."""
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
