"""The batched interface: seeds, set-up, rows, payoffs, and errors that leave every game alone."""

import copy
import pickle
import re

import numpy as np
import pytest
import strategies
from strategies import ALL_KINDS, history, play_out, sample

from carolus_env import engine
from carolus_env.engine import IllegalActionError, chance
from carolus_env.engine.chance import new_streams, random_bits
from carolus_env.engine.rules import (
    ACTIONS,
    CROWN_CHOICE,
    DISC,
    MOVE,
    OVER,
    PHASE_NAMES,
    PLACE,
    Rules,
)
from carolus_env.engine.state import equal, to_bytes
from carolus_env.notation import move_text
from carolus_env.records.position import to_dict

LAID_OUT = [0, 1, 2, 3, 4] * 3


def in_phase(phase, n=4, seed=0, **rules):
    """A batch of games in round 1 that are all in the phase."""
    states = history(Rules(**rules), seed, games=16, limit=120)
    return states[(states["phase"] == phase) & (states["round"] == 1)][:n].copy()


def test_impossible_options_are_refused_and_numbers_of_numpy_are_numbers():
    for name, values in (
        ("players", (1, 5, -2, 2.0, "2", None, True, float("nan"))),
        ("crown_choice", ("later",)),
        ("partners", ("across",)),
        ("paladins_per_clan", (2, 201, 40.0)),
        ("max_rounds", (0, 65536, True)),
        ("dice", (3,)),
    ):
        for value in values:
            got = f".* got {value!r}$" if name != "dice" else ".* known are "
            with pytest.raises(ValueError, match=f"^rules: .*{name}{got}"):
                Rules.from_dict({name: value})
    kind = Rules(players=np.int64(3), paladins_per_clan=np.uint8(9), max_rounds=np.int32(7))
    same = Rules(players=3, paladins_per_clan=9, max_rounds=7)
    assert kind == same and repr(kind.to_dict()) == repr(same.to_dict())


def test_a_seed_means_the_same_game_for_good():
    """On every machine and in every version: results that were published stay what they were."""
    game = to_dict(engine.new_games(Rules(players=3), 1, seed=7)[0])
    clans = [region["paladins"].index(1) for region in game["regions"]]
    assert clans == [4, 0, 1, 4, 1, 0, 2, 3, 2, 0, 1, 4, 2, 3, 3]
    assert game["order"] == [2, 0, 1]
    assert game["reserves"] == [[1, 3, 0, 2, 1], [0, 0, 0, 0, 0], [0, 3, 1, 2, 3]]
    assert game["crowns"] == [2, 0, 0] and game["generator"] == "e57af735cd244b3c"
    assert new_streams(7, 1).tolist() == [7613755759174143445]


@pytest.mark.parametrize("seed", [2**64 - 1, 2**63, np.uint64(2**64 - 1), np.int8(5), 100])
def test_game_i_of_a_seed_is_game_0_of_the_seed_plus_i_and_without_one_games_are_new(seed):
    games = engine.new_games(Rules(), 3, seed=seed)
    start = np.array([(int(seed) + i) % 2**64 for i in (2, 0, 1)], np.uint64)
    assert equal(games[[2, 0, 1]], engine.new_games(Rules(), 3, seed=start)).all()
    assert equal(games[2:], engine.new_games(Rules(), 1, seed=start[0])).all()
    assert not equal(engine.new_games(Rules(), 3), engine.new_games(Rules(), 3)).any()


def test_streams_belong_to_seeds_and_are_apart_from_games_of_the_same_seeds():
    """Or an agent would know the dice to come."""
    games, own = engine.new_games(Rules(), 1000, seed=0, roll=False), new_streams(0, 1000)
    assert own[3] == new_streams(3, 1)[0] == new_streams(np.array([3]), 1)[0]
    later = [own.copy()]
    for _ in range(30):
        random_bits(own)
        later.append(own.copy())
    assert not np.isin(games["generator"], np.array(later)).any()


def test_the_generator_is_splitmix64():
    """The numbers of the published algorithm for the state 1234567."""
    stream = np.array([1234567], np.uint64)
    assert [int(random_bits(stream)[0]) for _ in range(3)] == [
        *(6457827717110365317, 3203168211198807973, 9817491932198370423)
    ]


