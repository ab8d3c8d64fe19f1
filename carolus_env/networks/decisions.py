"""A policy over single decisions: logits of the 95 actions, and each seat's expected payoff.

The network has a vector for each region, each clan, and one for the rest, the *whole*. All regions
share their weights, and so do all clans: renaming the clans renames the outputs and changes nothing
else. Numbers become *steps*, 1 for each bound that they reach ("at least 2 stronger"). In each of
`LAYERS` layers regions and clans exchange messages along the paladins::

    clans   = relu(clans + sum of the regions, once for each paladin there + whole)
    regions = relu(regions + sum of the clans, once for each paladin here + whole + place)
    whole   = relu(whole + sum of the regions + sum of the clans)

each term through a matrix of its own. `forward` is one function for NumPy and PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from carolus_env.engine import observation, rules
from carolus_env.networks.files import Model
from carolus_env.system.arrays import F32
from carolus_env.system.options import whole_number

LAYERS: Final = 2
LARGEST_LOGIT: Final = 50.0  # libraries mask by large numbers, which no logit may reach
LIMITS: Final = (1, 1024)  # the lowest and the highest `Size.region` and `Size.whole`

# Steps: from the first number to the last.
MARGINS: Final = (-3, 4)  # of a team's strength on a region over the strongest other team's
LEADS: Final = (-3, 4)  # of a player's paladins of a clan in court over another player's most
HELD: Final = (1, 4)  # of a player's paladins of a clan in reserve
FEW_REGIONS: Final = (rules.MIN_REGIONS, 12)  # of the number of regions

# Scales bring inputs, messages and sums to the order of 1. They belong to the weights.
CASTLES_SCALE: Final = 0.25
PALADINS_SCALE: Final = 0.2  # on a region, and of messages
COURT_SCALE: Final = 0.1
RESERVE_SCALE: Final = 0.2
CLAN_SCALE: Final = 0.05  # paladins of a clan on all regions
SUPPLY_SCALE: Final = 0.025
REGIONS_SUM_SCALE: Final = 0.2
CLANS_SUM_SCALE: Final = 0.4
REACH_SCALE: Final = 0.5

_OF_CLANS: Final = {"supply", "reserves", "courts", "control"}


@dataclass(frozen=True)
class Size:
    """The sizes of a network."""

    players: int  # number of players, 2 to 4
    region: int = 32  # width of the vectors of regions and clans
    whole: int = 128  # width of the vector of the whole

    def __post_init__(self) -> None:
        whole_number("players", self.players, 2, rules.MAX_PLAYERS)
        for name in ("region", "whole"):
            whole_number(name, getattr(self, name), *LIMITS)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of weights: inputs first; ``*_b`` are biases."""
        d, z, teams = self.region, self.whole, rules.TEAMS[self.players]
        observations = np.zeros((1, observation.length(self.players)), np.float32)
        rest, clan, region, *_ = (x.shape[-1] for x in inputs(observations, self.players, np))
        shapes: dict[str, tuple[int, ...]] = {"whole": (rest, z), "whole_b": (z,)}
        for i in range(LAYERS):
            shapes |= {
                f"clan_{i}": (clan, d), f"clan_{i}_region": (region, d),
                f"clan_{i}_whole": (z, d), f"clan_{i}_b": (d,),
                f"region_{i}": (region, d), f"region_{i}_clan": (d, d),
                f"region_{i}_whole": (z, d), f"region_{i}_b": (rules.TERRITORIES, d),
                f"whole_{i}": (z, z), f"whole_{i}_region": (d, z),
                f"whole_{i}_clan": (d, z), f"whole_{i}_b": (z,),
            }  # fmt: skip
            clan = region = d
        return {
            **shapes,
            "share": (z, teams), "share_b": (teams,),
            "disc": (z, rules.DISCS), "disc_b": (rules.DISCS,),
            "reach_region": (d, d), "reach_whole": (z, d), "reach_b": (rules.DISCS, d),
            "reach": (d, 1), "crown": (d, 1), "court": (d, 1),
            "move": (d, 1), "move_b": (rules.DISCS,),
            "place_clan": (d, 1), "place_region": (d, 1),
            "pair_clan": (d, d), "pair_region": (d, d),
        }  # fmt: skip


class DecisionModel(Model[Size]):
    """A trained network; see `Model`."""

    format: ClassVar[str] = "carolus-decisions"
    version: ClassVar[int] = 1
    size_type: ClassVar[type] = Size

    @classmethod
    def versions(cls) -> dict[str, str | int]:
        """Return the format and the versions, that of the observation included."""
        return {**super().versions(), "observation_version": observation.VERSION}


