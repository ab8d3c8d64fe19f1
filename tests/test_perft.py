"""Perft: the published counts, and the same counts from two slow readings of the rules."""

from __future__ import annotations

import json
import pickle
import re
import runpy
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import ReferenceGame, Region

from carolus_env import engine, notation
from carolus_env.engine import chance
from carolus_env.engine import perft as engine_perft
from carolus_env.engine.perft import Count, divide, perft
from carolus_env.engine.rules import PHASE_NAMES, Rules
from carolus_env.notation import perft as notation_perft
from carolus_env.notation.perft import main, play_on, published
from carolus_env.records import play_event, state_of

PUBLISHED = published()
EACH = pytest.mark.parametrize("case", PUBLISHED, ids=[case.name for case in PUBLISHED])
START = engine.new_games(Rules(), seed=3)

# ------------------------------------------------------------------------------------ slow readings


def reference_at(game: engine.state.States) -> ReferenceGame:
    """The reference implementation, set up at a position."""
    state, rules = state_of(game), engine.rules_of(game[0])
    territories = [clan for clan in range(5) for _ in range(3)]
    reference = ReferenceGame(rules.to_dict(), territories, 0)
    reference.circle = [Region(**one) for one in state["regions"]]
    for name in ("supply", "courts", "reserves", "crowns", "control", "discs_in_hand"):
        setattr(reference, name, state[name])
    for name in ("discs_played", "placements_left", "round", "player", "phase"):
        setattr(reference, name, state[name])
    reference.order = reference.opening_order = game["order"][0, : rules.players].tolist()
    reference.done = int(game["turn"][0])
    reference.dice_due = int(game["dice_due"][0])
    assert reference.state() == state
    return reference


def after_each(game: ReferenceGame, what: str) -> Iterator[ReferenceGame]:
    """The game after every action or every multiset of dice."""
    saved = pickle.dumps(game)
    ways = game.legal()
    if what == "roll":
        ways = [list(faces) for faces in combinations_with_replacement(range(6), game.dice_due)]
    for way in ways:
        copy = pickle.loads(saved)
        getattr(copy, what)(way)
        yield copy


def identity(game: ReferenceGame) -> str:
    """The position as text; the seats' order, who is next and the result are not in `state`."""
    over = game.phase == "over"
    return json.dumps([game.state(), game.order, 0 if over else game.done, game.final])


def reference_counts(game: ReferenceGame, depth: int, *, merge: bool) -> list[Count]:
    """`perft` by the reference. ``merge`` continues equal positions once, with their number."""
    counts, layer = [], [(game, 1)]
    for _ in range(depth):
        decided: list[tuple[ReferenceGame, int]] = []
        while layer:
            before, ways = layer.pop()
            what = {"roll": "roll", "over": ""}.get(before.phase, "play")
            into = layer if what == "roll" else decided
            into += [(after, ways) for after in after_each(before, what)] if what else []
        sequences: Counter[str] = Counter()
        for after, ways in decided:
            sequences[identity(after)] += ways
        ended = sum(ways for after, ways in decided if after.phase == "over")
        counts.append(Count(sum(sequences.values()), len(sequences), ended))
        layer = decided
        if merge:
            one_of = {identity(after): after for after, _ in decided}
            layer = [(after, sequences[text]) for text, after in one_of.items()]
    return counts


def lines_after(game: engine.state.States, depth: int) -> Iterator[str]:
    """The position at the end of each sequence, game by game on the engine, as a line."""
    if depth == 0:
        yield notation.to_line(game[0], generator=False)
        return
    rolling = game["dice_due"][0] > 0
    events: list[dict[str, Any]] = [{"action": a} for a in engine.legal_actions(game).tolist()]
    if rolling:
        dice = combinations_with_replacement(range(6), int(game["dice_due"][0]))
        events = [{"roll": list(faces)} for faces in dice]
    for event in events:
        after = game.copy()
        play_event(after, event)
        yield from lines_after(after, depth if rolling else depth - 1)


