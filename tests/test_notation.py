"""Moves in text: what is written is read back, what is typed is understood or refused."""

import re

import numpy as np
import positions
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from positions import BLACK, WHITE, paladins, position, region
from strategies import history, sample_states

from carolus_env import engine, notation
from carolus_env.engine.rules import Rules, court_action, crown_action, move_action, region_action
from carolus_env.notation import NotationError, move_text, read_move, read_moves
from carolus_env.records import RecordError, make_record, start_of
from carolus_env.records import positions as replay_positions

RED, PINK, BLUE, YELLOW, GREEN = range(5)


def record_of(rules, seed, limit=150):
    """The record of a random game, or of its beginning."""
    return make_record(*strategies.played(rules, seed, limit)[:2])


def merged():
    """White has played disc 3; the Emperor stands on 0-1, then come 2, 3-5 (black's) and 6 on."""
    courts = [paladins(red=4), paladins(red=3, blue=1)]
    reserves, placing = [paladins(red=2, blue=3, pink=2)], {"phase": "place", "placements_left": 3}
    circle = region(WHITE, 2, blue=2), region(red=1), region(BLACK, 3, red=3)
    return position(*circle, courts=courts, reserves=reserves, discs=[3, 4], **placing)


SETTLING = (
    region(WHITE, 2, blue=2),
    region(red=1),
    region(BLACK, 3, red=4),
    region(yellow=1),
    region(WHITE, 1, red=2),
)


