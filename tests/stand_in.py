"""A stand-in for OpenSpiel: what the adapter's classes inherit and register."""

import copy
import enum
import importlib
import itertools
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

LATE = (
    "2 paladins_per_clan=6 max_rounds=5 | 4 | 1 roll | 6 | p3 B7r3y3g5 b1 A6b3y3g1 | "
    "P1B1 R1 | b1 - | 0:2/1 1:4/3"
)
"""A roll before the last round: worth 25/27 to player 1, who needs both pink paladins.

Four paladins are in the supply, two red and two pink, and player 1 takes three. With one red and
two pink it takes control of pink and wins by building on territory 6, whatever player 0 does. Only
a roll with two red faces, 2 of 27, gives it two red and one pink; then player 0 defends 14.
"""
PLACING = (
    "2 paladins_per_clan=6 max_rounds=5 | 5 | 1 place 3 | 7 | B7r3y3g5 b1 A6b3y3g1 p3 | "
    "P1B2 R1 | r1 r1p2 | 0:1/- 1:3/-"
)
"""The same game: player 1 is to play one red and two pink paladins."""


class Anything:
    """A record of its arguments, with any attribute."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    Dynamics = SimpleNamespace(SEQUENTIAL="sequential")
    ChanceMode = SimpleNamespace(EXPLICIT_STOCHASTIC="explicit stochastic")
    Information = SimpleNamespace(PERFECT_INFORMATION="perfect information")
    Utility = SimpleNamespace(ZERO_SUM="zero sum")
    RewardModel = SimpleNamespace(TERMINAL="terminal")


class PlayerId(enum.IntEnum):
    CHANCE = -1
    TERMINAL = -4


class Game:
    def __init__(self, kind: Any, info: Any, parameters: dict[str, Any]) -> None:
        self.kind, self.info, self.parameters = kind, info, parameters

    def num_players(self) -> int:
        return int(self.info.num_players)

    def __str__(self) -> str:
        given = sorted(self.parameters.items())
        return f"{self.kind.short_name}({','.join(f'{name}={value}' for name, value in given)})"


class State:
    def __init__(self, game: Game) -> None:
        self._game, self._history = game, list[int]()

    def get_game(self) -> Game:
        return self._game

    def num_players(self) -> int:
        return self._game.num_players()

    def history(self) -> list[int]:
        return self._history.copy()

    def move_number(self) -> int:
        return len(self._history)

    def legal_actions(self, player: int | None = None) -> list[int]:
        own: Any = self
        if own.is_chance_node():
            return [outcome for outcome, _ in own.chance_outcomes()]
        decides = own.current_player()
        mine = decides >= 0 and player in (None, decides)
        return list(own._legal_actions(decides)) if mine else []

    def observation_tensor(self, player: int) -> Any:
        observer = self._game.make_py_observer()  # type: ignore[attr-defined]
        observer.set_from(self, player)
        return observer.tensor.tolist()

    def apply_action(self, action: int) -> None:
        self._apply_action(action)  # type: ignore[attr-defined]
        self._history.append(action)

    def clone(self) -> Any:
        other = self._game.new_initial_state()  # type: ignore[attr-defined]
        for name, value in self.__dict__.items():
            if name != "_game":
                setattr(other, name, copy.deepcopy(value))
        return other

    def action_to_string(self, player: int, action: int) -> Any:
        return self._action_to_string(player, action)  # type: ignore[attr-defined]


class Bot:
    pass


class Rollouts:
    def __init__(self, n_rollouts: int = 1, random_state: Any = None) -> None:
        self.n_rollouts = n_rollouts


OPEN_SPIEL: dict[str, dict[str, Any]] = {
    "pyspiel": {
        **{thing.__name__: thing for thing in (Game, State, Bot, PlayerId)},
        "GameType": Anything,
        "GameInfo": Anything,
        "register_game": lambda kind, game: None,
    },
    "open_spiel.python.observation": {"IIGObserverForPublicInfoGame": Anything},
    "open_spiel.python.algorithms.mcts": {"RandomRolloutEvaluator": Rollouts},
}


def load(adapter: str, modules: dict[str, dict[str, Any]]) -> Any:
    """Import an adapter on stand-ins for these modules, which are gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        for name, content in modules.items():
            for parent in itertools.accumulate(name.split("."), "{}.{}".format):
                patch.setitem(sys.modules, parent, ModuleType(parent))
            vars(sys.modules[name]).update(content)
        patch.delitem(sys.modules, adapter, raising=False)
        result = importlib.import_module(adapter)
    sys.modules.pop(adapter)
    return result
