"""One game, played from Python: the shortest way to the kernels.

`GameBatch` is for thousands of games; this is for a tree, a notebook, an environment with one
game. Legal actions come as a tuple that is made once for each legal set, and as a mask.

    >>> game = Game(Rules(players=3), seed=1)
    >>> while not game.over:
    ...     game.play(random.choice(game.legal_actions))
    >>> game.returns
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import observation as seen
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import ACTIONS, OVER, Rules
from carolus_env.engine.state import States, as_states
from carolus_env.engine.stepping import (
    ILLEGAL,
    PHASE_BITS,
    PLAYER_BITS,
    PLAYER_SHIFT,
    SET_SHIFT,
    play_one,
)

_LEGAL_ACTIONS = tuple(tuple(np.flatnonzero(row).tolist()) for row in legal.LEGAL_SETS)
_MASKS = legal.LEGAL_SETS.copy()
_MASKS.flags.writeable = False


class Game:
    """A game that waits for a decision or is over; dice are rolled by its own generator.

    Args:
        rules: number of players and options.
        seed: same seed, same game. None: from the operating system.
        state: ``(1,)`` a game to take up instead; it is copied. A roll that is due is rolled.
        observe: ``"uint8"`` or ``"float32"`` keeps ``observation`` up to date; None: there is none.

    Attributes:
        states: ``(1,)`` of dtype `STATE`: the game itself, for the functions of the engine.
        player: seat to move; 0 when the game is over.
        phase: see `carolus_env.engine.rules`.
        over: whether the game has ended.
        legal_actions: the legal action numbers, ascending; none when it is over.
        mask: the same as a mask, ``(95,)`` int8, not writeable.
        observation: ``(length,)`` what the seat to move sees; a buffer that `play` overwrites.
    """

    __slots__ = (
        "_observed",
        "legal_actions",
        "mask",
        "observation",
        "over",
        "phase",
        "player",
        "states",
    )

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        seed: int | None = None,
        state: States | None = None,
        observe: str | None = None,
    ) -> None:
        if state is None:
            self.states = engine.new_games(rules or Rules(), 1, seed=seed)
        elif rules is not None or seed is not None:
            raise ValueError("a game taken up from a state has its rules and generator from there")
        elif len(as_states(state)) != 1:
            raise ValueError(f"state must be a batch of one game, got {len(state)}")
        else:
            self.states = state.copy()
        self._prepare(None if observe is None else np.dtype(observe))
        self.refresh()

    def _prepare(self, dtype: np.dtype[Any] | None) -> None:
        """Make the buffers that observations are written into."""
        self.observation: npt.NDArray[Any] | None = None
        self._observed: tuple[Any, Any, Any] = None, None, None
        if dtype is None:
            return
        if dtype not in (np.uint8, np.float32):
            raise ValueError(f"an observation is of dtype uint8 or float32, not {dtype}")
        players = int(self.states["players"][0])
        whole = np.zeros((1, seen.length(players)), np.uint8)
        self.observation, self._observed = whole[0], (whole, None, None)
        if dtype == np.float32:
            scaled = np.zeros(whole.shape, np.float32)
            self.observation, self._observed = scaled[0], (whole, seen.scales(players), scaled)

    def refresh(self) -> None:
        """Roll what is due and look again, after ``states`` was changed by hand."""
        self._look(play_one(self.states, -1, *self._observed))

    def play(self, action: int) -> None:
        """Carry out the decision of the player to move, then roll what is due.

        Raises:
            IllegalActionError: when the action is illegal; the game is as it was.
            ValueError: when the game is over.
            TypeError: when the action is no whole number.
        """
        number = operator.index(action)
        due = ILLEGAL
        if 0 <= number < ACTIONS:
            due = play_one(self.states, number, *self._observed)
        if due == ILLEGAL:
            raise engine.refusal(self.states, 0, number)
        self._look(due)

    def _look(self, due: int) -> None:
        self.phase = due & PHASE_BITS
        self.player = due >> PLAYER_SHIFT & PLAYER_BITS
        self.over = self.phase == OVER
        self.legal_actions = _LEGAL_ACTIONS[due >> SET_SHIFT]
        self.mask = _MASKS[due >> SET_SHIFT]

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """Payoff of each seat, ``(players,)`` float64; zero until the game is over."""
        return engine.returns(self.states)[0]

    def clone(self) -> Game:
        """An independent copy, dice to come included."""
        return Game(state=self.states, observe=self._dtype())

    def _repr_svg_(self) -> str:
        """The board, for a notebook."""
        from carolus_env.drawing.pictures import state_svg

        return state_svg(self.states[0])

    def _dtype(self) -> str | None:
        return None if self.observation is None else self.observation.dtype.name

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, object]) -> Game:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_taken_up, (self.states, self._dtype()))


def _taken_up(state: States, observe: str | None) -> Game:
    return Game(state=state, observe=observe)
