"""Positions as JSON: written, read back, and refused with the reason when no game has them."""

import contextlib
import copy
from functools import cache

import numpy as np
import positions
import pytest
import strategies
from damage import both, nested, put, without
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import history, sample, sample_states

from carolus_env import engine
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import PHASE_NAMES, REASON_NAMES, Rules
from carolus_env.engine.state import to_bytes
from carolus_env.records.position import PositionError, check_positions, from_dict, to_dict


def test_a_seed_gives_a_position_other_dice():
    data = to_dict(engine.new_games(Rules(), 1, seed=5)[0])
    dice = {seed: int(from_dict(data, seed=seed)["generator"][0]) for seed in (0, 1, 2)}
    assert len({*dice.values(), int(data["generator"], 16)}) == 4
    laid_out = {"territories": [0, 1, 2, 3, 4] * 3, "first_player": 0, "roll": False}
    assert dice[1] == int(engine.new_games(Rules(), 1, seed=1, **laid_out)["generator"][0])


def test_what_the_rest_decides_may_be_left_out():
    """Castles, dice, generator and options always; the order where the discs decide it."""
    for seed in range(5):
        for state in sample(history(Rules(players=3), seed), seed, 30):
            data = to_dict(state)
            decided = len(set(data["discs_played"]) - {0}) == 3
            absent = ["castles", "dice_due", "generator", *(["order"] if decided else [])]
            for key in absent if data["result"] else [*absent, "result"]:
                del data[key]
            data["rules"] = {"players": 3}
            before = copy.deepcopy(data)
            again = from_dict(data)
            assert data == before
            again["generator"] = state["generator"]
            assert again[0] == state


@cache
def _found(phase, players, round, deferred, reason):
    """The first state of that kind in random games."""
    kind = Rules(players=players, crown_choice="deferred" if deferred else "on_roll", max_rounds=60)
    for seed in range(200):
        states = history(kind, seed, games=16, limit=1200)
        fits = states["phase"] == PHASE_NAMES.index(phase)
        fits &= states["reason"] == REASON_NAMES.index(reason)
        if phase != "over":
            fits &= states["round"] == round
        if fits.any():
            return to_dict(states[fits][0])
    raise AssertionError("no such state found")


def position_in(phase, players=2, *, round=2, deferred=False, reason=None):
    return copy.deepcopy(_found(phase, players, round, deferred, reason))


KEYS = (
    "round", "phase", "player", "regions", "courts", "control", "reserves", "crowns", "supply",
    "discs_in_hand", "discs_played", "placements_left", "rules",
)  # fmt: skip


IN_RULES = [("rules", key) for key in ("players", "paladins_per_clan", "max_rounds", "partners")]
IN_REGION = [("regions", 3, key) for key in ("territories", "paladins", "owner", "castles")]


@pytest.mark.parametrize("path", [*((key,) for key in KEYS), *IN_REGION], ids=str)
def test_a_missing_key_is_named(path):
    data = position_in("place")
    without(*path)(data)
    name = rf"regions\[3\].{path[-1]}" if len(path) > 1 else path[0]
    with pytest.raises(PositionError, match=f"^position: {name} is missing$"):
        from_dict(data)


DEEP = nested(5000)
EMPTY: dict = {}
ODD = (
    None, True, False, -1, 10**30, 10**5000, 1.0, 0.5, float("nan"), float("inf"), "", "3", b"3",
    [], EMPTY, [[]], [None], [True], [0.0], [float("nan")], [10**5000], [-(10**30)], ["a"], [{}],
    [[0, 0, 0, 0, True]] * 2, [[0, 0, 0, 0, 0.0]] * 2, [[0, 0], [0]], [[1, 2], 3],
    DEEP, {"a": DEEP}, object(), np.zeros(5), np.int64(1),
)  # fmt: skip


ALLOWED = {  # the one of those values that is none of a wrong type there
    ("rules",): EMPTY,
    ("rules", "max_rounds"): None,
    ("regions", 3, "owner"): -1,
    ("control", 0): -1,
    ("result",): None,
}
PLACES = [(key,) for key in (*KEYS, "castles", "order", "dice_due", "generator", "result")]
NESTED = [  # by their list, whose other elements are what they were
    ("regions", 3), ("regions", 3, "territories", 0), ("regions", 3, "paladins", 0),
    ("courts", 0), ("courts", 0, 0), ("control", 0), ("reserves", 0), ("crowns", 0),
    ("supply", 0), ("discs_in_hand", 0), ("discs_in_hand", 0, 0), ("discs_played", 0),
    ("castles", 0), ("order", 0), ("rules", "crown_choice"),
]  # fmt: skip
AT_THE_END = [path for path in PLACES if path != ("player",)]  # then nobody is to move


