"""A game as messages, in the manner of TextArena: reset, get_observation, step, close.

    >>> env = CarolusTextEnv()
    >>> env.reset(num_players=3, seed=7)
    >>> done = False
    >>> while not done:
    ...     player, messages = env.get_observation()
    ...     done, info = env.step(model("\\n\\n".join(message.text for message in messages)))
    >>> rewards, game_info = env.close()

An answer that is no legal move gets a message that says why, and the player tries again; after
``tries`` of them in a row the player's team forfeits the game.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.rules import OVER, RuleOptions, Rules
from carolus_env.engine.state import States, copy
from carolus_env.integrations.language.harness import (
    checked_answers,
    observe,
    parse_response,
)
from carolus_env.integrations.language.words import position_text, request_text, rules_text
from carolus_env.notation import tell_turns
from carolus_env.notation.words import TEAM_LETTERS, situation
from carolus_env.records import play_event
from carolus_env.system.untrusted import cut

GAME = -1
"""The sender of the game's own messages."""


class Message(NamedTuple):
    """What a player is told.

    Attributes:
        sender: `GAME`.
        text: of the message.
        kind: ``"PROMPT"`` (the rules, once), ``"GAME_MESSAGE"`` (what was played and rolled),
            ``"GAME_BOARD"`` (the position, and what is asked) or ``"GAME_ADMIN"`` (why an answer
            was refused).
    """

    sender: int
    text: str
    kind: str


