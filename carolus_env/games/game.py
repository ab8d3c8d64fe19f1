"""One game as a board to play on, with the shortest way from Python to the kernels.

>>> game = Game(Rules(players=3), seed=1)
>>> while not game.over:
...     game.play(random.choice(game.legal_actions))
"""

# Pictures and notation are imported where they are used: `import carolus_env` stays quick.

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env import engine
from carolus_env.engine import observation as observing
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import ACTIONS, OVER, REASON_NAMES, Rules
from carolus_env.engine.state import States, single, winning_teams
from carolus_env.engine.stepping import DUE_BITS, DUE_MASK, ILLEGAL, play_one
from carolus_env.records.position import from_bytes
from carolus_env.system.untrusted import shown

_LEGAL_ACTIONS = tuple(tuple(np.flatnonzero(row).tolist()) for row in legal.LEGAL_SETS)
_MASKS = legal.LEGAL_SETS.copy()
_MASKS.flags.writeable = False


class Outcome(NamedTuple):
    """Outcome of a game.

    Attributes:
        winners: teams that won or share the win, ascending; none at ``max_rounds``.
        reason: ``"castles"``, ``"regions"``, ``"max_rounds"`` or ``"forfeit"``.
        returns: payoff of each seat; they sum to 0.
    """

    winners: tuple[int, ...]
    reason: str
    returns: tuple[float, ...]


_History = list[tuple[int, bytes]]  # decisions, and the bytes of the game before each


