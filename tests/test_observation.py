"""Observations say what a plain reading of the position says, which counts seats from the viewer
and regions from the Emperor: so neither names of seats nor the circle's rotation can be seen.
"""

import hashlib

import numpy as np
import pytest
from positions import position as set_up
from positions import region
from reference import team_of
from strategies import every_number, history

from carolus_env import engine
from carolus_env.engine import observation
from carolus_env.engine.chance import new_streams
from carolus_env.engine.observation import highs, layout, length, observe, scales, slices
from carolus_env.engine.rules import CLAN_NAMES, FIRST_PLACE, OVER, Rules
from carolus_env.records import position

RULES = {
    "two": Rules(),
    "three": Rules(3),
    "four": Rules(4),
    "deferred": Rules(3, crown_choice="deferred", max_rounds=7),
    "adjacent": Rules(4, crown_choice="deferred", partners="adjacent"),
    "scarce": Rules(2, paladins_per_clan=8, max_rounds=150),
    "abundant": Rules(4, paladins_per_clan=200, max_rounds=None),
}
every_rules = pytest.mark.parametrize("rules", RULES.values(), ids=RULES)


def positions(rules, games=8, every=9, seed=1):
    """States of random games: every so many stops, and the last ones; rolls are stops as well."""
    states = history(rules, seed, games, limit=3000)
    return np.concatenate([states[::every].ravel(), states[-1]])


def plain_reading(given, viewer):
    """The blocks by name, from the JSON of a position alone, in lists and loops."""
    rules, players, regions = given["rules"], given["rules"]["players"], given["regions"]
    teams, discs, last = 3 if players == 3 else 2, (1, 2, 3, 4, 5), rules["max_rounds"] or 10**9
    seats = [(viewer + k) % players for k in range(players)]
    own = team_of(viewer, rules)
    team_order = [(own + k) % teams for k in range(teams)]
    holder = [None if seat == -1 else team_of(seat, rules) for seat in given["control"]]
    order, played, hands = (given[key] for key in ("order", "discs_played", "discs_in_hand"))

    def castles(region, team):
        return region["castles"] if region["owner"] == team else 0

    def strength(region, team):
        paladins = sum(region["paladins"][clan] for clan in range(5) if holder[clan] == team)
        return min(paladins + castles(region, team), 255)

    def of_each(read, things):
        """What is read of each region for each thing, and nothing where no region is."""
        none = [0] * (15 - len(regions))
        return [[read(region, thing) for region in regions] + none for thing in things]

    return {
        "phase": [given["phase"] == name for name in ("crown", "disc", "place", "move")],
        "to_move": [given["player"] == seat for seat in seats],
        "placements_left": given["placements_left"],
        "round": min(given["round"], 100),
        "rounds_left": min(last - max(given["round"], 1) + 1, 100),
        "crown_deferred": rules["crown_choice"] == "deferred",
        "supply": given["supply"],
        "partner": [team_of(seat, rules) == own for seat in seats],
        "turn_order": [[order.index(seat) == place for place in range(players)] for seat in seats],
        "disc_played": [[played[seat] == disc for disc in discs] for seat in seats],
        "discs_in_hand": [[disc in hands[seat] for disc in discs] for seat in seats],
        "crowns": [given["crowns"][seat] for seat in seats],
        "reserves": [given["reserves"][seat] for seat in seats],
        "courts": [given["courts"][seat] for seat in seats],
        "control": [[given["control"][clan] == seat for clan in range(5)] for seat in seats],
        "castles": [sum(row) for row in of_each(castles, team_order)],
        "region_exists": of_each(lambda region, _: 1, [None])[0],
        "region_castles": of_each(castles, team_order),
        "region_paladins": of_each(lambda region, clan: region["paladins"][clan], range(5)),
        "region_strength": of_each(strength, team_order),
    }


def assert_reads(states, row, viewer):
    obs = observe(states[row : row + 1], [viewer])[0]
    blocks = observation.unpack(obs, int(states["players"][0]))
    wanted = plain_reading(position.to_dict(states[row]), viewer)
    assert list(blocks) == list(wanted)
    for name, block in blocks.items():
        assert block.tolist() == np.array(wanted[name], int).tolist(), name


@every_rules
def test_every_block_is_what_a_plain_reading_of_the_position_gives(rules):
    states = positions(rules)
    assert len(states) > 50
    assert {0, 1, 2, 3, 4, 5} <= set(states["phase"].tolist())
    for row in range(len(states)):
        for viewer in range(rules.players):
            assert_reads(states, row, viewer)


def test_strength_is_counted_up_to_what_a_byte_holds():
    """A region with 5 x 190 paladins, all of clans that player 0 holds."""
    heap = region(**dict.fromkeys(CLAN_NAMES, 190))
    states = set_up(heap, courts=[[1] * 5], paladins_per_clan=200, round=166, max_rounds=200)
    for viewer in (0, 1):
        assert_reads(states, 0, viewer)
        obs = observation.unpack(observe(states, [viewer])[0], 2)
        assert obs["region_strength"][:, 0].tolist() == [[255, 0], [0, 255]][viewer]


@pytest.mark.parametrize("paladins", [40, 200])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@every_number
def test_rows_are_written_in_full_and_nothing_outside_them(players, dtype, paladins):
    for state in positions(Rules(players, paladins_per_clan=paladins), games=1)[:40]:
        game = state.reshape(1)
        for before in (77, 88):
            room = np.full((3, length(players)), before, dtype)
            assert np.shares_memory(observe(game, dtype=dtype, out=room[1:2]), room)
            assert (room[[0, 2]] == before).all()
            np.testing.assert_array_equal(room[1:2], observe(game, dtype=dtype))


