"""A network built on the game's structure: regions in a circle, clans, players and paladins.

An observation is split into three kinds of vectors: one per region, one per clan, and one for the
rest. All regions share their weights, and so do all clans; so renaming the clans renames the
outputs and changes nothing else. Regions and clans exchange messages along the paladins: a region
receives each clan's message once per paladin of that clan on it, and a clan each region's.

`forward` is one function for NumPy and PyTorch: training runs it, and tests compare the kernel that
bots play by (`neural.inference`) with it. Its outputs are a logit for each action and a score for
each team, the viewer's team first; the softmax of the scores gives the win probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from carolus_env.engine import observation
from carolus_env.engine.rules import CASTLES_TO_WIN, DICE, DISCS, TEAMS, TERRITORIES

VERSION: Final = 2
"""Version of the network; it changes when the same weights would give other outputs.

Version 1 chose discs by the trunk alone; now it looks at the regions within reach too.
"""


class Steps(NamedTuple):
    """A number that becomes several inputs: 1 for each step that it reaches, else 0."""

    low: int
    """The first step."""
    high: int
    """One more than the last step."""


MARGINS: Final = Steps(-3, 5)
"""Of the margins of strength on regions."""
LEADS: Final = Steps(-3, 5)
"""Of the leads in courts."""
HELD: Final = Steps(1, 5)
"""Of paladins of a clan in a reserve."""
FEW_REGIONS: Final = Steps(4, 10)
"""Of the number of regions."""

# Scales bring inputs, messages and sums to the order of 1. They belong to the weights.
CASTLES_SCALE: Final = 0.25  # castles on a region
REGION_SCALE: Final = 0.2  # paladins on a region
COURT_SCALE: Final = 0.1  # paladins of a clan in a court
RESERVE_SCALE: Final = 0.2  # paladins of a clan in a reserve
CLAN_SCALE: Final = 0.05  # paladins of a clan on all regions
SUPPLY_DIVISOR: Final = 40  # paladins of a clan in the supply are divided by it
MESSAGE_SCALE: Final = 0.2  # a message, per paladin
REGIONS_SUM_SCALE: Final = 0.2  # the sum over the regions
CLANS_SUM_SCALE: Final = 0.4  # the sum over the clans
REACH_SCALE: Final = 0.5  # the sum over the regions within a disc's reach

BY_REGION = {"region_exists", "region_castles", "region_paladins", "region_strength"}
BY_CLAN = {"supply", "reserves", "courts", "control"}


@dataclass(frozen=True)
class Size:
    """Number of players and widths of the network.

    Raises:
        ValueError: for a value out of range.
    """

    players: int
    region: int = 32
    """Width of the layers of regions and clans."""
    trunk: int = 128
    """Width of the layers of the whole."""

    def __post_init__(self) -> None:
        if type(self.players) is not int or self.players not in (2, 3, 4):
            raise ValueError(f"players must be 2, 3 or 4, got {self.players!r}")
        for name in ("region", "trunk"):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= 4096:
                raise ValueError(f"{name} must be an integer from 1 to 4096, got {value!r}")


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights by name, float32. ``*_b`` are biases, all others matrices."""
    players, teams = size.players, TEAMS[size.players]
    steps = MARGINS.high - MARGINS.low
    a_region = 1 + 2 * teams + (steps if teams == 2 else steps * teams) + 4 * teams + 1
    a_clan = (LEADS.high - LEADS.low + 3 + HELD.high - HELD.low) * players + teams + 2
    rest = sum(
        int(np.prod(block.shape))
        for block in observation.layout(players)
        if block.name not in BY_REGION | BY_CLAN
    )
    rest += DICE[players] + teams * CASTLES_TO_WIN[players] + FEW_REGIONS.high - FEW_REGIONS.low
    d, z = size.region, size.trunk
    return {
        "rest": (rest, z),
        "rest_b": (z,),
        "clan": (a_clan, d),
        "clan_rest": (z, d),
        "clan_b": (d,),
        "region": (a_region, d),
        "region_rest": (z, d),
        "region_clan": (d, d),
        "region_b": (TERRITORIES, d),
        "clan_2": (d, d),
        "clan_2_region": (d, d),
        "clan_2_b": (d,),
        "trunk_rest": (z, z),
        "trunk_region": (d, z),
        "trunk_clan": (d, z),
        "trunk_b": (z,),
        "clan_3": (d, d),
        "clan_3_trunk": (z, d),
        "clan_3_b": (d,),
        "region_2": (d, d),
        "region_2_clan": (d, d),
        "region_2_trunk": (z, d),
        "region_2_b": (TERRITORIES, d),
        "value_trunk": (z, z),
        "value_region": (d, z),
        "value_clan": (d, z),
        "value_b": (z,),
        "score": (z, teams),
        "score_b": (teams,),
        "disc": (z, DISCS),
        "disc_b": (DISCS,),
        "reach_region": (d, d),
        "reach_trunk": (z, d),
        "reach_value": (z, d),
        "reach_b": (DISCS, d),
        "reach": (d, 1),
        "crown": (d, 1),
        "move": (d, 1),
        "move_b": (DISCS,),
        "court": (d, 1),
        "place_clan": (d, d),
        "place_region": (d, d),
        "place_by_clan": (d, 1),
        "place_by_region": (d, 1),
    }


