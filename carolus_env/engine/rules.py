"""The rules as data: sizes, options and the 95 actions. Nothing here plays.

Sources: the rulebook's pages on 2, 3 and 4 players, and the project's rulings (docs/rules.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple, TypedDict, get_args

from carolus_env.system import untrusted
from carolus_env.system.options import check_fields, declared, described, option, whole_number

# ------------------------------------------------------------------------------------ sizes

TERRITORIES: Final = 15
CLANS: Final = 5
CLAN_NAMES: Final = ("red", "pink", "blue", "yellow", "green")
PALADINS_LAID_OUT: Final = 3  # paladins of each clan, one on each territory
DISCS: Final = 5  # numbered 1 to 5; also the rounds until they are taken back
CROWN: Final = 5  # the sixth face of a die; faces 0-4 are the clans
FACES: Final = 6
MAX_PLAYERS: Final = 4
MAX_TEAMS: Final = 3
MIN_REGIONS: Final = 4  # with fewer left the game ends
NOBODY: Final = -1

# By number of players (0 and 1 never occur).
TEAMS: Final = (0, 0, 2, 3, 2)
RESERVE: Final = (0, 0, 7, 9, 7)
DICE: Final = (0, 0, 3, 4, 3)  # also the paladins to play in a turn
CASTLES_TO_WIN: Final = (0, 0, 10, 8, 10)

# ------------------------------------------------------------------------------------ phases

ROLL: Final = 0  # chance: `player` is to roll `dice_due` dice
CROWN_CHOICE: Final = 1
DISC: Final = 2
PLACE: Final = 3
MOVE: Final = 4
OVER: Final = 5
PHASE_NAMES: Final = ("roll", "crown", "disc", "place", "move", "over")

# Why a game ended.
NOT_OVER: Final = 0
BY_CASTLES: Final = 1
BY_REGIONS: Final = 2
BY_MAX_ROUNDS: Final = 3  # a truncation: nobody wins, every payoff is 0
BY_FORFEIT: Final = 4  # an environment's answer to an illegal action; not a rule of the game
REASON_NAMES: Final = (None, "castles", "regions", "max_rounds", "forfeit")

# ------------------------------------------------------------------------------------ actions


class ActionGroup(NamedTuple):
    """A run of action numbers: ``first`` to ``first + size - 1``."""

    name: str
    first: int
    size: int
    phase: int
    meaning: str


DESTINATIONS: Final = 16  # the court and at most 15 regions
ACTION_GROUPS: Final = (
    ActionGroup("disc", 0, DISCS, DISC, "play disc 1 + k"),
    ActionGroup("crown", 5, CLANS, CROWN_CHOICE, "a crown becomes a paladin of clan k"),
    ActionGroup("move", 10, DISCS, MOVE, "move the Emperor 1 + k steps"),
    ActionGroup(
        "place",
        15,
        CLANS * DESTINATIONS,
        PLACE,
        "k = 16 c + d: a paladin of clan c to the player's court (d = 0) or to region d - 1",
    ),
)
FIRST_DISC, FIRST_CROWN, FIRST_MOVE, FIRST_PLACE = (group.first for group in ACTION_GROUPS)
ACTIONS: Final = FIRST_PLACE + CLANS * DESTINATIONS
"""Number of actions: 95."""


def disc_action(number: int) -> int:
    """Return the action number of playing disc ``number`` (1-5)."""
    return FIRST_DISC + whole_number("disc", number, 1, DISCS) - 1


def crown_action(clan: int) -> int:
    """Return the action number of turning a crown into a paladin of ``clan`` (0-4)."""
    return FIRST_CROWN + whole_number("clan", clan, 0, CLANS - 1)


def move_action(steps: int) -> int:
    """Return the action number of moving the Emperor ``steps`` (1-5) steps."""
    return FIRST_MOVE + whole_number("steps", steps, 1, DISCS) - 1


def court_action(clan: int) -> int:
    """Return the action number of playing a paladin of ``clan`` (0-4) to the player's court."""
    return FIRST_PLACE + DESTINATIONS * whole_number("clan", clan, 0, CLANS - 1)


def region_action(clan: int, region: int) -> int:
    """Return the action of playing a paladin of ``clan`` to ``region`` (0 is the Emperor's)."""
    return court_action(clan) + 1 + whole_number("region", region, 0, TERRITORIES - 1)


class ActionParts(NamedTuple):
    """Meaning of an action number."""

    # ``"disc"``, ``"crown"``, ``"move"`` or ``"place"``, as in `ACTION_GROUPS`
    kind: Literal["disc", "crown", "move", "place"]
    number: int = 0  # the disc, or steps of the Emperor, 1 to 5; 0 for crowns and paladins
    clan: int = NOBODY  # the clan of the crown or the paladin, 0 to 4; `NOBODY` for discs and moves
    # the paladin's: 0 is the player's court, 1 + k the region k counted clockwise from the
    # Emperor's; `NOBODY` for everything else
    destination: int = NOBODY