@given(strategies.rules, strategies.seeds)
def test_every_legal_move_is_read_back_with_and_without_its_outcome(rules, seed):
    states = history(rules, seed, games=2, limit=150).reshape(-1)
    for state in states[:: 1 + len(states) // 12]:
        for action in engine.legal_actions(state).tolist():
            text = move_text(state, action)
            assert read_move(state, text) == [action], text
            bare = re.split(r" at | [ABC] |!|#", text)[0]
            assert read_move(state, bare) == [action]
            assert read_move(state, f" {text.upper()} ".replace(">", " > ")) == [action]
            assert text.isascii()
            assert "," not in text  # which divides moves


def test_moves_are_written_like_this():
    state = merged()[0]
    game = positions.set_up([5, 5, 0, 0, 1, 1, 2])[0]
    for seen, action, times, written in (
        (state, region_action(BLUE, 0), 1, "blue>0-1"),
        (state, region_action(PINK, 1), 1, "pink>2"),
        (state, region_action(BLUE, 2), 3, "3 blue>3-5"),
        (position(phase="disc", discs=[0, 0])[0], 2, 1, "d3"),
        (game, crown_action(GREEN), 1, "crown=green"),
        (game, crown_action(GREEN), 2, "2 crown=green"),
    ):
        assert move_text(seen, action, times) == written
    for times in (2, 0):
        with pytest.raises(ValueError, match=rf"Emperor 1 step.* {times} times"):
            move_text(position(discs=[2, 3])[0], move_action(1), times)
    with pytest.raises(engine.IllegalActionError):
        move_text(state, court_action(RED), 3)


def test_taking_control_is_marked():
    courts = [paladins(red=3), paladins(red=4, blue=1)]
    reserves = [paladins(red=2, blue=1, pink=1, green=1)]
    placing = {"phase": "place", "placements_left": 3}
    state = position(courts=courts, reserves=reserves, **placing)[0]
    assert move_text(state, court_action(RED)) == "red>court"
    assert move_text(state, court_action(RED), 2) == "2 red>court!"
    assert move_text(state, court_action(GREEN)) == "green>court!"
    assert move_text(state, court_action(BLUE)) == "blue>court"  # a tie: it stays with black
    assert read_move(state, "2 r > court!") == [court_action(RED)] * 2
    with pytest.raises(NotationError, match="what would happen is 'red>court'"):
        read_move(state, "red>court!")


def test_the_emperor_says_what_he_finds_and_what_comes_of_it_also_the_end():
    for circle, steps, red_at, written in (
        (SETTLING, 1, 0, "E+1 A builds 2 forming 0-2"),
        (SETTLING, 2, 0, "E+2 A takes 3-5"),
        (SETTLING, 3, 0, "E+3 at 6"),
        (SETTLING, 4, 0, "E+4 at 7"),
        ((region(red=1), region(red=2)), 1, 1, "E+1 B builds 1"),
        ((region(WHITE, 9, red=9), region(), region(red=1)), 2, 0, "E+2 A builds 10#"),
    ):
        courts = [paladins(red=int(seat == red_at)) for seat in range(2)]
        state, action = position(*circle, courts=courts, discs=[4, 5])[0], move_action(steps)
        assert move_text(state, action) == written
        assert read_move(state, written.lower().replace("#", " #")) == [action]
    with pytest.raises(NotationError, match=r"what would happen is 'E\+2 A builds 10#'"):
        read_move(state, "E+2 A builds 10")


def test_any_territory_names_its_region_also_over_the_seam_but_a_wrong_span_does_not():
    state = merged()[0]
    for where in ("3-5", "3", "4", "5"):
        assert read_move(state, f"red>{where}") == [region_action(RED, 2)]
    for where in ("3-4", "4-5", "5-3", "15", "99"):
        with pytest.raises(NotationError, match=rf"no region {where}; there are 0-1, 2, 3-5, 6, 7"):
            read_move(state, f"red>{where}")
    game = merged()
    assert [notation.region_text(game[0], k) for k in range(4)] == ["0-1", "2", "3-5", "6"]
    game["region_first"][0, :12] = [1, 2, 3, *range(6, 15)]
    game["emperor"] = 11
    assert notation.region_text(game[0], 0) == "14-0"
    for where in ("14", "0", "14-0"):
        assert read_move(game[0], f"red>{where}") == [region_action(RED, 0)]
    with pytest.raises(ValueError, match="region must be from 0 to 11, got 12"):
        notation.region_text(game[0], 12)


def test_moves_are_read_one_after_the_other_or_refused_with_what_is_expected():
    game, blues = merged(), [region_action(BLUE, 2)] * 2
    actions = [court_action(RED), *blues, move_action(2)]
    assert read_moves(game[0], "r>court, 2 b>3-5, E+2 ") == actions
    assert game.tobytes() == merged().tobytes()
    for text, said in (
        ("d3", "expected a paladin such as"),
        ("mauve>court", "expected one of red, pink, blue, yellow, green, got 'mauve'"),
        ("green>court", "player 0 may not play that now; legal now: red, pink, blue > court, 0-1"),
        ("0 red>court", "expected a number from 1 to 2, got 0"),
        ("4 blue>court", "expected a number from 1 to 3, got 4"),
        ("red>court takes 4", "what would happen is 'red>court'"),
        ("x" * 500 + ">court", r"expected one of red, .*, got '.{1,40}'$"),
        ("rot>court " + "x" * 500, r"^move 'rot>court.{1,40}': expected one of"),
        ("red>court, 2 red>2", "move '2 red>2': expected a number from 1 to 1"),
        ("red>court,", "move '': expected"),
    ):
        with pytest.raises(NotationError, match=said):
            read_moves(merged()[0], text)


def test_rolls_are_written():
    game = engine.new_games(Rules(), seed=1, first_player=0, roll=False)
    with pytest.raises(NotationError, match="no decision"):
        read_move(game[0], "d1")
    assert notation.legal_text(game[0]) == "round 0, player 0 rolls 7 dice"
    assert notation.roll_text([0, 2, 5]) == "rolls red blue crown"
    with pytest.raises(ValueError, match="a die shows 0 to 5, got 6"):
        notation.roll_text([6])


MOVES = ("d3", "crown=red", "2 red>court!", "blue>7-9", "E+2 A takes 4-6 forming 2-6#")
PIECES = st.lists(
    st.sampled_from(MOVES) | st.text(max_size=4) | st.sampled_from("0123456789>=+-!#, \n"),
    max_size=6,
).map("".join)


@given(st.deferred(lambda: st.sampled_from(sample_states())), PIECES)
def test_any_text_is_moves_that_can_be_played_or_a_notation_error(state, text):
    try:
        actions = read_moves(state, text)
    except NotationError as error:
        assert len(str(error)) < 500
        return
    game = np.array(state).reshape(1)
    for action in actions:
        engine.step(game, np.array([action]), roll=False)


def test_each_turn_is_listed_with_its_first_event_its_round_and_seat():
    record = record_of(Rules(3), seed=5)
    turns, states = (
        list(notation.turn_texts(start_of(record), record["events"])),
        replay_positions(record),
    )
    for each in turns:
        at, event = each.event, record["events"][each.event]
        assert each.seat == event["player"]
        assert notation.event_text(states[at], event, states[at + 1]) in each.text
    assert (turns[0].event, turns[0].round) == (0, 0)
    assert turns[0].text.startswith(notation.roll_text(record["events"][0]["roll"]))
    assert turns[-1].round == max(each.round for each in turns) > 1


def test_a_turn_has_one_text_and_what_is_alike_is_counted():
    blue, crowns = [region_action(BLUE, 2)] * 2, [crown_action(BLUE)] * 2
    events = [{"action": action} for action in (*blue, court_action(RED), move_action(1))]
    events += [{"roll": [5, 5, 1]}, *({"action": a} for a in (*crowns, move_action(2)))]
    turns = list(notation.turn_texts(merged(), events))
    assert [(turn.event, turn.seat, turn.text) for turn in turns] == [
        (0, 0, "2 blue>3-5, red>court, E+1 A builds 2 forming 0-2, "
               "rolls crown crown pink, 2 crown=blue"),
        (7, 1, "E+2 at 6"),
    ]  # fmt: skip
    game = position(phase="disc", discs=[3, 0], order=[0, 1], player=1)
    turns = notation.turn_texts(game, [{"action": 1}, {"action": move_action(2)}])
    assert [turn.text for turn in turns] == ["d2", "E+2 at 2"], "a disc is a turn of its own"


def test_an_event_that_cannot_be_is_refused_with_its_index():
    record = record_of(Rules(), seed=5)
    events = [*record["events"][:4], {"roll": [1, 2, 3]}]
    with pytest.raises(RecordError, match=r"^event 4: "):
        notation.turn_texts(start_of(record), events)