def random_weights(size: Size, seed: int) -> dict[str, F32]:
    """Return weights with which all legal actions are about equally likely.

    He's (arXiv:1502.01852) before a rectifier, less where several terms are added or are outputs.
    """
    random, weights = np.random.default_rng(seed), {}
    outputs = {"share", "disc", "reach", "crown", "court", "move", "pair_clan"}
    outputs |= {"place_clan", "place_region"}
    for name, shape in size.shapes().items():
        spread = math.sqrt(2 / shape[0])
        if name.endswith("_b"):
            spread = 0.0
        elif name in outputs:
            spread *= 0.02
        elif name[-1] not in "01" and name not in ("whole", "pair_region"):  # one of several terms
            spread *= 0.5
        weights[name] = (spread * random.standard_normal(shape)).astype(np.float32)
    return weights


# ------------------------------------------------------------------------------------- inputs


def inputs(observations: Any, players: int, xp: ModuleType) -> tuple[Any, ...]:
    """Arrange N observations, as float32 arrays of NumPy or PyTorch.

    These are: of the whole ``(N, A)``, of clans ``(N, 5, B)`` and regions ``(N, 15, C)``; scaled
    paladins by clan and region; 1 for each region in the circle ``(N, 15)``; their number
    ``(N, 1)``; and 1 for each seat of the viewer's team ``(N, players)``.
    """
    n, teams = len(observations), rules.TEAMS[players]
    layout, slices = observation.layout(players), observation.slices(players)
    blocks = {
        each.name: observations[:, slices[each.name]].reshape(n, *each.shape) for each in layout
    }

    def steps(x: Any, bounds: tuple[int, int]) -> Any:
        """Return 1 for each step that ``x`` reaches, else 0, along a new last axis."""
        low, high = bounds
        return xp.clip(x[..., None] - _numbers(low - 1, high, observations, xp), 0, 1)

    def by_clan(x: Any) -> Any:
        """Turn ``(N, K, 5, ...)`` into ``(N, 5, ...)``."""
        return xp.moveaxis(x, 2, 1).reshape(n, rules.CLANS, -1)

    paladins, exists = blocks["region_paladins"], blocks["region_exists"]
    count = exists.sum(1)[:, None]
    castles = blocks["region_castles"]
    owned = xp.concatenate([xp.clip(castles, 0, 1), CASTLES_SCALE * castles], axis=1)
    margins = _over_others(blocks["region_strength"], xp)
    margins = margins[:, :1] if teams == 2 else margins  # the other one is its negative
    place = _numbers(0, rules.TERRITORIES, observations, xp)
    after = (place + 1) * xp.clip(count - 1 - place, 0, 1)
    before = place - 1 + count * xp.clip(1 - place, 0, 1)
    of_regions = [
        exists[:, None],
        owned,
        xp.moveaxis(steps(margins, MARGINS), 3, 2).reshape(n, -1, rules.TERRITORIES),
        _take(owned, after[:, None], xp),
        _take(owned, before[:, None], xp),
        PALADINS_SCALE * paladins.sum(1)[:, None],
    ]
    courts, control, reserves = blocks["courts"], blocks["control"], blocks["reserves"]
    ours = (control * blocks["partner"][:, :, None]).sum(1)[:, None]
    theirs = control.sum(1)[:, None] - ours
    of_clans = [
        by_clan(steps(_over_others(courts, xp), LEADS)),
        by_clan(steps(reserves, HELD)),
        by_clan(xp.concatenate([control, ours, theirs], axis=1)),
        by_clan(COURT_SCALE * courts),
        by_clan(RESERVE_SCALE * reserves),
        SUPPLY_SCALE * blocks["supply"][:, :, None],
        CLAN_SCALE * paladins.sum(2)[:, :, None],
    ]
    rest = [
        (blocks[block.name] / block.scale).reshape(n, -1)
        for block in layout
        if block.name not in _OF_CLANS and not block.name.startswith("region_")
    ]
    rest += [
        steps(blocks["placements_left"].reshape(n), (1, rules.DICE[players])),
        steps(blocks["castles"], (1, rules.CASTLES_TO_WIN[players])).reshape(n, -1),
        steps(count[:, 0], FEW_REGIONS),
    ]
    whole, clans = xp.concatenate(rest, axis=1), xp.concatenate(of_clans, axis=2)
    regions = xp.swapaxes(xp.concatenate(of_regions, axis=1), 1, 2)
    return whole, clans, regions, PALADINS_SCALE * paladins, exists, count, blocks["partner"]