@pytest.mark.parametrize(
    ("phase", "path"),
    [
        *(("place", path) for path in (*PLACES, *IN_RULES, *IN_REGION, *NESTED)),
        *(("over", path) for path in (*AT_THE_END, ("result", "reason"), ("result", "winners"))),
    ],
    ids=str,
)
def test_a_value_of_a_wrong_type_is_a_position_error_that_names_the_key(phase, path):
    """Never another exception, however odd, and never a text without end."""
    over = phase == "over"
    for value in ODD:
        if path in ALLOWED and value is ALLOWED[path] and not (over and path == ("result",)):
            continue
        early = 1 if path in IN_REGION else 2  # in round 1 the region belongs to nobody
        data = position_in(phase, round=early, reason="castles" if over else None)
        put(*path, to=lambda _, value=value: value)(data)
        named = "position: " if path[0] == "rules" or path in NESTED else path[-1]
        with pytest.raises(PositionError, match=named) as error:
            from_dict(data)
        assert len(str(error.value)) < 1000


@pytest.mark.parametrize("thing", [5, [{}], None])
def test_what_is_no_object_is_no_position(thing):
    with pytest.raises(PositionError, match=r"^position: .*an object, got "):
        from_dict(thing)


def first(data, owned):
    return next(i for i, one in enumerate(data["regions"]) if (one["owner"] != -1) == owned)


def in_first(key, to, owned):
    return lambda data: put("regions", first(data, owned), key, to=to)(data)


def plus(number):
    return lambda old: old + number


def of_the_player(key, to):
    return lambda data: put(key, data["player"], to=to)(data)


def from_supply(*target):
    """A paladin of the clan that the supply has most of comes somewhere else."""

    def change(data):
        clan = int(np.argmax(data["supply"]))
        data["supply"][clan] -= 1
        put(*(data["player"] if key == "player" else key for key in target), clan, to=plus(1))(data)

    return change


def back_to_supply(data, paladins):
    data["supply"] = [have + more for have, more in zip(data["supply"], paladins, strict=True)]
    paladins[:] = [0] * 5


def no_paladins_on_a_region(data):
    back_to_supply(data, data["regions"][first(data, owned=False)]["paladins"])


def last_and_first_of_one_team(data):
    for region in data["regions"]:
        if {0, 14} & set(region["territories"]):
            region.update(owner=0, castles=len(region["territories"]))
    del data["castles"]


def take_disc_back(data):
    data["discs_in_hand"][0].append(data["discs_played"][0])


def drop_a_disc(data):
    data["discs_in_hand"][0].pop()