# ------------------------------------------------------------------------------------ counts


@EACH
def test_published_counts_are_reproduced(case):
    game = notation.from_text(case.position)
    assert perft(game, 3)[1:] == case.counts


@EACH
def test_the_reference_counts_the_same_after_one_and_two_decisions(case):
    reference = reference_at(notation.from_text(case.position))
    depth = 2 if case.counts[1].sequences < 5000 else 1
    assert reference_counts(reference, depth, merge=False) == case.counts[:depth]


@pytest.mark.slow
@EACH
def test_the_reference_counts_the_same_after_three_decisions(case):
    reference = reference_at(notation.from_text(case.position))
    depth = 3 if case.counts[2].sequences < 100_000 else 2  # the one from the set-up takes minutes
    assert reference_counts(reference, depth, merge=True) == case.counts[:depth]


@EACH
def test_different_positions_are_different_lines(case):
    lines = list(lines_after(notation.from_text(case.position), 1))
    assert (len(lines), len(set(lines))) == case.counts[0][:2]


def test_positions_after_two_decisions_are_different_lines():
    for case in PUBLISHED:
        if case.counts[1].sequences > 1000:
            continue
        lines = list(lines_after(notation.from_text(case.position), 2))
        over = sum("| over " in line for line in lines)
        assert Count(len(lines), len(set(lines)), over) == case.counts[1], case.name


def test_the_published_positions_are_of_every_kind():
    games = np.concatenate([notation.from_text(case.position) for case in PUBLISHED])
    assert len(games) == 12
    assert {PHASE_NAMES[phase] for phase in games["phase"]} == set(PHASE_NAMES) - {"over"}
    assert set(games["players"]) == {2, 3, 4}
    for players in (2, 3, 4):
        assert set(games["crown_deferred"][games["players"] == players]) == {0, 1}
    assert any(count.ended for case in PUBLISHED for count in case.counts)
    assert any(count.sequences > count.positions for case in PUBLISHED for count in case.counts)
    for case in PUBLISHED:
        assert notation.to_line(notation.from_text(case.position)[0], generator=False) == (
            case.position
        )


def test_the_page_says_what_its_snippet_prints(tmp_path, capsys):
    page = (Path(__file__).parent.parent / "docs" / "perft.md").read_text()
    [snippet] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet)
    runpy.run_path(str(tmp_path / "snippet.py"))
    count, *branches = capsys.readouterr().out.splitlines()
    assert f"# {count}" in snippet
    assert len(branches) == 5


def test_the_first_count_is_the_position_itself():
    assert perft(START, 0) == [(1, 1, 0)]


def test_the_generator_makes_no_position_different_and_is_not_touched():
    other = START.copy()
    other["generator"] += np.uint64(1)
    before = other.copy()
    assert perft(other, 3) == perft(START[0], 3)
    assert other == before


def test_a_finished_game_is_not_continued():
    game = notation.from_text(PUBLISHED[2].position)
    play_on(game, "E+1 B takes 2 forming 10-4#")
    assert perft(game, 2) == [(1, 1, 1), (0, 0, 0), (0, 0, 0)]
    assert list(divide(game, 1)) == []


def test_small_blocks_change_nothing(monkeypatch):
    monkeypatch.setattr(engine_perft, "BLOCK", 7)
    for case in PUBLISHED[:4]:
        assert perft(notation.from_text(case.position), 2)[1:] == case.counts[:2]


def test_rolls_of_the_set_up_follow_one_another(monkeypatch):
    few = chance.Outcomes(*(part[:20] for part in chance.chance_outcomes(7)))
    monkeypatch.setattr(chance, "chance_outcomes", lambda dice: few)
    game = engine.new_games(Rules(crown_choice="deferred"), seed=1, roll=False)
    assert perft(game, 1)[1] == (5 * 20 * 20, 5 * 20 * 20, 0)  # both players', then a disc