def test_territories_and_the_first_player_may_be_given_for_all_games_or_each():
    others = np.random.default_rng(0).permutation(LAID_OUT).tolist()
    for given, laid_out in ((LAID_OUT, [LAID_OUT] * 2), ([LAID_OUT, others], [LAID_OUT, others])):
        games = engine.new_games(Rules(), 2, territories=given, seed=0, roll=False)
        assert games["region_paladins"][..., :15].argmax(axis=1).tolist() == laid_out
        assert (games["region_paladins"][..., :15].sum(axis=1) == 1).all()
    for first, order in ((2, [[2, 0, 1]] * 2), ([1, 0], [[1, 2, 0], [0, 1, 2]])):
        games = engine.new_games(Rules(players=3), 2, first_player=first, seed=0, roll=False)
        assert games["order"][:, :3].tolist() == order
        assert games["player"].tolist() == [order[0][0], order[1][0]]


def test_an_impossible_argument_of_a_new_game_is_refused():
    for name, value, named in (
        ("seed", 2**64, f"{2**64}"),
        ("seed", np.array(1.7), "1.7"),
        ("seed", np.array([1, 2, 3]), "(3,)"),
        ("seed", np.array([1.0, 2.0]), "float64"),
        ("seed", np.array([True, True]), "bool"),
        ("seed", True, "True"),
        ("seed", np.array([5, -7]), "-7"),
        ("territories", LAID_OUT[:14], "(15,) or (2, 15)"),
        ("territories", [LAID_OUT], "(1, 15)"),
        ("territories", [0] * 15, "[0, 0, 0"),
        ("territories", [*LAID_OUT[:14], 5], "5]"),
        ("territories", [*LAID_OUT[:14], -1], "-1]"),
        ("territories", [LAID_OUT, [0] * 15], "[0, 0"),
        ("territories", np.array(LAID_OUT, float), "float64"),
        ("territories", np.array(LAID_OUT, bool), "bool"),
        ("territories", "red", "()"),
        ("first_player", 2, "0 to 1, got 2"),
        ("first_player", [0, 2], "[0, 2]"),
        ("first_player", [0, 1, 0], "(3,)"),
        ("first_player", True, "bool"),
    ):
        with pytest.raises(ValueError, match=f"{name}.*{re.escape(named)}"):
            engine.new_games(**{"rules": Rules(), "n": 2, name: value})
        if name == "seed":
            with pytest.raises(ValueError, match=re.escape(named)):
                new_streams(value, 2)


@pytest.mark.parametrize("kind", strategies.ALL_KINDS, ids=repr)
def test_next_games_follow_from_the_generator(kind):
    """New set-ups with the same rules; the games before are as they were."""
    games = engine.new_games(kind, 5, seed=0)
    play_out(games, 0)
    before = to_bytes(games)
    fresh = engine.next_games(games)
    assert to_bytes(games) == before
    assert engine.rules_of(fresh[0]) == kind
    assert not engine.is_over(fresh).any() and (fresh["round"] <= 1).all()
    assert len({row.tobytes() for row in fresh["region_paladins"]}) == 5
    assert equal(fresh, engine.next_games(games)).all()
    assert not equal(fresh, engine.new_games(kind, 5, seed=0)).any()
    start = engine.new_games(kind, 5, seed=0, roll=False)
    written = {"generator", "region_paladins", "order", "player", "phase", "turn", "round"}
    written |= {"crowns", "reserves", "supply", "dice_due"}
    for name in set(start.dtype.names) - written:  # nothing is left over from the game before
        assert (fresh[name] == start[name]).all(), name


