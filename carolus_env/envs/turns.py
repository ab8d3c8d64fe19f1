"""Games whose learner chooses whole turns: a decision is a disc, a crown or a turn.

In every game the candidates of the decision are listed (`planning.plans`), and the learner
observes a row of numbers for each (`candidates`) and picks one by its index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from carolus_env import engine
from carolus_env.engine.rules import DISCS, PHASE_NAMES, Rules
from carolus_env.engine.state import pick
from carolus_env.envs.candidates import LIMIT, View, length, write_candidates
from carolus_env.envs.learner import FinishedGames, LearnerGames, Opponents
from carolus_env.planning.heuristic import all_weights
from carolus_env.planning.plans import MOST_PLACEMENTS, MOST_PLANS, WIDTHS, CandidateList
from carolus_env.system.arrays import F32, I8, I64, Records
from carolus_env.system.compiler import entry
from carolus_env.system.options import instance, one_of, whole_number

MOST_ACTIONS: Final = MOST_PLACEMENTS + 1
"""Actions of a turn, at most: paladins and the Emperor's move."""


@dataclass(frozen=True)
class Turns:
    """Options of a turn's candidates, listed best first by the planner's fitted evaluation.

    Discs and crowns are all listed, lowest first.

    Attributes:
        candidates: maximum number of candidates.
        plans: destinations of paladins besides the player's court: ``"stop"``, the region where the
            Emperor stops; ``"one"``, any one region; ``"all"``, anywhere.

    Raises:
        ValueError: for a value that is not allowed, naming it.
    """

    candidates: int = 16
    plans: str = "stop"

    def __post_init__(self) -> None:
        whole_number("candidates", self.candidates, DISCS, MOST_PLANS)
        one_of("plans", self.plans, WIDTHS)

    def candidate_list(self, players: int) -> CandidateList:
        """Return the list that candidates in games of ``players`` players are written to."""
        weights = all_weights()[players]
        return CandidateList.of(WIDTHS.index(self.plans), weights, self.candidates)


class IllegalChoiceError(engine.IllegalActionError):
    """An index of no candidate; ``action`` is the index, ``legal`` are the allowed ones."""

    def __init__(self, game: int, player: int, phase: str, action: int, legal: list[int]) -> None:
        super().__init__(game, player, phase, action, legal)
        self.args = (
            f"game {game}: player {player} may choose candidates 0 to {len(legal) - 1} in phase "
            f"{phase}, got {action}",
        )


class TurnGames(LearnerGames):
    """`LearnerGames` in which a decision is a disc, a crown or a whole turn.

    Args:
        rules, n, opponents: as for `LearnerGames`.
        turns: options of the list of candidates.
        options: ``seat``, ``seed`` and ``start``, as for `LearnerGames`.

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
        self.counts = np.zeros(n, np.int64)
        self.left_out = np.zeros(n, np.int64)
        self.choices = np.zeros((n, self.actions, MOST_ACTIONS), np.int8)
        self.rows = np.zeros((n, self.actions, length(rules.players)), np.float32)
        self._list, self._view = self.turns.candidate_list(rules.players), View.new()
        super().__init__(rules, n, opponents, **options)

    # -------------------------------------------------------------------------------- decisions

    def actions_of(self, number: int) -> list[int]:
        """Return the actions, in order, of a candidate in the first game."""
        if not 0 <= number < self.counts[0]:
            raise self._refusal(0, number)
        return [action for action in self.choices[0, number].tolist() if action >= 0]

    def masks(self, out: npt.NDArray[np.int8] | None = None) -> npt.NDArray[np.int8]:
        """Return a mask of the indices that are candidates: ``(n, K)`` int8."""
        result = np.arange(self.actions) < self.counts[:, None]
        if out is None:
            return result.astype(np.int8)
        out[:] = result
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

    def _decide(
        self, actions: npt.NDArray[np.integer[Any]], rows: npt.NDArray[np.int64], forfeits: bool
    ) -> npt.NDArray[np.int64]:
        if actions.shape != rows.shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be {len(rows)} integers, "
                f"got shape {actions.shape} and dtype {actions.dtype}"
            )
        legal = (actions >= 0) & (actions < self.counts[rows])
        if not legal.all():
            if not forfeits:
                wrong = int(np.argmin(legal))
                raise self._refusal(int(rows[wrong]), int(actions[wrong]))
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

    def _refusal(self, game: int, number: int) -> IllegalChoiceError:
        state, legal = self.states[game], list(range(int(self.counts[game])))
        phase = PHASE_NAMES[state["phase"]]
        return IllegalChoiceError(game, int(state["player"]), phase, number, legal)

    def _prepare(self, rows: npt.NDArray[np.int64]) -> None:
        """List the candidates in these rows."""
        listed = self.counts, self.left_out, self.choices, self.rows
        list_in_games(self.states, rows, self._list, self._view, *listed)


@entry
def list_in_games(
    states: Records,
    rows: I64,
    candidates: CandidateList,
    view: View,
    counts: I64,
    left_out: I64,
    choices: I8,
    encoded: F32,
) -> None:
    """List the candidates in these games, as `TurnGames` has them, into the last four arrays."""
    for i in range(rows.shape[0]):
        g = rows[i]
        counts[g] = write_candidates(states[g], candidates, view, choices[g], encoded[g])
        left_out[g] = candidates.scratch.total[0] - counts[g]


def candidates_box(games: TurnGames) -> spaces.Box:
    """Return the observation space of games of whole turns: K rows."""
    return spaces.Box(-LIMIT, LIMIT, games.rows.shape[1:], np.float32)