def action_parts(action: int) -> ActionParts:
    """Take an action number apart: the only place that does, kernels aside."""
    action = whole_number("action", action, 0, ACTIONS - 1)
    if action >= FIRST_PLACE:
        clan, destination = divmod(action - FIRST_PLACE, DESTINATIONS)
        return ActionParts("place", clan=clan, destination=destination)
    if action >= FIRST_MOVE:
        return ActionParts("move", number=action - FIRST_MOVE + 1)
    if action >= FIRST_CROWN:
        return ActionParts("crown", clan=action - FIRST_CROWN)
    return ActionParts("disc", number=action - FIRST_DISC + 1)


def action_text(action: int) -> str:
    """Say in words what an action number means, e.g. ``'red paladin to region 3'``."""
    kind, number, clan, destination = action_parts(action)
    if kind == "place":
        where = "the court" if destination == 0 else f"region {destination - 1}"
        return f"{CLAN_NAMES[clan]} paladin to {where}"
    if kind == "move":
        return f"Emperor {number} step{'s' if number > 1 else ''}"
    if kind == "crown":
        return f"crown becomes {CLAN_NAMES[clan]}"
    return f"disc {number}"


# ------------------------------------------------------------------------------------ options

CrownChoice = Literal["on_roll", "deferred"]
Partners = Literal["opposite", "adjacent"]


@described
@dataclass(frozen=True, slots=True)
class Rules:
    """Number of players and options of a game; every default is the printed rulebook's.

    What a field says about itself is all that the game's record, commands, environments, configs,
    forms and tables know of it (`system.options`).
    """

    players: int = option(2, "players of a game; four are two teams of partners", among=(2, 4))
    crown_choice: CrownChoice = option(
        "on_roll",
        "when crowns are decided: at once, or at the start of their player's next turn",
        among=get_args(CrownChoice),
    )
    partners: Partners = option(
        "opposite",
        "seats of the teams of four players: {0,2} {1,3}, or {0,1} {2,3}",
        among=get_args(Partners),
    )
    paladins_per_clan: int = option(
        40,
        "paladins of each clan, those laid out on the territories included",
        among=(PALADINS_LAID_OUT, 200),
    )
    max_rounds: int | None = option(
        100, "rounds after which a game is cut off", among=(1, 65535), or_none=True
    )

    def __post_init__(self) -> None:
        try:
            check_fields(self)
        except ValueError as error:
            raise ValueError(f"rules: {error}") from None

    @property
    def teams(self) -> int:
        """Number of teams: that of the players, or two with four players."""
        return TEAMS[self.players]

    @property
    def reserve(self) -> int:
        """Paladins in a full reserve, and dice of a set-up roll."""
        return RESERVE[self.players]

    @property
    def dice(self) -> int:
        """Dice of a roll in a turn, and paladins to play in a turn."""
        return DICE[self.players]

    @property
    def castles_to_win(self) -> int:
        """Castles with which a team has won."""
        return CASTLES_TO_WIN[self.players]

    def team(self, seat: int) -> int:
        """Return the team of ``seat`` (0 to players - 1)."""
        if self.players < 4:
            return seat
        return seat % 2 if self.partners == "opposite" else seat // 2

    def to_dict(self) -> dict[str, Any]:
        """Return the ``rules`` object of a game record."""
        return asdict(self)

    @classmethod
    def from_dict(cls, rules: Mapping[str, Any]) -> Rules:
        """Read the ``rules`` object of a game record; absent keys take their defaults."""
        untrusted.only(rules, OPTIONS, "rules")
        return cls(**rules)

    def to_codes(self) -> dict[str, int]:
        """Return each option as a number: a word by its place among those allowed, None as 0."""
        codes = {}
        for name, entry in OPTIONS.items():
            value = getattr(self, name)
            codes[name] = entry.among.index(value) if isinstance(value, str) else value or 0
        return codes

    @classmethod
    def from_codes(cls, codes: Mapping[str, int]) -> Rules:
        """Return the rules of which `to_codes` gave the numbers."""
        options: dict[str, Any] = {}
        for name, code in codes.items():
            entry = OPTIONS[name]
            number = None if code == 0 and entry.or_none else code
            options[name] = entry.among[code] if isinstance(entry.default, str) else number
        return cls(**options)


OPTIONS: Final = declared(Rules)
"""Options of `Rules` by name; see `system.options`."""


class RuleOptions(TypedDict, total=False):
    """The options of `Rules` but ``players`` as keywords, for type checkers and editors."""

    crown_choice: CrownChoice
    partners: Partners
    paladins_per_clan: int
    max_rounds: int | None