def test_the_player_to_move_is_the_viewer_and_rows_pick_games_in_the_order_given():
    for rules in (Rules(2), Rules(4)):
        states = positions(rules)
        seats = states["player"].astype(int)
        assert (seats[states["phase"] == OVER] == 0).all()
        np.testing.assert_array_equal(observe(states), observe(states, seats))
    states = positions(Rules(3))
    rows = np.array([5, 2, 9])
    np.testing.assert_array_equal(observe(states, rows=rows), observe(states)[rows])
    viewers = [2, 0, 1]
    np.testing.assert_array_equal(
        observe(states, viewers, rows=rows), observe(states[rows], viewers)
    )


@every_rules
def test_float32_is_the_counts_times_the_scales_and_blocks_are_views(rules):
    states = positions(rules)
    before = states.tobytes()
    counts, scaled = observe(states), observe(states, dtype=np.float32)
    assert states.tobytes() == before
    assert (counts.dtype, scaled.dtype) == (np.uint8, np.float32)
    np.testing.assert_array_equal(scaled, counts * scales(rules.players))
    stacked = np.stack([scaled, scaled])
    views = observation.unpack(stacked, rules.players)
    assert len(views) == len(layout(rules.players))
    for block in layout(rules.players):
        plain = observation.unpack(counts, rules.players)[block.name] / block.scale
        np.testing.assert_allclose(views[block.name], [plain, plain], rtol=1e-6)
        assert views[block.name].shape == (2, len(states), *block.shape)
        assert np.shares_memory(views[block.name], stacked)


def hoarding(masks):
    """The first legal placement: everything of the lowest clan to the own court."""
    return masks.argmax(axis=1)


def heaping(masks):
    """The first paladin to the Emperor's region, and one step, so that few regions change."""
    heap = masks[:, FIRST_PLACE + 1 :: 16]
    return np.where(heap.any(axis=1), FIRST_PLACE + 1 + 16 * heap.argmax(axis=1), masks.argmax(1))


def last(masks):
    return masks.shape[1] - 1 - masks[:, ::-1].argmax(axis=1)


@pytest.mark.parametrize("choose", [hoarding, heaping, last, None], ids=lambda c: c and c.__name__)
@pytest.mark.parametrize("crown_choice", ["on_roll", "deferred"])
@pytest.mark.parametrize("paladins", [3, 8, 200])
@every_number
def test_no_entry_ever_exceeds_its_high(players, paladins, crown_choice, choose):
    """Games that get stuck included: with three paladins a clan nobody ever has one to play."""
    rules = Rules(players, crown_choice, paladins_per_clan=paladins, max_rounds=None)
    states, streams = engine.new_games(rules, 8, seed=3), new_streams(3, 8)
    most = np.zeros(length(players), np.uint8)
    while (rows := np.flatnonzero((states["round"] < 105) & ~engine.is_over(states))).size:
        if choose is None:
            actions = engine.random_actions(states, streams, rows=rows)
        else:
            actions = choose(engine.legal_masks(states, rows=rows))
        engine.step(states, actions, rows=rows)
        for viewer in range(players):
            obs = observe(states, np.full(8, viewer))
            np.maximum(most, obs.max(axis=0), out=most)
    assert (most <= highs(players)).all()
    if paladins == 3:
        assert states["round"].max() == 105
        assert observation.unpack(most, players)["round"] == 100


def test_a_changed_layout_has_a_new_version():
    """Models are bound to the version: whoever changes the layout adds a line here."""
    parts = [tuple(block)[:4] for players in (2, 3, 4) for block in layout(players)]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    assert {1: "8a4bcfb88de51d1d"}[observation.VERSION] == digest


def test_impossible_players_viewers_and_outs_are_refused():
    for players in (0, 1, 5, "2"):
        with pytest.raises(ValueError, match=f"players .*{players}"):
            layout(players)
    mixed = np.concatenate([engine.new_games(Rules(n), seed=1) for n in (2, 3)])
    with pytest.raises(ValueError, match="different numbers of players"):
        observe(mixed)
    wrong = [[0], [0, 1, 2], [0, 2], [-1, 0], [[0, 1]], [0.5, 1.0], [float("nan"), 0], ["0", "1"]]
    for viewers in wrong:
        with pytest.raises(ValueError, match="viewers must be 2 seats from 0 to 1"):
            observe(engine.new_games(Rules(2), 2, seed=1), viewers)
    games, read_only = engine.new_games(Rules(2), 2, seed=1), np.zeros((2, 225), np.uint8)
    read_only.flags.writeable = False
    for dtype in (np.float64, np.int8, bool, ">f4"):
        with pytest.raises(ValueError, match="dtype"):
            observe(games, dtype=dtype)
    for out, dtype in (
        *((np.zeros(shape, np.uint8), np.uint8) for shape in ((2, 224), (1, 225))),
        (np.zeros((2, 225), np.float32), np.uint8),
        (np.zeros((2, 225), np.uint8), np.float32),
        (np.zeros((225, 2), np.uint8).T, np.uint8),
        (read_only, np.uint8),
    ):
        with pytest.raises(ValueError, match=rf"contiguous, writeable {np.dtype(dtype)} array"):
            observe(games, dtype=dtype, out=out)


def test_what_is_given_may_be_changed_without_effect_on_others():
    for given in (slices, highs, scales):
        before, mine = str(given(2)), given(2)
        if isinstance(mine, dict):
            mine.clear()
        else:
            mine[:] = 7
        assert str(given(2)) == before
