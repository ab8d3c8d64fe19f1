"""The record of a game: its layout, its bytes, equality by value, and what is no batch."""

import numpy as np
import pytest
from networks import encode_all

from carolus_env import bots, engine
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams
from carolus_env.engine.observation import observe
from carolus_env.engine.play import playout
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import (
    FIELDS,
    STATE,
    as_states,
    check_rows,
    equal,
    pick,
    put,
    to_bytes,
)
from carolus_env.envs.turns import Turns, candidates_of
from carolus_env.planning import heuristic
from carolus_env.records.position import PositionError, from_bytes


def games(n=3, seed=0, roll=True, **rules):
    return engine.new_games(Rules(**rules), n, seed=seed, roll=roll)


def test_fields_lie_side_by_side_in_little_endian():
    """So that bytes mean the same on every machine, and none of them is padding."""
    at = 0
    for field in FIELDS:
        dtype, offset = STATE.fields[field.name]
        assert offset == at and dtype.base == dtype.base.newbyteorder("<")
        at += dtype.itemsize
    assert at == STATE.itemsize <= 256


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_bytes_with_a_field_out_of_range_are_refused(field):
    """At each place of the field, just below and just above."""
    states = games()
    info = np.iinfo(field.dtype)
    for wrong in (field.low - 1, field.high + 1):
        if info.min <= wrong <= info.max:
            for place in np.ndindex(field.shape):
                broken = states.copy()
                broken[field.name][(1, *place)] = wrong
                expected = f"game 1: field '{field.name}' holds {wrong}, allowed are {field.low} to"
                with pytest.raises(ValueError, match=expected):
                    from_bytes(to_bytes(broken))


def test_bytes_of_a_wrong_length_are_refused():
    for length in (1, STATE.itemsize - 1, STATE.itemsize + 1, 1000):
        with pytest.raises(ValueError, match=rf"\b{length} bytes .* {STATE.itemsize} bytes"):
            from_bytes(bytes(length))


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("order", [0, 0, 0, 0], "order"),
        ("order", [1, 0, 2, 3], "order"),
        ("player", 3, "player"),
        ("turn", 2, "turn"),
        ("team", [0, 2, 0, 0], "team"),
        ("teams", 3, "teams"),
        ("emperor", 14, "region_first"),
        ("regions", 2, "region"),
        ("control", 3, "control"),
        ("region_owner", [2] + [0] * 15, "region_owner"),
        ("region_first", [3] + [3] * 15, "region"),
        ("reserves", 9, "reserves"),
        ("discs_played", 5, "disc"),
        ("dice_due", 9, "dice_due"),
    ],
)
def test_bytes_whose_fields_do_not_fit_each_other_are_refused(field, value, named):
    """Each within its range: a kernel that takes them would read outside its arrays."""
    states = games(2)
    engine.step(states, engine.legal_masks(states).argmax(axis=1))
    states[field][1] = value
    if field == "emperor":
        states["regions"][1] = 6
    with pytest.raises(PositionError, match=rf"game 1: .*{named}"):
        from_bytes(to_bytes(states))


def changed_games(random, n):
    """Games in play of all kinds, each with entries of one or two fields changed in its range."""
    rules = Rules(int(random.integers(2, 5)), crown_choice=random.choice(["on_roll", "deferred"]))
    states = engine.new_games(rules, n, seed=int(random.integers(2**32)))
    streams = new_streams(1, n)
    for _ in range(int(random.integers(0, 120))):
        rows = np.flatnonzero(~engine.is_over(states))
        engine.step(states, engine.random_actions(states, streams, rows=rows), rows=rows)
    for game in states:
        for field in [FIELDS[k] for k in random.integers(len(FIELDS), size=random.integers(1, 3))]:
            entries = game[field.name].reshape(-1).copy()
            high = min(field.high, 2**62) + 1
            entries[random.integers(len(entries))] = random.integers(field.low, high)
            game[field.name] = entries.reshape(field.shape)
    return states


def test_no_bytes_lead_a_kernel_astray():
    """Whatever passes `from_bytes` is observed and played on, within arrays and to an end."""
    random, passed = np.random.default_rng(0), 0
    planner = bots.make("planner")
    for _ in range(8):
        for game in changed_games(random, 30):
            try:
                states = from_bytes(game.tobytes())
            except PositionError:
                continue
            passed += 1
            streams = new_streams(1, 1)
            engine.returns(states)
            observe(states)
            chance.roll(states)
            for _ in range(4):
                if engine.is_over(states)[0]:
                    break
                encode_all(states)
                engine.step(states, planner.act(states, streams))
    assert passed > 15


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_games_are_equal_by_value_and_any_difference_makes_them_unequal(field):
    states = games(3)
    other = np.concatenate([games(3), games(3)])[3:]
    assert equal(states, other).all()
    flat = other[field.name].reshape(3, -1)
    flat[1, -1] ^= 1
    other[field.name] = flat.reshape(other[field.name].shape)
    assert equal(states, other).tolist() == [True, False, True]


@pytest.mark.parametrize("rows", [[6, 0, 3], [], range(8)], ids=str)
def test_games_are_picked_as_a_copy_and_put_at_rows(rows):
    states, others, rows = games(8), games(8, seed=90, players=4), np.array(rows, np.int64)
    before = states.copy()
    for copied in (pick(states, rows), engine.copy(states[rows])):
        assert copied.dtype == STATE and copied.tobytes() == states[rows].tobytes()
        copied["round"] = 77
        assert states.tobytes() == before.tobytes()
    put(states, rows, others[: len(rows)])
    before[rows] = others[: len(rows)]
    assert states.tobytes() == before.tobytes()
    with pytest.raises(IndexError):
        pick(states, np.array([8]))
    with pytest.raises(IndexError, match="negative"):
        pick(states, np.array([2, -1]))