def test_masks_are_written_into_fitting_buffers_and_random_actions_move_each_stream_once():
    games, rows = engine.new_games(Rules(), 6, seed=0), np.array([4, 0, 2])
    masks = engine.legal_masks(games)
    assert masks.shape == (6, ACTIONS) and masks.dtype == np.int8 and set(masks.flat) == {0, 1}
    out, read_only = np.full((3, ACTIONS), 7, np.int8), np.zeros((6, ACTIONS), np.int8)
    assert engine.legal_masks(games, rows=rows, out=out) is out
    assert (out == masks[rows]).all()
    read_only.flags.writeable = False
    for wrong in (
        *(np.zeros(shape, np.int8) for shape in ((5, ACTIONS), (6, ACTIONS - 1), 6 * ACTIONS)),
        *(np.zeros((6, ACTIONS), dtype) for dtype in (bool, np.int64)),
        *(np.zeros((6, 2 * ACTIONS), np.int8)[:, ::2], np.zeros((ACTIONS, 6), np.int8).T),
        read_only,
    ):
        with pytest.raises(ValueError, match=r"out .*int8"):
            engine.legal_masks(games, out=wrong)
        assert not wrong.any()
    games, own = engine.new_games(Rules(), 6, seed=0), new_streams(0, 6)
    before, moved = to_bytes(games), own.copy()
    rows = np.array([5, 1])
    actions = engine.random_actions(games, own, rows=rows)
    assert to_bytes(games) == before
    random_bits(moved)
    assert (own == moved).tolist() == [False, True, False, False, False, True]
    again = engine.random_actions(games, new_streams(0, 6))
    assert (actions == again[rows]).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_actions_may_be_of_any_integer_type_and_all_input_read_only(dtype):
    games = engine.new_games(Rules(), 6, seed=0, roll=False)
    others, faces, rows = games.copy(), chance.draw_faces(games), np.arange(6)
    chance.apply_roll(others, faces)
    faces.flags.writeable = rows.flags.writeable = False
    chance.apply_roll(games, faces, rows=rows)
    for now in (games, others):
        now["generator"] = 1
        chance.roll(now)
    actions = engine.legal_masks(games, rows=rows).argmax(axis=1).astype(dtype)
    actions.flags.writeable = False
    engine.step(games, actions, rows=rows)
    engine.step(others, actions.tolist())
    assert to_bytes(games) == to_bytes(others)


def test_an_illegal_action_is_named_and_no_game_changes():
    """Also where only one of many is illegal, and not the first: by its game, not its row."""
    for phase, action, meaning, legal in (
        (DISC, 5, "(crown becomes red) ", "0-4"),
        (CROWN_CHOICE, 0, "(disc 1) ", "5-9"),
        (MOVE, 9, "(crown becomes green) ", "10"),
        (PLACE, 14, "(Emperor 5 steps) ", ""),
        *((DISC, action, "", "") for action in (95, -1, 2**63 - 1)),
        (PLACE, -(2**63), "", ""),
    ):
        games = in_phase(phase)
        before = to_bytes(games)
        actions = engine.legal_masks(games).argmax(axis=1)
        actions[2] = action
        with pytest.raises(IllegalActionError) as error:
            engine.step(games, actions[::-1].copy(), rows=np.arange(len(games))[::-1].copy())
        said = f"action {action} {meaning}in phase {PHASE_NAMES[phase]}; legal are {legal}"
        assert re.match(
            f"game 2: player {games['player'][2]} .*{re.escape(said)}", str(error.value)
        )
        assert to_bytes(games) == before
        assert (error.value.game, error.value.action) == (2, action)
        assert error.value.player == games["player"][2]
        assert error.value.legal == engine.legal_actions(games[2]).tolist()


def test_an_illegal_action_error_tells_ranges_and_can_be_sent_to_another_process():
    games = in_phase(PLACE)
    error = engine.refusal(games, 2, 94)
    assert isinstance(error, IllegalActionError) and error.legal
    for name in ("game 2", f"player {error.player}", "94 (green paladin to region 14)", "15-"):
        assert name in str(error)
    # The last is what Gymnasium does in the process that a worker sends it to.
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), type(error)(error)):
        assert type(again) is IllegalActionError
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_a_game_that_is_over_or_waits_for_a_roll_takes_no_action_and_one_that_is_over_no_forfeit():
    games = in_phase(DISC)
    engine.forfeit(games, rows=np.array([3]))
    due = engine.new_games(Rules(players=3), 2, seed=0, roll=False, first_player=2)
    for states, named in ((games, "game 3 is over.* 0"), (due, "game 0 .*9 dice by player 2.* 7")):
        before, actions = to_bytes(states), engine.legal_masks(states).argmax(axis=1)
        with pytest.raises(ValueError, match=named) as error:
            engine.step(states, actions if states is games else [7, 7])
        assert not isinstance(error.value, IllegalActionError)
        assert to_bytes(states) == before
    before = to_bytes(games)
    for rows in (None, np.array([0, 3])):
        with pytest.raises(ValueError, match="finished game"):
            engine.forfeit(games, rows=rows)
    assert to_bytes(games) == before