def test_equal_positions_are_merged_and_their_sequences_added_exactly():
    games, ways = engine_perft._merged(np.repeat(START, 3), np.array([2**60, 2**53, 1]))
    assert (len(games), ways.tolist()) == (1, [2**60 + 2**53 + 1])
    with pytest.raises(OverflowError, match="smaller depth"):
        engine_perft._merged(np.repeat(START, 4), np.full(4, 2**61))


@pytest.mark.parametrize(("call", "depth"), [(perft, -1), (divide, 0), (divide, -1)])
def test_impossible_depths_are_refused(call, depth):
    with pytest.raises(ValueError, match=f"depth must be .* got {depth}"):
        call(START, depth)


# ------------------------------------------------------------------------------------ by branches


@EACH
def test_branches_add_up_and_each_is_the_perft_of_what_follows(case):
    game = notation.from_text(case.position)
    branches = list(divide(game, 2))
    assert sum(branch.beyond.sequences for branch in branches) == case.counts[1].sequences
    assert sum(branch.beyond.ended for branch in branches) == case.counts[1].ended
    for branch in branches:
        after = game.copy()
        play_event(after, branch.event)
        assert engine.state.equal(after, branch.after)[0]
    rolling = game["phase"][0] == 0
    assert perft(branches[-1].after, 2 if rolling else 1)[-1] == branches[-1].beyond


def test_moves_and_rolls_lead_to_a_position():
    game = notation.from_text(PUBLISHED[2].position)
    play_on(game, "E+2, rolls r b crown, crown=green")
    assert notation.legal_text(game[0]).startswith("red, pink, green > court")
    with pytest.raises(notation.NotationError, match="rolls"):
        play_on(notation.from_text(PUBLISHED[2].position), "E+2, red>court")


# ------------------------------------------------------------------------------------ the command


def test_the_command_counts_and_divides(capsys):
    line = PUBLISHED[2].position
    assert main([line, "--depth", "2"]) == 0
    rows = [text.split() for text in capsys.readouterr().out.splitlines()]
    assert " ".join(rows[0]) == line
    assert rows[2:] == [["1", "3", "3", "1"], ["2", "1260", "1160", "0"]]
    assert main([line, "--depth", "2", "--divide"]) == 0
    rows = [text.split() for text in capsys.readouterr().out.splitlines()]
    assert rows[2:] == [
        ["E+1", "B", "takes", "2", "forming", "10-4#", "0", "0", "0"],
        ["E+2", "at", "3-4", "630", "580", "0"],
        ["E+3", "at", "5-9", "630", "580", "0"],
        ["all", "1260", "1160", "0"],
    ]
    assert main([line, "--depth", "1", "--divide", "--after", "E+2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 + 56 + 1
    assert rows[2].split() == ["rolls", "red", "red", "red", "15", "15", "0"]
    assert rows[-1].split()[:2] == ["all", "630"]


def test_the_command_counts_the_published_positions_again(capsys, monkeypatch):
    few = [case._replace(counts=case.counts[:1]) for case in PUBLISHED[:2]]
    monkeypatch.setattr(notation_perft, "published", lambda: few)
    assert main([]) == 0
    wrong = [few[0], few[1]._replace(counts=[Count(1, 1, 0)])]
    monkeypatch.setattr(notation_perft, "published", lambda: wrong)
    assert main([]) == 1
    assert "DIFFERENT     three paladins to play" in capsys.readouterr().out


def test_the_command_says_what_it_cannot_read(capsys):
    assert main(["2 | 1"]) == 2
    assert "turn is missing" in capsys.readouterr().err
    assert main([PUBLISHED[2].position, "--after", "E+9"]) == 2
    assert "legal now: E+1, E+2, E+3" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([PUBLISHED[2].position, "--depth", "0"])
    assert "expected 1 or more decisions, got '0'" in capsys.readouterr().err
