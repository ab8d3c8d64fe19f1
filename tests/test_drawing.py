"""The drawing says what the state says, and is safe to show anywhere."""

import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from
from strategies import history, rules, sample, seeds

import carolus_env as ce
from carolus_env import engine
from carolus_env.drawing import pieces
from carolus_env.drawing.board import LAYOUTS, board_svg
from carolus_env.drawing.pieces import _DARK, _LIGHT, CLAN_STYLES, GOLD, TEAM_STYLES, clan_shape
from carolus_env.engine.rules import CLAN_NAMES, CLANS, DISC, FIRST_MOVE, MOVE, OVER, PLACE, Rules
from carolus_env.notation.descriptions import board_words
from carolus_env.records import position

SVG = "{http://www.w3.org/2000/svg}"
CLAN_FILLS, TEAM_FILLS = ([look.fill for look in looks] for looks in (CLAN_STYLES, TEAM_STYLES))


def drawn(state, **options):
    return ElementTree.fromstring(board_svg(state, **options))


def groups(root, name):
    return [g for g in root.iter(f"{SVG}g") if name in g.get("class", "").split()]


def numbers_in(group):
    return [int(t.text) for t in group.iter(f"{SVG}text") if (t.text or "").isdigit()]


def played(players, seed, until):
    """The first state of a random game where ``until(state)``."""
    return next(s for s in history(Rules(players), seed, games=1)[:, 0] if until(s))