# By the position that is changed: the change, and what is said about it.
REFUSALS = [
    ("place", {}, [
        # What cannot be read.
        (put("rules", to={"players": 5}), "rules: players must be a whole number from 2 to 4"),
        (put("rules", "paladins", to=3), "rules: unknown key 'paladins'"),
        (put("round", to=2**31 + 1), "round must be from 0 to 2147483648, got 2147483649"),
        (put("player", to=2), "player must be from 0 to 1, got 2"),
        (put("placements_left", to=5), "placements_left must be from 0 to 4, got 5"),
        (put("courts", 0, 0, to=198), "courts must be from 0 to 197, got"),
        (put("control", 0, to=2), "control must be from -1 to 1, got"),
        (put("reserves", 0, 0, to=10), "reserves must be from 0 to 9, got"),
        (put("discs_played", 0, to=6), "discs_played must be from 0 to 5, got"),
        (put("discs_in_hand", 1, to=[6]), r"discs_in_hand\[1\] must hold different discs 1 to 5"),
        (put("discs_in_hand", 1, to=[2, 2]), r"different discs 1 to 5, got \[2, 2\]"),
        (put("discs_in_hand", 1, to=[True]), r"different discs 1 to 5, got \[True\]"),
        (put("regions", to=lambda old: old[:1]), "there must be 2 to 15 regions, got 1"),
        (put("regions", 2, "owner", to=2), r"regions\[2\].owner must be from -1 to 1, got 2"),
        (put("regions", to=lambda old: old[::-1]), "must be 0 to 14, each once, clockwise"),
        (put("regions", 0, "territories", 0, to=15), "must be 0 to 14, each once, clockwise"),
        (put("order", to=[1, 1]), r"order must hold every seat once, got \[1, 1\]"),
        (put("castles", 0, to=plus(1)), "castles is .*, but the rest .* implies"),
        (put("dice_due", to=3), "dice_due is 3, but the rest .* implies 0"),
        (put("generator", to="0" * 15), "generator must be 16 hexadecimal digits, got '0000"),
        (put("generator", to="-" + "0" * 15), "generator must be 16 hexadecimal digits, got '-"),
        (put("result", to={}), "result must be null in phase place"),
        # What does not add up.
        (put("supply", 4, to=plus(1)), r"supply hold 41 green paladins \(clan 4\) in all, not 40"),
        (no_paladins_on_a_region, "has fewer paladins than territories; each started with one"),
        (in_first("castles", 1, owned=False), "has 1 castles and 1 territories but no owner"),
        (last_and_first_of_one_team, "from territory 14 and the next one both belong to team 0"),
        # Where the game would be elsewhere.
        (put("rules", "max_rounds", to=1), "round 2 is past max_rounds, 1"),
        (put("placements_left", to=0), "placements_left is 0, but player . plays at most 3"),
        (put("placements_left", to=4), "placements_left is 4, but player . plays at most 3"),
        (put("round", to=0), "round 0 is the set-up, which has no phase place"),
    ]),
    ("place", {"round": 25}, [
        (both(in_first("castles", plus(1), owned=True), without("castles")),
         "castles on . territories; each must have one"),
    ]),
    ("disc", {}, [
        (without("order"), r"order is missing, and the discs played, \[0, 0\], do not decide it"),
        (of_the_player("discs_played", 1), "has played disc 1, which does not fit phase, player"),
        (from_supply("reserves", 0), r"has 8 paladins and crowns in reserve, but at most 7 now"),
        (lambda data: back_to_supply(data, data["reserves"][1]),
         "player 1 has 0 paladins and crowns in reserve; before round 29 it must have 7"),
    ]),
    ("move", {}, [
        (put("placements_left", to=1), "placements_left is 1 in phase move; it must be 0"),
        (put("discs_played", 0, to=0), "player 0 has not played a disc, which does not fit phase"),
        (take_disc_back, "player 0 has disc . both in hand and played"),
        (drop_a_disc, "player 0 has 2 discs in hand, in this round not 3"),
        (put("order", to=lambda old: old[::-1]), "does not follow the discs played: lower numbers"),
        (from_supply("reserves", "player"), "has 5 paladins and crowns in reserve, but"),
    ]),
    ("roll", {}, [
        (put("crowns", to=[1, 1]), "player 0 has undecided crowns, which are"),
        (from_supply("reserves", "player"), "has 5 paladins and crowns in reserve, but"),
    ]),
    ("crown", {}, [
        (of_the_player("crowns", 0), "player . must decide a crown but has none"),
    ]),
    ("place", {"deferred": True}, [
        (put("crowns", to=[8, 8]), "which are decided before paladins are played"),
    ]),
    ("disc", {"deferred": True}, [
        (put("crowns", 0, to=8), "in reserve, but at most 7 now"),
    ]),
    ("roll", {"round": 0}, [
        (put("regions", to=lambda old: old[1:] + old[:1]), "and the Emperor is on territory 0"),
        (from_supply("regions", 3, "paladins"), "nothing has been played"),
        (put("control", 2, to=1), r"in the set-up \(round 0\) nobody controls a clan"),
        (put("discs_in_hand", 1, to=[1]), r"in the set-up \(round 0\) every player holds all five"),
        (put("discs_played", 1, to=1), r"in the set-up \(round 0\) every player holds all five"),
        (from_supply("reserves", "player"), "player . has a reserve before rolling for it"),
    ]),
    ("crown", {"round": 0}, [
        (put("rules", "crown_choice", to="deferred"), "crowns are not decided in the set-"),
    ]),
    ("over", {"reason": "castles"}, [
        (without("result"), "result is missing"),
        (put("result", "reason", to="luck"), "result.reason must be one of .*, got 'luck'"),
        (put("result", "winners", to=[2]), r"result.winners must be teams 0 to 1, got \[2\]"),
        (put("result", "winners", to=[0, 1]), r"winners by castles cannot be \[0, 1\]"),
        (put("result", "winners", 0, to=lambda old: 1 - old), "winners by castles cannot be"),
        (put("result", "reason", to="regions"), r"so the game must be over \(castles\)"),
        (put("placements_left", to=1), "placements_left is 1, but the rest .* implies"),
        (put("discs_played", 0, to=0), "player 0 has not played a disc, which does not fit"),
    ]),
    ("over", {"players": 4, "reason": "regions"}, [
        (put("result", "winners", to=lambda old: [1 - old[0]]), "winners by regions cannot be"),
    ]),
    ("over", {"reason": "max_rounds"}, [
        (put("result", "reason", to="castles"), r"winners by castles cannot be \[\]"),
        (put("result", "reason", to="regions"), r"winners by regions cannot be \[\]"),
        (put("result", "reason", to="forfeit"), "after a forfeit all teams but one must share"),
        (put("result", "winners", to=[0]), r"max_rounds is 60, .* in round 60 with winners \[0\]"),
        (put("rules", "max_rounds", to=None), "max_rounds is None, which cannot end the game"),
    ]),
]  # fmt: skip

CHANGES = [(phase, kind, *row) for phase, kind, rows in REFUSALS for row in rows]