def test_two_empty_batches_are_equal():
    assert equal(games(2)[:0], games(2)[:0]).tolist() == []


def test_what_is_no_batch_of_games_is_refused():
    calls = [
        *(as_states, to_bytes, engine.legal_masks, engine.is_over, engine.returns, engine.copy),
        *(engine.next_games, engine.forfeit, chance.roll, chance.roll_due, chance.draw_faces),
        lambda states: pick(states, np.zeros(0, np.int64)),
        lambda states: engine.step(states, np.zeros(2, int)),
        lambda states: engine.random_actions(states, new_streams(0, 2)),
        lambda states: chance.apply_roll(states, [0, 0, 0]),
    ]
    for given, named in (
        (None, "NoneType"),
        ([], "list"),
        (np.zeros((2, 2), STATE), r"shape \(2, 2\)"),
        (np.zeros(3), "float64"),
        (np.zeros((), STATE), r"shape \(\)"),
        (np.zeros(2, STATE)[0], "void"),
        (np.zeros(2, [("a", "u1")]), "other fields"),
    ):
        for call in calls:
            with pytest.raises(TypeError, match=named):
                call(given)


def of_other_layouts(states, folder):
    """The same games as a process gets them from joblib, from a file, or as slices."""
    read_only, twice = states.copy(), np.repeat(states, 2)
    read_only.flags.writeable = False
    np.save(folder / "states.npy", states.view(np.uint8))
    mapped = np.load(folder / "states.npy", mmap_mode="r").view(STATE)
    return [read_only, mapped, states[::-1].copy()[::-1], twice[::2]]


def test_functions_that_only_read_take_read_only_games_and_slices(tmp_path):
    states = games(6, players=3)
    dice = games(6, players=3, roll=False)
    streams = new_streams(0, 6)
    calls = [
        *(engine.legal_masks, engine.is_over, engine.returns, engine.win_shares, engine.copy),
        *(engine.next_games, to_bytes, chance.roll_due, heuristic.features, heuristic.chances),
        lambda states: pick(states, np.array([4, 4, 0])),
        lambda states: equal(states, states),
        lambda states: engine.are_legal(states, np.arange(6)),
        lambda states: engine.random_actions(states, streams.copy()),
        lambda states: playout(states, streams.copy(), most_decisions=9, threads=2).returns,
        lambda states: observe(states, rows=[3, 1]),
        lambda states: observe(states, dtype=np.float32),
        lambda states: candidates_of(states, Turns()).rows,
    ]
    for given in of_other_layouts(states, tmp_path):
        assert not given.flags.carray
        for call in calls:
            np.testing.assert_array_equal(call(given), call(states))
        np.testing.assert_array_equal(given, states)
    assert chance.roll_due(of_other_layouts(dice, tmp_path)[0]).all()


def test_functions_that_change_games_refuse_those_that_they_cannot_change(tmp_path):
    calls = [
        *(engine.forfeit, chance.roll, chance.draw_faces),
        lambda states: engine.step(states, np.zeros(len(states), int)),
        lambda states: chance.apply_roll(states, [0, 0, 0]),
        lambda states: chance.roll_dealt(states, np.zeros((3, 4), np.uint64), np.arange(3)),
    ]
    for given in of_other_layouts(games(), tmp_path):
        for call in calls:
            with pytest.raises(TypeError, match="contiguous and writeable"):
                call(given)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64])
def test_rows_of_any_integer_type_and_order_name_each_game_at_most_once(dtype):
    """Also out of order, where differences of unsigned numbers wrap around."""
    for rows in ([3, 0, 2], []):
        assert check_rows(np.array(rows, dtype), 4).tolist() == rows
    for rows in ([1, 1], [3, 1, 3], [0, 2, 1, 2]):
        with pytest.raises(ValueError, match="at most once"):
            check_rows(np.array(rows, dtype), 4)


def test_rows_that_pick_no_games_are_refused():
    states = games(4)
    before = to_bytes(states)
    calls = [
        lambda rows: engine.legal_masks(states, rows=rows),
        lambda rows: engine.step(states, [5], rows=rows),
        lambda rows: engine.random_actions(states, new_streams(0, 4), rows=rows),
        lambda rows: engine.forfeit(states, rows=rows),
        lambda rows: chance.apply_roll(states, [0] * 7, rows=rows),
        lambda rows: chance.draw_faces(states, rows=rows),
    ]
    for rows, error, expected in (
        ([4], IndexError, "rows .*0 to 3, got 4 to 4"),
        ([0, -1], IndexError, "rows .*0 to 3, got -1 to 0"),
        (np.array([2**64 - 1], np.uint64), IndexError, "rows .*0 to 3"),
        ([0.0], TypeError, "rows .* shape .* dtype float64"),
        ([float("nan")], TypeError, "dtype float64"),
        ([True, False, True, True], TypeError, "dtype bool"),
        ([[0, 1]], TypeError, r"shape \(1, 2\)"),
        (2, TypeError, r"shape \(\)"),
    ):
        for call in calls:
            with pytest.raises(error, match=expected):
                call(rows)
    assert to_bytes(states) == before