def initial(size: Size, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    """Weights to start training from: all actions are about equally likely, and so are all teams.

    He's uniform distribution (arXiv:1502.01852) before a rectifier, a hundredth of it before the
    outputs.
    """
    random = np.random.default_rng(seed)
    answers = {"score", "disc", "reach", "crown", "move", "court", "place_clan"}
    answers |= {"place_by_clan", "place_by_region"}
    made = {}
    for name, shape in shapes(size).items():
        limit = 0.0 if name.endswith("_b") else np.sqrt(6 / shape[0])
        if name in answers:
            limit *= 0.01
        elif "_" in name and name != "place_region":  # one of several that are added
            limit *= 0.5
        made[name] = random.uniform(-limit, limit, shape).astype(np.float32)
    return made


# ------------------------------------------------------------------------------------ forward


def forward(weights: Mapping[str, Any], seen: Any, players: int, xp: ModuleType) -> tuple[Any, Any]:
    """Logits of the actions and scores of the teams.

    Args:
        weights: of `shapes`, arrays of ``xp``.
        seen: ``(N, length)`` observations, unscaled, as float32.
        players: 2, 3 or 4.
        xp: ``numpy`` or ``torch``.

    Returns:
        ``(N, 95)`` logits, illegal actions included, and ``(N, teams)`` scores, the viewer's team
        first; float32.
    """
    w, teams = weights, TEAMS[players]
    blocks = _unpack(seen, players)
    paladins = blocks["region_paladins"]
    count = blocks["region_exists"].sum(-1)
    rest, clan, region = _features(blocks, players, count, xp)

    relu = _relu if xp is np else xp.relu
    by_region = MESSAGE_SCALE * xp.swapaxes(paladins, 1, 2)
    by_clan = MESSAGE_SCALE * paladins
    exists = blocks["region_exists"][:, :, None]

    rest = relu(rest @ w["rest"] + w["rest_b"])
    clan = relu(clan @ w["clan"] + (rest @ w["clan_rest"] + w["clan_b"])[:, None])
    messages = by_region @ (clan @ w["region_clan"]) + w["region_b"]
    messages = messages + (rest @ w["region_rest"])[:, None]
    region = relu(region @ w["region"] + messages) * exists
    clan = relu(clan @ w["clan_2"] + by_clan @ (region @ w["clan_2_region"]) + w["clan_2_b"])
    trunk = relu(
        rest @ w["trunk_rest"]
        + (region.sum(1) * REGIONS_SUM_SCALE) @ w["trunk_region"]
        + (clan.sum(1) * CLANS_SUM_SCALE) @ w["trunk_clan"]
        + w["trunk_b"]
    )
    clan = relu(clan @ w["clan_3"] + (trunk @ w["clan_3_trunk"] + w["clan_3_b"])[:, None])
    messages = by_region @ (clan @ w["region_2_clan"]) + w["region_2_b"]
    whole = (trunk @ w["region_2_trunk"])[:, None]
    region = relu(region @ w["region_2"] + messages + whole) * exists

    value = relu(
        trunk @ w["value_trunk"]
        + (region.sum(1) * REGIONS_SUM_SCALE) @ w["value_region"]
        + (clan.sum(1) * CLANS_SUM_SCALE) @ w["value_clan"]
        + w["value_b"]
    )
    scores = value @ w["score"] + w["score_b"]

    reached = REACH_SCALE * xp.cumsum(region[:, 1 : DISCS + 1], 1)  # within each disc's reach
    whole = (trunk @ w["reach_trunk"] + value @ w["reach_value"])[:, None] + w["reach_b"]
    reached = relu(reached @ w["reach_region"] + whole)
    discs = trunk @ w["disc"] + w["disc_b"] + (reached @ w["reach"])[:, :, 0]
    crowns = (clan @ w["crown"])[:, :, 0]
    stops = (region @ w["move"])[:, :, 0]
    steps = xp.arange(1, DISCS + 1, dtype=xp.float32, device=seen.device)
    rounds = xp.floor((steps + 0.5) / count[:, None])
    where = steps - count[:, None] * rounds  # steps modulo regions
    moves = _take(stops, where, xp) + w["move_b"]
    places = (clan @ w["place_clan"]) @ xp.swapaxes(region @ w["place_region"], 1, 2)
    places = places + clan @ w["place_by_clan"] + xp.swapaxes(region @ w["place_by_region"], 1, 2)
    placements = xp.concatenate([clan @ w["court"], places], axis=2).reshape(seen.shape[0], -1)
    assert scores.shape[1] == teams
    return xp.concatenate([discs, crowns, moves, placements], axis=1), scores


def _unpack(seen: Any, players: int) -> dict[str, Any]:
    where = observation.slices(players)
    return {
        block.name: seen[:, where[block.name]].reshape(seen.shape[0], *block.shape)
        for block in observation.layout(players)
    }


def _features(blocks: dict[str, Any], players: int, count: Any, xp: ModuleType) -> tuple[Any, ...]:
    """The inputs: of the rest ``(N, A)``, of clans ``(N, 5, B)``, of regions ``(N, 15, C)``."""
    teams = TEAMS[players]
    n = count.shape[0]

    def at_least(x: Any, low: int, high: int) -> Any:
        """1 for each step (see `Steps`) that ``x`` reaches, else 0."""
        steps = xp.arange(low - 1, high - 1, dtype=xp.float32, device=x.device)
        return xp.clip(x[..., None] - steps, 0, 1)

    def over_others(x: Any) -> Any:
        """``(N, K, M)``: each of the K numbers less the largest of the others."""
        if x.shape[1] == 2:
            return x - xp.flip(x, (1,))
        others = []
        for k in range(x.shape[1]):
            rest = [x[:, i] for i in range(x.shape[1]) if i != k]
            most = rest[0]
            for another in rest[1:]:
                most = xp.maximum(most, another)
            others.append(most)
        return x - xp.stack(others, axis=1)

    def last(x: Any) -> Any:
        """``(N, K, M)`` or ``(N, K, M, L)`` to ``(N, M, K)`` or ``(N, M, K * L)``."""
        return xp.moveaxis(x, 2, 1).reshape(n, x.shape[2], -1)

    # regions
    castles, strength = blocks["region_castles"], blocks["region_strength"]
    margins = over_others(strength)
    margins = margins[:, :1] if teams == 2 else margins
    owned = xp.concatenate([xp.clip(castles, 0, 1), CASTLES_SCALE * castles], axis=1)
    place = xp.arange(0, TERRITORIES, dtype=xp.float32, device=castles.device)
    ends = xp.clip(place + 2 - count[:, None], 0, 1)  # 1 from the last region on
    following = (place + 1) * (1 - ends)
    before = place - 1 + count[:, None] * xp.clip(1 - place, 0, 1)
    paladins = blocks["region_paladins"]
    region = xp.concatenate(
        [
            blocks["region_exists"][:, None],
            owned,
            xp.moveaxis(at_least(margins, *MARGINS), 3, 2).reshape(n, -1, TERRITORIES),
            _take(owned, following[:, None], xp),
            _take(owned, before[:, None], xp),
            REGION_SCALE * paladins.sum(1)[:, None],
        ],
        axis=1,
    )

    # clans
    courts, control, reserves = blocks["courts"], blocks["control"], blocks["reserves"]
    ours = (control * blocks["partner"][:, :, None]).sum(1)[:, None]
    sides = xp.concatenate([ours, control.sum(1)[:, None] - ours], axis=1)
    clan = xp.concatenate(
        [
            last(at_least(over_others(courts), *LEADS)),
            last(at_least(reserves, *HELD)),
            last(control),
            last(COURT_SCALE * courts),
            last(RESERVE_SCALE * reserves),
            last(sides if teams == 2 else control),
            (blocks["supply"] / SUPPLY_DIVISOR)[:, :, None],
            (CLAN_SCALE * paladins.sum(2))[:, :, None],
        ],
        axis=2,
    )

    # the rest
    shared = [
        (blocks[block.name] / block.scale).reshape(n, -1)
        for block in observation.layout(players)
        if block.name not in BY_REGION | BY_CLAN
    ]
    rest = xp.concatenate(
        [
            *shared,
            at_least(blocks["placements_left"], 1, DICE[players] + 1),
            at_least(blocks["castles"], 1, CASTLES_TO_WIN[players] + 1).reshape(n, -1),
            at_least(count, *FEW_REGIONS),
        ],
        axis=1,
    )
    return rest, clan, xp.swapaxes(region, 1, 2)


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _take(values: Any, places: Any, xp: ModuleType) -> Any:
    """The values at the indices ``places`` (as float32) of the last axis."""
    if xp is np:
        wide = np.broadcast_to(places, (*values.shape[:-1], places.shape[-1]))
        return np.take_along_axis(values, wide.astype(np.int64), -1)
    return xp.gather(values, -1, places.long().expand(*values.shape[:-1], -1))