class Game:
    """A game that waits for a decision or is over. Its own generator rolls the dice.

    ``print(game)`` shows the board and ``repr(game)`` gives one line that makes the game again.
    Games are equal when their positions are equal, dice to come included. The hash is that of the
    position now, as transposition tables need it: a game in a set or dictionary must not be played
    on, so store a `copy` there.

    Args:
        rules: by default those of `Rules`.
        seed: same seed, same game. None: from the operating system.
        state: ``(1,)`` a game to continue instead; it is copied. A roll that is due is rolled.
        observe: ``"uint8"`` or ``"float32"``: keep ``observation`` up to date; None: there is none.
        history: keep every decision for `undo`, about 400 bytes each. Without it nothing is kept,
            so searches and environments can play millions of decisions.

    Attributes:
        states: ``(1,)`` of dtype `STATE`: the game itself, for the functions of the engine.
        player: seat to move; 0 when the game is over.
        phase, over: the phase, see `carolus_env.engine.rules`, and whether it is the end.
        legal_actions: the legal action numbers, ascending; empty when the game is over.
        mask: the legal actions as a mask, ``(95,)`` int8, not writeable.
        observation: ``(length,)``, that of the seat to move; a buffer that `play` overwrites.
    """

    __slots__ = (
        "_history", "_observed", "legal_actions", "mask", "observation", "over", "phase", "player",
        "states",
    )  # fmt: skip

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        seed: int | None = None,
        state: States | None = None,
        observe: str | None = None,
        history: bool = False,
    ) -> None:
        if state is None:
            self.states = engine.new_games(Rules() if rules is None else rules, 1, seed=seed)
        elif rules is not None or seed is not None:
            raise ValueError("a game that continues a state takes its rules and generator from it")
        else:
            self.states = single(state)
        self._history: _History | None = [] if history else None
        self.observation: npt.NDArray[Any] | None = None
        self._observed: tuple[Any, Any, Any] = None, None, None
        if observe is not None:
            dtype = observing.observation_dtype("observe", observe)
            players = int(self.states["players"][0])
            raw = np.zeros((1, observing.length(players)), np.uint8)
            self.observation, self._observed = raw[0], (raw, None, None)
            if dtype == np.float32:
                scaled = np.zeros(raw.shape, np.float32)
                self.observation = scaled[0]
                self._observed = raw, observing.kept_scales(players), scaled
        self.refresh()

    # -------------------------------------------------------------------------------- playing

    def play(self, action: int | str) -> None:
        """Carry out the decision of the player to move, then roll the dice that are due.

        Args:
            action: an action number, or text in the notation (docs/notation.md): a move such as
                ``"d3"`` or ``"2 red>court"``, or several separated by commas.

        Raises:
            IllegalActionError: for an illegal action number. The game is then as it was.
            NotationError: for text that is not a legal move; it lists the legal ones.
        """
        try:  # costs nothing for numbers, which searches and environments play
            number = operator.index(action)  # type: ignore[arg-type]
        except TypeError:
            if not isinstance(action, str):
                text = f"action must be a whole number or text, got {shown(action)}"
                raise TypeError(text) from None
            from carolus_env.notation import read_moves

            for number in read_moves(self.states[0], action, roll=True):
                self.play(number)
            return
        due, history = ILLEGAL, self._history
        before = b"" if history is None else self.states.tobytes()
        if 0 <= number < ACTIONS:
            due = play_one(self.states, number, *self._observed)
        self._look(due, number)
        if history is not None:
            history.append((number, before))

    def undo(self) -> int:
        """Take the last decision back, with the dice rolled after it, and return its action number.

        It needs ``history=True``. Where there is no decision to take back, it is an IndexError.
        """
        if self._history is None:
            raise ValueError("undo needs a game that keeps its history: Game(..., history=True)")
        if not self._history:
            raise IndexError("there is no decision to take back")
        action, before = self._history.pop()
        self.states.view(np.uint8)[:] = np.frombuffer(before, np.uint8)
        self.refresh()
        return action

    @property
    def history(self) -> tuple[int, ...] | None:
        """Action numbers played since the game was made, in order; None where they are not kept."""
        return None if self._history is None else tuple(action for action, _ in self._history)

    def refresh(self) -> None:
        """Roll what is due and update all attributes, after ``states`` was changed by hand.

        An observation is of one number of players: a game of another is a ValueError.
        """
        self._look(play_one(self.states, -1, *self._observed))

    def _look(self, due: int, action: int = -1) -> None:
        if due == ILLEGAL:
            players = int(self.states["players"][0])
            if self.observation is None or len(self.observation) == observing.length(players):
                raise engine.refusal(self.states, 0, action)
            raise ValueError(f"the observation is not one of {players} players, as states is now")
        self.phase = due & DUE_MASK
        due >>= DUE_BITS
        self.player = due & DUE_MASK
        due >>= DUE_BITS
        self.over = self.phase == OVER
        self.legal_actions, self.mask = _LEGAL_ACTIONS[due], _MASKS[due]

    # -------------------------------------------------------------------------------- looking

    @property
    def rules(self) -> Rules:
        """Number of players and options."""
        return engine.rules_of(self.states[0])

    @property
    def legal_moves(self) -> tuple[str, ...]:
        """Each of ``legal_actions`` in the notation, with what it leads to; `play` takes them."""
        from carolus_env.notation import move_text

        return tuple(move_text(self.states[0], action) for action in self.legal_actions)

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """Payoff of each seat, ``(players,)`` float64; zero until the game is over."""
        return engine.returns(self.states)[0]

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the game; None before the end."""
        if not self.over:
            return None
        reason = REASON_NAMES[int(self.states["reason"][0])]
        assert reason is not None
        winners = tuple(winning_teams(self.states[0]))
        return Outcome(winners, reason, tuple(self.returns.tolist()))

    def __str__(self) -> str:
        """Return the board as text, 80 columns wide."""
        from carolus_env.drawing.text import board_text

        return board_text(self.states[0]).removesuffix("\n")

    def __repr__(self) -> str:
        return f"{type(self).__name__}.from_text({self.to_text()!r})"

    def _repr_svg_(self) -> str:
        """Return the board, for a notebook."""
        from carolus_env.drawing.pictures import state_svg

        return state_svg(self.states[0])

    # -------------------------------------------------------------------------------- storing

    def to_text(self) -> str:
        """Return the position as one line of the notation, generator included."""
        from carolus_env.notation import to_line

        return to_line(self.states[0])

    @classmethod
    def from_text(cls, text: str, *, seed: int | None = None, **options: Any) -> Game:
        """Return the game of a position in the notation, one line, as `to_text` gives it.

        ``seed`` gives a new generator for the dice to come, instead of the text's; with neither it
        is that of seed 0. Options are ``observe`` and ``history``. Text that cannot be read, or a
        position that no game can reach, is a `PositionError`.
        """
        from carolus_env.notation import from_text

        return cls(state=from_text(text, seed=seed), **options)

    def to_bytes(self) -> bytes:
        """Return the position as the bytes of its record, generator included."""
        return self.states.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, **options: Any) -> Game:
        """Return the game that `to_bytes` wrote; options and errors are those of `from_text`."""
        return cls(state=from_bytes(data), **options)

    # -------------------------------------------------------------------------------- copies

    def copy(self) -> Game:
        """Return an independent copy, with the dice to come and the history."""
        make, parts = self.__reduce__()
        return make(*parts)

    clone = __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Game:
        return self.copy()

    def __reduce__(self) -> tuple[Callable[..., Game], tuple[Any, ...]]:
        observe = None if self.observation is None else self.observation.dtype.name
        return _continued, (self.states, observe, self._history)

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Game) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())


def _continued(state: States, observe: str | None, history: _History | None) -> Game:
    game = Game(state=state, observe=observe)
    game._history = None if history is None else history.copy()
    return game
