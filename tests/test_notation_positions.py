"""Positions as a line: read back to the same bytes, or refused with the reason."""

import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from positions import LINE, paladins, position
from strategies import history, sample, sample_states

from carolus_env.notation.positions import from_text, to_line
from carolus_env.records.position import PositionError


@given(strategies.rules, strategies.seeds)
def test_positions_of_random_games_come_back_as_they_were(rules, seed):
    for state in sample(history(rules, seed, games=4), seed, 12):
        line = to_line(state)
        assert from_text(line).tobytes() == state.tobytes()
        assert "\n" not in line and line.isascii()


def test_a_line_is_written_as_it_was_read_and_may_leave_out_the_generator():
    assert to_line(from_text(LINE)[0]) == LINE
    assert from_text(LINE.replace(" | ", "|\n  ")).tobytes() == from_text(LINE).tobytes()
    bare = to_line(from_text(LINE)[0], generator=False)
    assert bare == LINE.removesuffix(" | 00000000000000ff")
    dice = [int(from_text(bare, seed=seed)["generator"][0]) for seed in (None, 0, 1)]
    assert dice[0] == dice[1] != dice[2]
    assert from_text(LINE, seed=1)["generator"] == dice[2]
    bare_game = from_text(bare)
    bare_game["generator"] = 255
    assert bare_game.tobytes() == from_text(LINE).tobytes()


def test_what_decides_the_game_is_written():
    """The order of equal discs, who holds a clan of equal courts."""
    last = {"discs": [5, 5], "order": [1, 0], "round": 35, "spent": [1, 2, 3, 4]}
    courts = [paladins(red=2), paladins(red=2, blue=1)]
    game = position(courts=courts, control=[1, -1, 1, -1, -1], **last)
    assert from_text(to_line(game[0])).tobytes() == game.tobytes()


def test_a_line_that_is_no_position_is_refused_with_the_reason():
    for old, new, said in (
        ("3 crown_choice", "5 crown_choice", "players must be a whole number from 2 to 4, got 5"),
        ("deferred", "never", "crown_choice must be on_roll or deferred, got 'never'"),
        ("crown_choice", "crowns", "unknown key 'crowns'"),
        ("3 crown_choice=deferred", "", "rules must be such as '2 crown_choice=deferred', got ''"),
        ("| 7 |", "| seven |", "round must be such as '7', got 'seven'"),
        ("1 place 2", "1 place", "turn must be such as '0 place 2', got '1 place'"),
        ("1 place 2", "1 move 2", "turn must be such as"),
        ("1 place 2", "1 think", "phase must be one of"),
        ("1 place 2", "7 place 2", "player must be from 0 to 2, got 7"),
        ("1 place 2", "over castles A", r"winners by castles cannot be \[0\]"),
        ("1 place 2", "over bore A", "result.reason must be one of"),
        ("| 3 |", "| x |", "emperor must be such as '3', got 'x'"),
        ("| 3 |", "| 15 |", "emperor must be such as '3', got '15'"),
        ("| 3 |", "| 4 |", None),
        ("A2r3", "A1r3", "territories must be 0 to 14, each once"),
        ("A2r3", "D2r3", "regions must be such as"),
        ("A2r3", "A2r3r3", "regions give red twice"),
        (" p1 ", " B1p1 ", "both belong to team 1 but are not merged"),
        (" p1 ", " z1 ", "regions must be such as .*, got 'z1'"),
        ("P3B1", "R0P3B1", "in courts, players 0 and 1 control red"),
        ("2:1/234", "1:1/234", "order must hold every seat once"),
        ("2:1/234", "2:1/2234", r"discs_in_hand\[2\] must hold different discs"),
        ("2:1/234", "2-1/234", "discs must be such as"),
        ("00ff", "00fg", "generator must be 16 hexadecimal digits"),
        ("00ff", "00ff | | |", "a line has the fields rules, .*, generator, got 12 fields"),
        (" | 00000000000000ff", "", None),
        (" | 2:1/234 1:3/125 0:5/124 | 00000000000000ff", "", "discs is missing, expected"),
    ):
        changed = LINE.replace(old, new, 1)
        assert changed != LINE
        if said is None:
            from_text(changed)
            continue
        with pytest.raises(PositionError, match=f"^position: .*{said}"):
            from_text(changed)


@pytest.mark.parametrize("text", ["", " \n;\n", "|", "hello", "9" * 5000])
def test_no_position_at_all_is_refused(text):
    with pytest.raises(PositionError) as error:
        from_text(text)
    assert len(str(error.value)) < 300


PIECES = st.text(max_size=5) | st.text("0123456789-+|:;/=rpbygABC \n", max_size=5)


@given(st.deferred(lambda: st.sampled_from(sample_states())), st.data())
def test_a_changed_text_is_a_possible_position_or_refused(state, data):
    text = to_line(state)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 5)) :]
    try:
        game = from_text(text)
    except PositionError:
        return
    assert from_text(to_line(game[0])).tobytes() == game.tobytes()


def test_what_is_no_text_is_no_position():
    with pytest.raises(TypeError, match="text must be a text, got 5"):
        from_text(5)