class CarolusTextEnv:
    """A game whose players answer in words.

    Args:
        answers: what one answer decides: ``"turn"`` or ``"decision"``.
        tries: answers in a row that may be refused; with the last of them the player forfeits.
        options: of `Rules`, all but ``players``.

    Raises:
        ValueError: for impossible ``answers``, ``tries`` or options.
    """

    def __init__(
        self, answers: str = "turn", tries: int = 3, **options: Unpack[RuleOptions]
    ) -> None:
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise ValueError(f"tries must be a whole number from 1 on, got {tries!r}")
        if "players" in options:
            raise ValueError("the number of players is given to reset, as num_players")
        self.answers, self.tries, self._options = checked_answers(answers), tries, options
        self._rules(2)
        self._game: States | None = None

    def _rules(self, players: int) -> Rules:
        return Rules.from_dict({"players": players, **self._options})

    def reset(self, num_players: int = 2, seed: int | None = None) -> None:
        """Start a game.

        Args:
            num_players: 2, 3 or 4 (two teams).
            seed: same seed, same set-up and dice; None: from the operating system.

        Raises:
            ValueError: for another number of players, or an impossible seed.
        """
        rules = self._rules(num_players)
        self._game = engine.new_games(rules, 1, seed=seed, roll=False)
        start = copy(self._game)
        prompt = Message(GAME, rules_text(rules), "PROMPT")
        self._waiting: list[list[Message]] = [[prompt] for _ in range(num_players)]
        self._info: dict[int, dict[str, Any]] = {
            seat: {
                "role": f"Player {seat} of team {TEAM_LETTERS[rules.team(seat)]}",
                "turn_count": 0,
                "refused": 0,
                "invalid_move": False,
                "reason": None,
            }
            for seat in range(num_players)
        }
        self._refused = 0
        self._tell(start, self._roll_on())

    def get_observation(self) -> tuple[int, list[Message]]:
        """The player to move, and what that player has not been told before the last own answer.

        The last message is the position and what is asked. Calling it again gives the same.

        Raises:
            ValueError: before `reset`, or when the game is over.
        """
        state = self._playing()[0]
        seat = int(state["player"])
        board = position_text(state) + "\n\n" + request_text(state, turns=self.answers == "turn")
        return seat, [*self._waiting[seat], Message(GAME, board, "GAME_BOARD")]

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        """Play the answer of the player to move, and roll what is due.

        Args:
            action: the whole answer: prose, and JSON with the move.

        Returns:
            Whether the game is over, and ``player``, ``legal`` (whether the answer was played),
            ``move`` (in the notation, None when it was refused), ``actions`` (numbers), ``error``
            (why it was refused, else empty), ``tries_left``.

        Raises:
            TypeError: when the answer is not a text.
            ValueError: before `reset`, or when the game is over.
        """
        if not isinstance(action, str):
            raise TypeError(f"an answer is a text, got {type(action).__name__}")
        game = self._playing()
        seat, before = int(game["player"][0]), copy(game)
        parsed = parse_response(action, observe(game[0], self.answers))
        if parsed.legal_action is None:
            self._refuse(seat, parsed.error)
        else:
            self._refused = 0
            self._waiting[seat] = []
            self._info[seat]["turn_count"] += 1
            events = [{"action": number, "player": seat} for number in parsed.actions]
            for event in events:
                play_event(game, event)
            self._tell(before, events + self._roll_on())
        over = bool(game["phase"][0] == OVER)
        if over:
            for info in self._info.values():
                info["reason"] = situation(game[0])
        return over, {
            "player": seat,
            "legal": parsed.legal_action is not None,
            "move": parsed.legal_action,
            "actions": list(parsed.actions),
            "error": parsed.error,
            "tries_left": self.tries - self._refused,
        }

    def close(self) -> tuple[dict[int, float], dict[int, dict[str, Any]]]:
        """The payoff of each seat (they sum to 0; all 0 before the end), and about each seat:
        ``role``, ``turn_count`` (answers that were played), ``refused`` (answers that were not),
        ``invalid_move`` (whether the seat forfeited), ``castles`` of its team, ``reason`` (how the
        game ended; None before the end).

        Raises:
            ValueError: before `reset`.
        """
        if self._game is None:
            raise ValueError("there is no game: call reset first")
        state = self._game[0]
        for seat, info in self._info.items():
            info["castles"] = int(state["castles"][state["team"][seat]])
        rewards = engine.returns(self._game)[0].tolist()
        return dict(enumerate(rewards)), {seat: dict(info) for seat, info in self._info.items()}

    @property
    def state(self) -> States:
        """``(1,)`` a copy of the game now.

        Raises:
            ValueError: before `reset`.
        """
        if self._game is None:
            raise ValueError("there is no game: call reset first")
        return copy(self._game)

    # -------------------------------------------------------------------------------- inside

    def _playing(self) -> States:
        if self._game is None:
            raise ValueError("there is no game: call reset first")
        if self._game["phase"][0] == OVER:
            raise ValueError("the game is over: call reset for another one")
        return self._game

    def _refuse(self, seat: int, error: str) -> None:
        self._refused += 1
        self._info[seat]["refused"] += 1
        left = self.tries - self._refused
        if left == 0:
            self._info[seat]["invalid_move"] = True
            engine.forfeit(self._playing())
            return
        more = "one more answer" if left == 1 else f"{left} more answers"
        text = (
            f"Your answer was refused: {cut(error, 1_000)}.\n"
            f"Think again, and answer in the form above. You have {more}, else you forfeit the "
            "game."
        )
        self._waiting[seat] = [Message(GAME, text, "GAME_ADMIN")]

    def _roll_on(self) -> list[dict[str, Any]]:
        """Roll the dice that are due; the events."""
        assert self._game is not None
        events = []
        while chance.roll_due(self._game)[0]:
            seat = int(self._game["player"][0])
            events.append({"roll": chance.draw_faces(self._game)[0].tolist(), "player": seat})
            play_event(self._game, events[-1])
        return events

    def _tell(self, before: States, events: Iterable[dict[str, Any]]) -> None:
        """Tell everybody what was played and rolled."""
        for told in tell_turns(before, events):
            team = TEAM_LETTERS[int(before["team"][0, told.seat])]
            text = f"Player {told.seat} (team {team}): {told.text}"
            for waiting in self._waiting:
                waiting.append(Message(GAME, text, "GAME_MESSAGE"))