def test_steps_once_around_lead_to_the_same_region():
    seen = history(Rules(players=2), 4, games=64).reshape(-1)
    moving = seen[seen["phase"] == MOVE]
    disc = moving["discs_played"][np.arange(len(moving)), moving["player"]]
    around = moving[disc > moving["regions"]][0]
    [one] = [g for g in groups(drawn(around, legal=True), "region") if g.get("data-region") == "1"]
    result = [one.get(f"data-{name}") for name in ("region", "steps", "action")]
    assert result == ["1", f"1,{1 + around['regions']}", str(FIRST_MOVE)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_pictures_of_every_size_have_even_sides_as_videos_need(layout, players):
    state = engine.new_games(Rules(players), 1, seed=0)[0]
    for width in (*range(1, 60, 7), 301, 640, 799, 800, 1920, 20_000):
        root = drawn(state, layout=layout, width=width)
        sides = [int(root.get(side)) for side in ("width", "height")]
        across, down = map(float, root.get("viewBox").split()[2:])
        assert sides[0] - width in (-1, 0, 1) and not any(side % 2 for side in sides)
        assert abs(sides[1] - max(2, width * down / across)) <= 2 * max(1, down / across)


@given(rules, seeds, sampled_from(["wide", "narrow"]))
def test_every_state_is_drawn_as_it_is(kind, seed, layout):
    for state in sample(history(kind, seed, games=2, limit=300), seed, 8):
        data = position.to_dict(state)
        root = drawn(state, layout=layout, legal=True)
        regions = sorted(groups(root, "region"), key=lambda g: int(g.get("data-region")))
        courts = groups(root, "court")
        assert [int(g.get("data-region")) for g in regions] == list(range(len(data["regions"])))
        for group, region in zip(regions, data["regions"], strict=True):
            ends = dict.fromkeys((region["territories"][0], region["territories"][-1]))
            span = "-".join(map(str, ends))
            assert group.get("data-territories") == span
            fills = [p.get("fill") for p in group.iter(f"{SVG}path") if p.get("transform")]
            held = [CLAN_FILLS[clan] for clan in range(CLANS) if region["paladins"][clan]]
            assert [fill for fill in fills if fill in CLAN_FILLS] == held
            castles = [TEAM_FILLS[region["owner"]]] * region["castles"]
            assert [fill for fill in fills if fill in TEAM_FILLS] == castles
            gold = [path for path in group.iter() if "s-gold" in path.get("class", "")]
            assert bool(gold) == (region is data["regions"][0]), "the Emperor's"
            lines = [path.get("class", "") for path in group.iter(f"{SVG}path")]
            for below, line in itertools.pairwise(lines):  # a mark has an edge of its own
                assert not {"s-open", "s-last"} & set(line.split()) or below == "s-card"
        assert [int(g.get("data-seat")) for g in courts] == list(range(len(data["courts"])))
        assert [numbers_in(group) for group in courts] == data["courts"]
        for group, reserve in zip(groups(root, "reserve"), data["reserves"], strict=True):
            held = {int(t.get("data-clan")): numbers_in(t)[0] for t in groups(group, "token")}
            assert held == {clan: n for clan, n in enumerate(reserve) if n}


def test_legal_decisions_are_hooks_with_their_action_numbers():
    states, streams, seen = engine.new_games(Rules(3), 1, seed=2), ce.new_streams(2, 1), set()
    while states["phase"][0] != OVER:
        root, legal = drawn(states[0], legal=True), engine.legal_actions(states).tolist()
        hooks = [int(g.get("data-action")) for g in root.iter(f"{SVG}g") if g.get("data-action")]
        phase = int(states["phase"][0])
        if phase == MOVE:
            steps = [g.get("data-steps") for g in groups(root, "region") if g.get("data-steps")]
            numbers = [int(n) for text in steps for n in text.split(",")]
            assert sorted(numbers) == [action - FIRST_MOVE + 1 for action in legal]
            assert set(hooks) <= set(legal)
        elif phase == PLACE:
            assert hooks == []
            courts, tokens = (
                [int(g.get(f"data-{key}")) for g in groups(root, name) if "open" in g.get("class")]
                for name, key in (("court", "seat"), ("token", "clan"))
            )
            assert courts == [states["player"][0]]
            assert sorted(tokens) == sorted({(action - 15) // 16 for action in legal})
        else:
            assert sorted(hooks) == legal
        if phase not in seen:
            assert "open" not in re.sub("<style>.*</style>", "", board_svg(states[0]))
        seen.add(phase)
        engine.step(states, engine.random_actions(states, streams))
    assert len(seen) == 4


def test_the_last_decision_is_marked_where_it_was_played():
    states, streams, kinds = engine.new_games(Rules(3), 1, seed=4), ce.new_streams(4, 1), set()
    assert marked(drawn(states[0])) == []
    for _ in range(120):
        before, action = states.copy(), engine.random_actions(states, streams)
        engine.step(states, action)
        kind, number, clan, destination = engine.rules.action_parts(int(action[0]))
        root = drawn(states[0], last=(before[0], int(action[0])))
        seat, kind = str(before["player"][0]), kind if destination != 0 else "court"
        expected = {
            "crown": [],
            "disc": [("disc", seat, str(number))],
            "court": [("court", seat, None)],
        }
        assert marked(root) == expected.get(kind, [("region", None, None)])
        if kind == "court":
            [row] = [e for e in root.iter(f"{SVG}rect") if "s-last" in e.get("class", "")]
            assert float(row.get("y")) == pytest.approx(120 + 33.5 * clan)
        elif kind == "move":
            [region] = [g for g in groups(root, "region") if marks_in(g)]
            territory = int(region.get("data-territories").split("-")[0])
            reached = position.to_dict(before[0])["regions"]
            assert territory in reached[number % len(reached)]["territories"]
        kinds.add(kind)
    assert kinds == {"disc", "crown", "place", "court", "move"}


def test_all_decisions_of_a_turn_are_marked():
    planner, streams = ce.make("planner"), ce.new_streams(5, 1)
    states, turn, seen = engine.new_games(Rules(2), 1, seed=5), [], 0
    while states["round"][0] < 9:
        action = int(planner.act(states, streams)[0])
        kind = engine.rules.action_parts(action).kind
        turn = [] if kind == "disc" else turn
        turn.append((states.copy()[0], action))
        engine.step(states, np.array([action]))
        if kind != "move" or states["phase"][0] == OVER:
            continue
        root = drawn(states[0], turn=turn)
        parts = [(before, engine.rules.action_parts(action)) for before, action in turn]
        for name, to_court in (("row", True), ("region", False)):
            said = [t.text or "" for g in groups(root, name) for t in g.iter(f"{SVG}text")]
            came = [int(text[1:]) for text in said if text.startswith("+")]
            placed = [part for _, part in parts if part.kind == "place"]
            assert sum(came) == sum((part.destination == 0) == to_court for part in placed)
        assert len(groups(root, "walk")) == sum(p.kind == "move" for _, p in parts)
        built = states["castles"][0].astype(int) - turn[0][0]["castles"]
        rings = [e for g in groups(root, "region") for e in g.iter(f"{SVG}circle")]
        rings = [e for e in rings if "s-last" in e.get("class", "")]
        assert len(rings) == max(0, built.max())
        seen += len(rings)
        turn = []
    assert seen > 5
    assert "s-last" not in re.sub("<style>.*</style>", "", board_svg(states[0], turn=[]))


def test_texts_fit_where_they_stand():
    for name, size in (("Ada", 24), ("A longer name", 18)):
        assert pieces.fitting(name, 200, 24, 18) == (name, size)
    for name in ("W" * 40, "i" * 400, "日本" * 20):
        text, size = pieces.fitting(name, 200, 24, 18)
        assert size == 18 and text.endswith("…") and text[:-1] == name[: len(text) - 1]
    narrow, wide = (len(pieces.fitting(letter * 400, 200, 18)[0]) for letter in "iW")
    assert narrow > 2 * wide
    joined = "\U0001f469\u200d\U0001f467" * 9
    assert "\u200d…" not in pieces.fitting(joined, 100, 20)[0]


def marks_in(group):
    """The elements of a group that mark the last decision."""
    looks = [element.get("class", "").split() for element in group.iter()]
    return [look for look in looks if "s-last" in look or "f-last" in look]


def marked(root):
    """Kind, seat and disc of the groups with a mark of the last decision."""
    return [
        (name, group.get("data-seat"), group.get("data-disc"))
        for name in ("disc", "court", "region")
        for group in groups(root, name)
        if marks_in(group)
    ]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_board_in_words_tells_each_region_and_each_seat(players):
    state = played(players, 3, lambda s: s["round"] == 5 and s["phase"] == PLACE)
    data, names = position.to_dict(state), ["Ann", "Bob", "Eve", "Dan"][:players]
    said, teams = board_words(state, names), [Rules(players).team(k) for k in range(players)]
    regions, seats = said[: len(data["regions"])], said[len(data["regions"]) :]
    for words, region in zip(regions, data["regions"], strict=True):
        assert words.startswith("territor")
        held = [f"{n} {CLAN_NAMES[clan]}" for clan, n in enumerate(region["paladins"]) if n]
        assert (", ".join(held) or "none") in words
        owners = [name for name, t in zip(names, teams, strict=True) if t == region["owner"]]
        assert (f" of {' and '.join(owners)}" in words) == bool(owners)
    assert regions[0].endswith(", the Emperor")
    for seat, words in enumerate(seats):
        clans = [CLAN_NAMES[c] for c, s in enumerate(data["control"]) if s == seat]
        assert words.startswith(f"{names[seat]}, ")
        assert f": controls {', '.join(clans) or 'no clan'}; court " in words
    assert f"<desc>{'. '.join(said)}.</desc>" in board_svg(state, names=names)


def test_names_are_text_and_never_markup_and_nothing_comes_from_elsewhere():
    name = "</title><script>alert(1)</script>\"'&"
    state = played(2, 1, lambda s: s["round"] == 3 and s["phase"] == DISC)
    picture = board_svg(state, names=[name, "Bob"], legal=True)
    root = ElementTree.fromstring(picture)
    assert "<script" not in picture
    assert any(name[:16] in (t.text or "") for t in root.iter(f"{SVG}text"))
    assert name in groups(root, "court")[0].findtext(f"{SVG}title")
    assert re.findall(r"(?:href|src|url)\b", picture) == []
    assert re.findall(r"https?://[^\"]+", picture) == ["http://www.w3.org/2000/svg"]


def test_bad_options_are_refused():
    states = engine.new_games(ce.Rules(), 1, seed=1)
    for name, value, named in (
        ("theme", "blue", "'auto', 'light', 'dark'.* 'blue'"),
        ("layout", "round", "'wide', 'narrow'.* 'round'"),
        ("names", ["one"], "got 1"),
        ("width", 0, "got 0"),
    ):
        with pytest.raises(ValueError, match=f"{name} .*{named}"):
            board_svg(states[0], **{name: value})


def test_colours_of_a_theme_stay_within_its_own_pictures():
    """Two pictures on one page: no rule may reach into the other."""
    states = engine.new_games(ce.Rules(), 1, seed=1)
    for theme in ("auto", "light", "dark"):
        [style] = re.findall("<style>(.*?)</style>", board_svg(states[0], theme=theme))
        rules = re.findall(r"[{}]?([^{}@]+)\{[^{}]*fill:#", style)
        coloured = [rule for rule in rules if "f-gold" not in rule]
        assert coloured
        assert all(f".carolus-{theme} " in rule for rule in coloured)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_mark_stands_out_three_to_one_in_both_themes(theme):
    """What is drawn, or its own edge, against all that it may lie on."""
    colours = _LIGHT if theme == "light" else _DARK
    grounds = [colours["back"], colours["card"]]
    lands = [colours["land"], *(look.fill for look in TEAM_STYLES)]
    looks = [(look, (*grounds, *lands)) for look in CLAN_STYLES]  # on land and in courts
    looks += [(look, grounds) for look in (*TEAM_STYLES, GOLD)]  # beside the land
    for look, below in looks:
        for ground in below:
            assert max(contrast(look.fill, ground), contrast(look.line, ground)) >= 3
        if look is not GOLD:
            assert contrast(look.fill, look.text) >= 4.5, "its number"
    for mark in ("ink", "soft", "open", "last", "edge"):
        assert min(contrast(colours[mark], ground) for ground in grounds) >= 3, mark
    for mark in ("open", "last"):  # on land they have an edge in the colour of cards
        assert contrast(colours[mark], colours["card"]) >= 3
    assert contrast(GOLD.fill, GOLD.line) >= 3
    assert len({clan_shape(clan, 10.0) for clan in range(CLANS)}) == CLANS
    assert min(np.diff(sorted(int(look.fill[1:3], 16) for look in TEAM_STYLES))) > 80


@pytest.mark.parametrize("players", [2, 3, 4])
def test_on_a_phone_panels_are_as_wide_as_the_circle_and_what_is_touched_has_room(players):
    state = played(players, 3, lambda s: s["phase"] == PLACE)
    root = drawn(state, layout="narrow", legal=True)
    seats = groups(root, "seat")
    scales = {re.search(r"scale\((.*?)\)", g.get("transform"))[1] for g in seats}
    assert len(seats) == players and [float(scale) for scale in scales] == [round(1000 / 491, 4)]
    pixels = 348 / float(root.get("viewBox").split()[2])  # on a phone of 360 pixels
    rooms = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "room"]
    assert rooms and {room.get("fill") for room in rooms} == {"none"}
    for room in rooms:
        size = min(float(room.get("width")), float(room.get("height")))
        assert size * pixels * 1000 / 491 >= 24
