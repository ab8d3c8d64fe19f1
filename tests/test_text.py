"""The board as text: within 80 columns, and what it shows is the game."""

import re

import pytest
from positions import LINE
from strategies import ALL_KINDS, history

from carolus_env import engine
from carolus_env.drawing.text import board_text
from carolus_env.engine.rules import OVER, PHASE_NAMES, Rules
from carolus_env.notation import from_text
from carolus_env.records import position

CLANS = "rpbyg"


BOARD = """\
[0] = 14        [1]             [2]             [3] A2 E        [4] = 3
                r1              r10p10b11y12g13 r3 b2 g1

                 round 7, player 1 plays 2 paladins
[14] B2                                                         [5]
r2 p2 b2             team court               reserve           p1
                   0 A3   R2 p0 b1 y0 G3      r3p1b1y1g1+2
[13]             > 1 B3   r0 P3 B1 y0 g0      r2p2b1y1g1
y1 g1              2 C3   r0 p0 b0 Y4 g0      r2p2b2y1g1+1      [6] B1
[12]               supply r12 p13 b14 y15 g14                   b4 y1
b1

[11] A1         [10]            [9] = 7         [8] = 7         [7] C3
r2 g3           y1                                              r1 p6 y3 g2
discs in playing order
  player 2 played 1, holds 2 3 4
  player 1 played 3, holds 1 2 5
  player 0 played 5, holds 1 2 4
"""


def test_a_position_is_drawn_like_this():
    assert board_text(from_text(LINE)[0]) == BOARD


@pytest.mark.parametrize("rules", ALL_KINDS, ids=repr)
def test_every_game_is_drawn_within_80_columns(rules):
    phases = set()
    for seed in range(3):
        for number, state in enumerate(history(rules, seed, games=2, limit=1500)[:, 1]):
            if number % 5 and PHASE_NAMES[state["phase"]] in phases:
                continue
            drawn = board_text(state)
            lines = drawn.split("\n")
            assert max(map(len, lines)) <= 80
            assert len(lines) == 14 + 1 + rules.players + 1 and lines[-1] == ""
            assert drawn.isascii() and drawn.replace("\n", "").isprintable()
            assert not any(line.endswith(" ") for line in lines)
            assert_regions(lines, state)
            assert_players(lines, state)
            assert_situation(drawn, state)
            phases.add(PHASE_NAMES[state["phase"]])
            if state["phase"] == OVER:
                break
    assert {"roll", "disc", "move", "over"} <= phases
    assert rules.paladins_per_clan == 3 or {"crown", "place"} <= phases


def numbers(counts, held=()):
    """``r2 p0`` and so on, in capitals where the clan is held."""
    letters = (c.upper() if c in held else c for c in CLANS)
    return [f"{c}{n}" for c, n in zip(letters, counts, strict=True)]


def assert_regions(lines, state):
    for k, region in enumerate(position.to_dict(state)["regions"]):
        first, *others = region["territories"]
        castles = f" {'ABC'[region['owner']]}{region['castles']}" if region["owner"] >= 0 else ""
        paladins = [text for text in numbers(region["paladins"]) if text[1:] != "0"]
        body = " ".join(paladins)
        body = body if len(body) < 16 else "".join(paladins)
        cells = [(first, [f"[{first}]{castles}{' E' if k == 0 else ''}", body])]
        for territory, cell in [*cells, *((t, [f"[{t}] = {first}", ""]) for t in others)]:
            [row] = [i for i, line in enumerate(lines) if f"[{territory}]" in line]
            column = lines[row].index(f"[{territory}]")
            assert column % 16 == 0
            assert [line[column : column + 16].strip() for line in lines[row : row + 2]] == cell


def assert_players(lines, state):
    given = position.to_dict(state)
    inside = [" ".join(line[17:63].removeprefix(">").split()) for line in lines]
    rules = Rules.from_dict(given["rules"])
    for seat in range(rules.players):
        team = rules.team(seat)
        held = [c for c, holder in zip(CLANS, given["control"], strict=True) if holder == seat]
        reserve = "".join(text for text in numbers(given["reserves"][seat]) if text[1:] != "0")
        reserve += f"+{given['crowns'][seat]}" if given["crowns"][seat] else ""
        court = " ".join(numbers(given["courts"][seat], held))
        assert f"{seat} {'ABC'[team]}{given['castles'][team]} {court} {reserve}".strip() in inside
        hand = " ".join(map(str, given["discs_in_hand"][seat])) or "none"
        line = f"  player {seat} played {given['discs_played'][seat] or '-'}, holds {hand}"
        assert lines.index(line) == 15 + given["order"].index(seat)
    assert " ".join(["supply", *numbers(given["supply"])]) in inside


def assert_situation(text, state):
    marked = re.findall(r" > (\d) [ABC]\d+ ", text)
    if state["phase"] == OVER:
        assert re.search(r"over \((castles|regions|max_rounds)\): .* won", text)
        assert marked == []
        return
    due = {
        "disc": "plays a disc",
        "crown": "decides a crown",
        "roll": f"rolls {state['dice_due']} dice",
        "place": f"plays {state['placements_left']} paladins".replace(" 1 paladins", " 1 paladin"),
        "move": "moves the Emperor",
    }[PHASE_NAMES[state["phase"]]]
    said = f" round {state['round']}, player {state['player']} {due}\n"
    assert said in text and marked == [str(state["player"])]


def test_how_it_ended_and_who_won_is_said():
    states = engine.new_games(Rules(3), seed=1)
    states["phase"], states["player"] = OVER, 0
    for reason, winners, said in (
        (1, 0b010, "over (castles): B won"),
        (2, 0b101, "over (regions): A and C won"),
        (3, 0, "over (max_rounds): nobody won"),
        (4, 0b110, "over (forfeit): B and C won"),
    ):
        states["reason"], states["winners"] = reason, winners
        drawn = board_text(states[0])
        assert said in drawn and ">" not in drawn


def test_what_does_not_fit_is_cut_and_shows_it():
    states = engine.new_games(Rules(4, paladins_per_clan=200), seed=1, roll=False)
    states["region_paladins"][0, :, 2] = 199
    states["courts"][:] = states["supply"][:] = 197
    states["crowns"][0, :4] = 9
    drawn, full = board_text(states[0]), "r197 p197 b197 y197 g197"
    assert max(map(len, drawn.split("\n"))) <= 80
    assert "r199p199b199y1~" in drawn and f"{full} +9" in drawn and f"supply {full}" in drawn