def _numbers(first: int, after: int, beside: Any, xp: ModuleType) -> Any:
    """Return ``first .. after - 1`` as float32, on the device of an array."""
    return xp.arange(first, after, dtype=xp.float32, device=beside.device)


def _over_others(x: Any, xp: ModuleType) -> Any:
    """Return each of K numbers less the largest of the others, ``(N, K, M)``."""
    most = []
    for k in range(x.shape[1]):
        rest = (x[:, other] for other in range(x.shape[1]) if other != k)
        most.append(reduce(xp.maximum, rest))
    return x - xp.stack(most, axis=1)


def _take(x: Any, where: Any, xp: ModuleType) -> Any:
    """Pick entries of the last axis of ``(N, K, M)`` by ``(N, 1, L)`` indices: ``(N, K, L)``."""
    if xp is np:
        return np.take_along_axis(x, where.astype(np.int64), axis=2)
    return xp.take_along_dim(x, where.long(), dim=2)


# ------------------------------------------------------------------------------------ forward


def forward(
    weights: Mapping[str, Any], observations: Any, players: int, xp: ModuleType
) -> tuple[Any, Any]:
    """Compute logits ``(N, 95)``, those of illegal actions included, and values, as float32.

    These are ``(N, players)`` expected payoffs of the seats, clockwise from the viewer's. ``xp`` is
    ``numpy`` or ``torch``, of which ``weights`` are, the arrays that `Size.shapes` names;
    ``observations`` are ``(N, length)``, whole numbers as float32.
    """
    w, relu = weights, partial(np.maximum, np.float32(0)) if xp is np else xp.relu
    whole, clans, regions, paladins, exists, count, partner = inputs(observations, players, xp)
    whole = relu(whole @ w["whole"] + w["whole_b"])
    for i in range(LAYERS):
        clans = relu(
            clans @ w[f"clan_{i}"]
            + (paladins @ regions) @ w[f"clan_{i}_region"]
            + (whole @ w[f"clan_{i}_whole"])[:, None]
            + w[f"clan_{i}_b"]
        )
        messages = xp.swapaxes(paladins, 1, 2) @ (clans @ w[f"region_{i}_clan"])
        here = (whole @ w[f"region_{i}_whole"])[:, None] + w[f"region_{i}_b"]
        regions = relu(regions @ w[f"region_{i}"] + messages + here) * exists[:, :, None]
        whole = relu(
            whole @ w[f"whole_{i}"]
            + (REGIONS_SUM_SCALE * regions.sum(1)) @ w[f"whole_{i}_region"]
            + (CLANS_SUM_SCALE * clans.sum(1)) @ w[f"whole_{i}_clan"]
            + w[f"whole_{i}_b"]
        )
    shares, teams = softmax(whole @ w["share"] + w["share_b"], xp), rules.TEAMS[players]
    values = (teams * shares - 1) / (teams - 1)
    if teams < players:  # partners are paid alike
        values = partner * values[:, :1] + (1 - partner) * values[:, 1:]

    within = REACH_SCALE * xp.cumsum(regions[:, 1 : rules.DISCS + 1], 1)  # the reach of each disc
    reach = within @ w["reach_region"] + (whole @ w["reach_whole"])[:, None] + w["reach_b"]
    discs = whole @ w["disc"] + w["disc_b"] + (relu(reach) @ w["reach"])[:, :, 0]
    crowns = (clans @ w["crown"])[:, :, 0]
    stops = xp.swapaxes(regions @ w["move"], 1, 2)
    step = _numbers(1, rules.DISCS + 1, count, xp)
    step = step - count * xp.floor((step + 0.5) / count)  # regions that steps lead to
    moves = _take(stops, step[:, None], xp)[:, 0] + w["move_b"]
    pairs = (clans @ w["pair_clan"]) @ xp.swapaxes(regions @ w["pair_region"], 1, 2)
    pairs = pairs + clans @ w["place_clan"] + xp.swapaxes(regions @ w["place_region"], 1, 2)
    places = xp.concatenate([clans @ w["court"], pairs], axis=2).reshape(len(whole), -1)
    logits = xp.concatenate([discs, crowns, moves, places], axis=1)
    return LARGEST_LOGIT * xp.tanh(logits / LARGEST_LOGIT), values


def softmax(scores: Any, xp: ModuleType) -> Any:
    """Return the softmax of each row."""
    odds = xp.exp(scores - xp.amax(scores, 1)[:, None])
    return odds / odds.sum(1)[:, None]