@pytest.mark.parametrize(("phase", "kind", "change", "expected"), CHANGES)
def test_a_position_that_no_game_reaches_is_refused_with_the_reason(phase, kind, change, expected):
    data = position_in(phase, **kind)
    from_dict(copy.deepcopy(data))  # it is the change that makes it impossible
    change(data)
    with pytest.raises(PositionError, match=f"^position: .*{expected}"):
        from_dict(data)


def test_a_position_set_up_against_the_rules_is_refused_with_the_reason():
    held = {"courts": [positions.paladins(red=2)]}
    for sizes, options, said in (
        ([10], {}, "a team has 10 castles in play, so the game must be over .castles."),
        ([5, 5, 5], {}, "only 3 regions are left, so the game must be over .regions."),
        ([], {**held, "control": [1, -1, -1, -1, -1]}, "player 1 controls red, but the courts"),
        ([], {**held, "control": [-1] * 5}, "nobody controls red, but courts hold"),
        ([], {"discs": [1, 1, 2]}, "player 1 has repeated disc 1, but could have"),
    ):
        circle = [positions.region(owner, size) for owner, size in enumerate(sizes)]
        with pytest.raises(PositionError, match=said):
            positions.position(*circle, players=3, **options)


RAISED = (
    ("castles", 0), ("castles", 2), ("teams",), ("team", 0), ("team", 3), ("player",), ("turn",),
    ("dice_due",), ("reason",), ("winners",), ("order", 0), ("order", 3), ("courts", 3, 2),
    ("crowns", 2), ("discs_played", 2), ("discs_in_hand", 3), ("region_first", 1),
    ("region_castles", 0), ("placements_left",),
)  # fmt: skip
SET = {("control", 0): 2, ("region_owner", 0): 2, ("emperor",): 14, ("regions",): 14}


@pytest.mark.parametrize("place", [*RAISED, *SET], ids=str)
def test_a_record_whose_fields_do_not_fit_is_no_position(place):
    """Fields that `from_dict` computes, and those of seats, teams and regions that are not used."""
    states, (name, *index) = engine.new_games(Rules(), 3, seed=0), place
    check_positions(states)
    at = (1, *index)
    states[name][at] = SET.get(place, states[name][at] + 1)
    with pytest.raises(PositionError, match=r"^position: game 1: "):
        check_positions(states)


@st.composite
def rearranged_positions(draw):
    """A position with paladins, castles, discs and turns moved about: many of them possible."""
    data = to_dict(draw(st.sampled_from(sample_states())))
    players, teams = len(data["courts"]), len(data["castles"])
    seats, holders = st.integers(0, players - 1), [*data["courts"], *data["reserves"]]
    holders += [data["supply"], *(region["paladins"] for region in data["regions"])]
    for kind in draw(st.lists(st.integers(0, 8), min_size=1, max_size=3)):
        if kind <= 2:  # a paladin goes somewhere else
            source, target = draw(st.sampled_from(holders)), draw(st.sampled_from(holders))
            clan, count = draw(st.integers(0, 4)), draw(st.integers(1, 3))
            source[clan] -= count
            target[clan] += count
        elif kind == 3:
            data["control"][draw(st.integers(0, 4))] = draw(seats)
        elif kind == 4:
            data["crowns"][draw(seats)] = draw(st.integers(0, 9))
        elif kind == 5:
            phase = draw(st.sampled_from(PHASE_NAMES))
            left = draw(st.integers(0, 4)) if phase == "place" else 0
            data |= {"phase": phase, "placements_left": left, "player": draw(seats), "result": None}
            data.pop("dice_due", None)
        elif kind == 6:
            data["order"] = draw(st.permutations(data["order"]))
            discs = st.lists(st.integers(0, 5), min_size=players, max_size=players)
            data["discs_played"] = draw(discs)
        elif kind == 7:
            data["round"] = draw(st.integers(0, 100))
        else:
            region = draw(st.sampled_from(data["regions"]))
            region["owner"] = draw(st.integers(-1, teams - 1))
            region["castles"] = len(region["territories"]) if region["owner"] != -1 else 0
            data.pop("castles", None)
    return data


def test_a_rearranged_position_is_refused_or_playable():
    """It is refused with a `PositionError`, or the game goes on and stays possible."""
    playable = []

    @settings(max_examples=150)
    @given(rearranged_positions())
    def check_one(data):
        playable.append(False)
        with contextlib.suppress(PositionError):
            game = from_dict(data)
            playable[-1] = True
        if playable[-1]:
            generators = new_streams(0, 1)
            for _ in range(60):
                check_positions(game)
                if not engine.is_over(game)[0]:
                    strategies.advance(game, generators)
            check_positions(game)
            assert to_bytes(from_dict(to_dict(game[0]))) == to_bytes(game)

    check_one()
    assert 15 < sum(playable) < len(playable), "some of both"