def test_non_actions_are_rejected_and_no_rows_and_an_empty_batch_are_no_games():
    games = in_phase(DISC)
    before = to_bytes(games)
    for actions, error, named in (
        ([0.0] * 4, TypeError, "float64"),
        ([0, 0, float("nan"), 0], TypeError, "NaN"),
        ([True] * 4, TypeError, "bool"),
        ([10**30] * 4, TypeError, "object"),
        ([0] * 3, ValueError, r"\(4,\).*\(3,\)"),
        (0, ValueError, r"\(\)"),
        ([[0]] * 4, ValueError, r"\(4, 1\)"),
    ):
        with pytest.raises(error, match=f"actions .*{named}"):
            engine.step(games, actions)
        assert to_bytes(games) == before
    before, none = to_bytes(games), np.zeros(0, np.int64)
    engine.forfeit(games, rows=none)
    for states, rows in ((games, none), (engine.new_games(Rules(), 0, seed=0), None)):
        engine.step(states, np.zeros(0, int), rows=rows)
        assert engine.legal_masks(states, rows=rows).shape == (0, ACTIONS)
        drawn = engine.random_actions(states, new_streams(0, len(states)), rows=rows)
        assert drawn.shape == (0,)
    assert len(engine.returns(states)) == len(engine.is_over(states)) == 0
    assert len(engine.next_games(states)) == 0
    assert to_bytes(games) == before


def test_games_of_other_rules_may_share_a_batch():
    """Each plays by its own."""
    kinds = (Rules(players=3), Rules(players=4, partners="adjacent"), Rules(players=2))
    together = np.concatenate([engine.new_games(kind, 1, seed=0) for kind in kinds])
    apart = [engine.new_games(kind, 1, seed=0) for kind in kinds]
    own = new_streams(0, 3)
    for _ in range(100):
        rows = np.flatnonzero(~engine.is_over(together))
        actions = engine.random_actions(together, own, rows=rows)
        engine.step(together, actions, rows=rows)
        for row, action in zip(rows, actions, strict=True):
            engine.step(apart[row], [action])
    assert to_bytes(together) == b"".join(to_bytes(game) for game in apart)


def test_a_forfeit_ends_a_game_in_any_phase():
    for kind in strategies.ALL_KINDS:
        states = history(kind, 0, games=4).reshape(-1)
        going_on = states[states["phase"] != OVER]
        loser = np.take_along_axis(going_on["team"], going_on["player"][:, None], 1)[:, 0]
        engine.forfeit(going_on)
        assert engine.is_over(going_on).all()
        everybody = (1 << kind.teams) - 1
        assert (going_on["winners"] == everybody & ~(1 << loser)).all()
        assert not going_on["dice_due"].any() and not going_on["placements_left"].any()


def test_an_action_is_legal_where_the_mask_has_it_and_no_other_number_is():
    games, rows = engine.new_games(Rules(), 20, seed=1), np.array([7, 3])
    engine.step(games, engine.random_actions(games, new_streams(1, 20)))
    masks = engine.legal_masks(games)
    for action in (-(2**40), -1, *range(ACTIONS), ACTIONS, 2**40):
        expected = masks[:, action] == 1 if 0 <= action < ACTIONS else np.zeros(20, bool)
        asked = np.full(20, action)
        np.testing.assert_array_equal(engine.are_legal(games, asked), expected)
        np.testing.assert_array_equal(engine.are_legal(games, asked[:2], rows=rows), expected[rows])
    for one in (games[1], games[1:2]):
        assert engine.legal_actions(one).tolist() == np.flatnonzero(masks[1]).tolist()
    with pytest.raises(ValueError, match="state must be one game"):
        engine.legal_actions(games)


@pytest.mark.parametrize("kind", ALL_KINDS, ids=str)
def test_strength_is_paladins_of_the_own_clans_and_castles(kind):
    for state in sample(history(kind, 3, games=4, limit=300), 3, 40):
        known, (powers, strongest) = to_dict(state), engine.strengths(state)
        holders = [kind.team(seat) if seat >= 0 else None for seat in known["control"]]
        assert powers.shape == (state["regions"], state["teams"])
        for region, power, leader in zip(known["regions"], powers, strongest, strict=True):
            expected = [region["castles"] * (region["owner"] == t) for t in range(kind.teams)]
            for holder, paladins in zip(holders, region["paladins"], strict=True):
                if holder is not None:
                    expected[holder] += paladins
            assert power.tolist() == expected
            alone = expected.count(max(expected)) == 1 and max(expected) > 0
            assert leader == (expected.index(max(expected)) if alone else -1)


def test_numbers_that_no_int64_holds_are_refused_as_what_they_are():
    states = in_phase(PLACE)
    with pytest.raises(ValueError, match=r"actions must be below 2\^63, got 9223372036854775808"):
        engine.step(states, np.full(len(states), 2**63, np.uint64))
    with pytest.raises(IllegalActionError, match=f"action {2**70} in phase") as caught:
        move_text(states[0], 2**70)
    assert caught.value.action == 2**70
