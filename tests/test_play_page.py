"""The page while one plays, in a browser: the first minute, the last turn, and why it came so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import test_play_browser as played
from test_play_browser import (
    BROWSER,
    DESKTOP,
    PHONE,
    Open,
    Page,
    Tab,
    click_on,
    click_to,
    decided,
    events,
    record_of,
    start_game,
    sync_api,
)

import carolus_env as ce
from carolus_env import bots
from carolus_env.drawing import board_svg
from carolus_env.engine.rules import PLACE, Rules, action_parts
from carolus_env.play.app_state import GameInPlay
from carolus_env.play.session import Session

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
page, browser, open_tab = played.page, played.browser, played.open_tab

MOVING = {"reduced_motion": "no-preference"}
BOX = "e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; }"


def overlap(one: list[float], other: list[float]) -> bool:
    return all(one[k] < other[k + 2] and other[k] < one[k + 2] for k in (0, 1))


def box(place: Any) -> list[float]:
    return place.evaluate(BOX)


def in_play(
    page: Page, rounds: int = 3, phase: int = PLACE, seed: int = 4, players: int = 2
) -> str:
    """The address of a game of greedy players; the first seat, now a person, is to move.

    The others have had a whole turn since the last one of that seat.
    """
    greedy = bots.make("greedy")
    session = Session.new(Rules(players=players), [greedy] * players, seed=seed)
    while True:
        session.ask_agent()
        if (session.player, session.state["phase"]) == (0, phase):
            agents = [None, *[greedy] * (players - 1)]
            taken = Session(session.record(), agents, seed=seed)
            moves = [taken.events[index].get("action", 0) for index in taken.news]
            turns = sum(action_parts(action).kind == "move" for action in moves)
            if session.state["round"] >= rounds and turns:
                return f"/game/{page.app.games.add(GameInPlay(taken))}"


def view_of(tab: Tab, page: Page) -> dict[str, Any]:
    status, view = page.get(f"games/{tab.url.rsplit('/', 1)[1]}")
    assert status == 200
    return view


# -------------------------------------------------------------------------------- the first minute


def test_one_choice_begins_a_game(open_tab: Open, page: Page) -> None:
    tab = open_tab(more=False)
    levels = page.get("menu")[1]["levels"]
    assert [level["name"] for level in levels] == ["easy", "medium", "hard"]
    buttons = tab.locator(".level")
    sync_api.expect(buttons).to_have_count(3)
    for button, level in zip(buttons.all(), levels, strict=True):
        for text in (level["name"].capitalize(), level["agent"], level["about"]):
            assert text in button.inner_text()
    sync_api.expect(tab.get_by_label("Seat 2", exact=True)).to_be_hidden()
    tab.get_by_text("More players").click()
    sync_api.expect(tab.get_by_label("Seat 2", exact=True)).to_be_visible()
    tab.get_by_label("Explain the board").uncheck()
    buttons.first.click()
    decided(tab)
    record = record_of(tab, page)
    assert record["agents"] == [None, levels[0]["agent"]]
    assert record["names"] == ["Player 1", "Easy bot"]
    sync_api.expect(tab.locator(".callout")).to_be_hidden()


def test_the_buttons_wait_until_the_engine_is_ready(open_tab: Open, page: Page) -> None:
    _, menu = page.get("menu")
    text = "Preparing the engine, once on this machine: the game"
    cold = [{"ready": False, "done": 1, "all": 4, "text": text, "cold": ["planner", "search"]}]
    warm = {"ready": True, "done": 4, "all": 4, "text": "", "cold": []}
    tab = open_tab("/replay", more=False)
    tab.route("**/api/menu", lambda route: route.fulfill(json={**menu, "warm": cold[0]}))
    tab.route("**/api/warm", lambda route: route.fulfill(json=cold[0]))
    tab.goto(page.address)
    warmth, levels = tab.locator(".first .warmth"), tab.locator(".level")
    sync_api.expect(warmth).to_contain_text(text)
    assert warmth.locator("progress").evaluate("e => e.value / e.max") == 0.25
    for level in levels.all():
        sync_api.expect(level).to_be_disabled()
    cold[0] = {**cold[0], "cold": ["search"]}
    sync_api.expect(levels.first).to_be_enabled()
    sync_api.expect(levels.last).to_be_disabled()
    cold[0] = warm
    sync_api.expect(levels.last).to_be_enabled()
    sync_api.expect(warmth).to_be_hidden()


STEPS = {
    "Castles win": ".castles",
    "Your reserve": ".reserve",
    "Your court": ".court > rect",
    "Control": ".court .row",
    "Discs": ".disc",
    "Strength": ".region[data-region='1'] > path",
    "Play your paladins": ".reserve",
    "The Emperor": ".emperor",
}


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_tour_points_at_what_it_explains(open_tab: Open, size: Any) -> None:
    tab = open_tab(more=False, size=size)
    tab.locator(".level").first.click()
    decided(tab)
    callout, spot = tab.get_by_role("region", name="Castles win"), tab.locator(".spot")
    sync_api.expect(callout).to_be_visible()
    for number, (title, target) in enumerate(STEPS.items(), 1):
        callout = tab.get_by_role("region", name=title)
        sync_api.expect(callout).to_contain_text(f"{number} of {len(STEPS)}")
        light, about = box(spot), box(tab.locator(f".board {target}").first)
        assert overlap(light, about), title
        assert not overlap(box(callout), light), "what it is about stays in sight"
        assert played.fits(tab)
        if number < len(STEPS):
            callout.get_by_role("button", name="Next").click()
    callout.get_by_role("button", name="Back").click()
    sync_api.expect(tab.get_by_role("region", name="Play your paladins")).to_be_visible()
    tab.get_by_role("button", name="Leave the tour").click()
    sync_api.expect(tab.locator(".callout")).to_be_hidden()
    sync_api.expect(spot).to_be_hidden()
    tab.get_by_role("button", name="Tour", exact=True).click()
    sync_api.expect(tab.get_by_role("region", name="Castles win")).to_be_visible()
    tab.keyboard.press("Escape")
    sync_api.expect(tab.locator(".callout")).to_be_hidden()


def test_the_tour_goes_on_as_one_plays_a_round(open_tab: Open) -> None:
    tab = open_tab(more=False)
    tab.locator(".level").first.click()
    title = tab.locator(".callout h2")
    while decided(tab) == "crown":
        click_on(tab)
    for _ in range(4):
        tab.locator(".callout").get_by_role("button", name="Next").click()
    for phase, begun, done in (
        ("disc", "Discs", "Strength"),
        ("place", "Play your paladins", "The Emperor"),
    ):
        while decided(tab) != phase:
            click_on(tab)
        if title.inner_text() != begun:
            tab.locator(".callout").get_by_role("button", name="Next").click()
        sync_api.expect(title).to_have_text(begun)
        sync_api.expect(tab.locator(".callout .now")).to_contain_text("Now: Play")
        while decided(tab) == phase:
            click_on(tab)
        sync_api.expect(title).to_have_text(done)
    click_on(tab)
    sync_api.expect(tab.locator(".callout")).to_be_hidden()
    tab.goto(tab.url.split("/game")[0])
    sync_api.expect(tab.get_by_label("Explain the board")).not_to_be_checked()


def test_help_shows_what_it_tells(open_tab: Open) -> None:
    tab = open_tab()
    tab.locator("form.card").wait_for()
    tab.keyboard.press("?")
    dialog = tab.get_by_role("dialog", name="How to play")
    pictures = dialog.locator("figure > svg")
    sync_api.expect(pictures).to_have_count(7)
    for picture in pictures.all():
        left, top, right, bottom = box(picture)
        assert right - left > 100 and bottom - top > 20
        assert picture.get_attribute("aria-label")
    said = " ".join(dialog.inner_text().split())
    for rule in (
        "A number that another player has laid this round may not be played, unless you have no",
        "After five rounds everybody takes all five discs back",
        "A crown lets you choose the clan",
    ):
        assert rule in said


# ------------------------------------------------------------------------------------ the last turn


def test_the_last_turn_stays_marked_until_ones_own_is_over(open_tab: Open, page: Page) -> None:
    tab = open_tab(in_play(page))
    decided(tab)
    board = tab.locator(".board")

    def marks() -> list[str]:
        return board.evaluate(
            """e => [...e.querySelectorAll('.f-last, .s-last')].map(m => {
                const group = m.closest('[data-territories], [data-disc], .row, .walk');
                const name = group?.dataset.territories ?? group?.outerHTML.slice(0, 40);
                return `${m.tagName} ${name}`;
            }).filter(m => !m.endsWith(' undefined'))"""
        )

    before, view = marks(), view_of(tab, page)
    news = view["news"]["events"]
    assert news and {view["record"]["events"][index]["player"] for index in news} == {1}
    assert len(board.locator(".walk").all()) >= 1
    came = board.locator('.seat[data-seat="1"] .row .f-last + text').all_text_contents()
    placed = [
        view["record"]["events"][index]["action"]
        for index in news
        if "action" in view["record"]["events"][index]
    ]
    at_court = [a for a in placed if action_parts(a).kind == "place" and not action_parts(a)[3]]
    assert sum(map(int, came)) == len(at_court)
    sync_api.expect(tab.locator(".log .fresh")).to_have_count(len(news))
    while decided(tab) == "place":
        click_on(tab)
        assert marks() == before
    click_on(tab)
    assert marks() != before


@pytest.mark.slow
def test_the_last_turn_is_shown_again(open_tab: Open, page: Page) -> None:
    tab = open_tab(in_play(page))
    decided(tab)
    view, board = view_of(tab, page), tab.locator(".board")
    now = board.inner_html()
    tab.get_by_role("button", name="Show the last turn again").click()
    caption, past = tab.locator(".caption"), tab.locator(".stage.past")
    for index in view["news"]["shown"]:
        line = view["log"][index]
        sync_api.expect(caption).to_have_text(f"{view['names'][line['seat']]} {line['words']}")
        if verb := {"place": " places ", "move": " moves ", "disc": " plays "}.get(
            line["what"]["kind"]
        ):
            told = board.locator("svg > g:first-of-type > text.f-last").first
            sync_api.expect(told).to_contain_text(verb)
        sync_api.expect(past).to_have_count(1)
    sync_api.expect(past).to_have_count(0)
    assert board.inner_html() == now
    tab.keyboard.press("l")
    sync_api.expect(past).to_have_count(1)
    tab.keyboard.press("Escape")
    sync_api.expect(past).to_have_count(0)
    sync_api.expect(caption).to_be_hidden()
    assert board.inner_html() == now
    tab.keyboard.press("l")
    sync_api.expect(past).to_have_count(1)
    board.locator("svg").click(position={"x": 5, "y": 5})  # a click leads back, and plays nothing
    sync_api.expect(past).to_have_count(0)
    assert events(tab) == view["at"]
    click_on(tab)


ANIMATED = """document.getAnimations().filter((shown) => !(shown instanceof CSSTransition)
    && shown.effect?.target?.closest?.('.board, .flying')).length"""


@pytest.mark.parametrize(
    ("options", "switch", "moves"),
    [
        (MOVING, True, True),
        (MOVING, False, False),
        ({"reduced_motion": "reduce"}, True, False),
    ],
    ids=["on", "switched off", "less motion"],
)
def test_pieces_move_unless_that_is_not_wanted(
    open_tab: Open, page: Page, options: Any, switch: bool, moves: bool
) -> None:
    tab = open_tab(in_play(page), speed="normal", **options)
    decided(tab)
    if not switch:
        tab.get_by_label("Motion").uncheck()
    tab.evaluate(
        f"""() => {{
            window.most = 0;
            setInterval(() => (window.most = Math.max(window.most, {ANIMATED})), 5);
        }}"""
    )
    while decided(tab) == "place":
        click_on(tab)
    assert (tab.evaluate("window.most") > 0) == moves
    tab.evaluate("window.most = 0")
    click_on(tab)
    tab.wait_for_function("document.querySelectorAll('.dice, .was, .flying').length === 0")
    assert (tab.evaluate("window.most") > 0) == moves
    if options is MOVING:
        tab.reload()
        decided(tab)
        assert tab.get_by_label("Motion").is_checked() == switch


def test_the_log_has_room_for_a_round(open_tab: Open, page: Page) -> None:
    tab = open_tab(in_play(page, rounds=4))
    decided(tab)
    log = tab.locator(".log")
    last = tab.locator(".log [data-round]").last.get_attribute("data-round")
    number = int(last.split()[1]) - 1
    whole = log.evaluate(
        """(e, [start, end]) => {
            const lines = [...e.querySelectorAll("li")];
            const at = (name) => lines.findIndex((line) => line.dataset.round === name);
            return lines[at(end)].offsetTop - lines[at(start)].offsetTop;
        }""",
        [f"round {number}", f"round {number + 1}"],
    )
    assert whole > 150
    assert log.evaluate("e => e.clientHeight") >= whole
    top, bottom = (box(log)[k] for k in (1, 3))
    assert top >= 0 and bottom <= DESKTOP["height"] + 1


def test_a_strip_above_the_board_tells_it_on_a_phone(open_tab: Open, page: Page) -> None:
    path = in_play(page)
    tab = open_tab(path, size=PHONE)
    decided(tab)
    strip, view = tab.get_by_role("region", name="What the others did"), view_of(tab, page)
    for turn in view["news"]["turns"]:
        assert f"{view['names'][turn['seat']]} {turn['words']}" in strip.inner_text()
    assert re.search(r"places .* at court", strip.inner_text())
    assert re.search(r"moves the Emperor to \d", strip.inner_text())
    assert box(strip)[3] <= box(tab.locator(".board"))[1]
    assert played.fits(tab)
    strip.get_by_role("button", name="Show again").click()
    sync_api.expect(tab.locator(".stage.past")).to_have_count(1)
    sync_api.expect(open_tab(path).locator(".strip")).to_be_hidden()


def test_the_middle_of_the_board_speaks_in_words(open_tab: Open) -> None:
    tab = open_tab()
    tab.get_by_label("Name in seat 1").fill("Ada")
    start_game(tab)
    said = set()
    for _ in range(14):
        if decided(tab) == "over":
            break
        click_on(tab)
        lines = tab.locator(".board svg > g:first-of-type > text.f-last").all_text_contents()
        said |= set(lines)
    text = " | ".join(said)
    assert not re.search(r"E\+|>court|crown=|\bd\d\b", text), text
    assert re.search(r"(Ada|random) places (red|pink|blue|yellow|green) (at court|in \d+)", text)
    assert "moves the Emperor to" in text
    assert re.search(r"(builds a castle|no castle changes)", text)


# ------------------------------------------------------------------------------------ why


def test_each_stop_of_the_emperor_is_reckoned(open_tab: Open, page: Page) -> None:
    tab = open_tab(in_play(page, rounds=5))
    while decided(tab) != "move":
        click_on(tab)
    view = view_of(tab, page)
    assert len(view["steps"]) >= 1
    for step, button in zip(view["steps"], tab.locator(".choices .step").all(), strict=True):
        region = view["regions"][step["region"]]
        sums = [sum(part["number"] for part in parts) for parts in step["reckoning"]]
        assert sums == region["strengths"]
        assert step["result"] in button.inner_text()
        if "nobody" not in step["result"]:
            assert re.search(r"(red|pink|blue|yellow|green|castles?) \d.* against ", step["result"])
    for number in range(len(view["regions"])):
        region = view["regions"][number]
        closed = tab.locator(f'.board .region[data-region="{number}"]:not(.open) text')
        if closed.count() == 0 or not any(region["reckoning"]):
            continue
        closed.first.hover()
        shown = tab.locator(".tip .sum").all_inner_texts()
        wanted = [
            f"{sum(part['number'] for part in parts)} = "
            + " + ".join(f" {part['number']}" for part in parts)
            for parts in region["reckoning"]
            if parts
        ]
        assert ["".join(text.split()) for text in shown] == ["".join(w.split()) for w in wanted]
        return
    pytest.fail("no region can be pointed at")


@pytest.mark.parametrize("phase", ["disc", "place", "move"])
def test_a_hint_is_drawn_on_the_board(open_tab: Open, page: Page, phase: str) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, phase)
    tab.get_by_label("Bot that gives hints").select_option("greedy")
    with tab.expect_response("**/hint") as answer:
        tab.get_by_role("button", name="Hint").click()
    said = answer.value.json()
    assert "choice" in said, said
    action = said["choice"]["action"]
    mark = tab.locator(".board .hint-mark")
    sync_api.expect(mark).to_have_count(1)
    view = view_of(tab, page)
    if phase == "disc":
        target = tab.locator(f'.board .disc[data-action="{action}"]')
    elif phase == "move":
        [step] = [step for step in view["steps"] if step["action"] == action]
        target = tab.locator(f'.board .region[data-region="{step["region"]}"] > path').first
    else:
        [decision] = [found for found in view["legal"] if found["action"] == action]
        kind = (
            ".court.open .row" if decision["to"] == 0 else f'[data-region="{decision["to"] - 1}"]'
        )
        targets = tab.locator(f".board {kind}")
        target = targets.nth(action_parts(action).clan) if decision["to"] == 0 else targets.first
    goal = box(target)
    assert any(
        all(abs(one - other) < 16 for one, other in zip(box(edge), goal, strict=True))
        for edge in mark.locator(":scope > path:not(.way), :scope > rect").all()
    )
    assert tab.locator(f'.choice.advised[data-action="{action}"]').count() == 1
    assert events(tab) == view["at"]
    click_on(tab)
    sync_api.expect(mark).to_have_count(0)


def test_shares_of_the_win_have_names(open_tab: Open) -> None:
    tab = open_tab()
    tab.get_by_label("Name in seat 1").fill("Ada")
    start_game(tab)
    click_to(tab, "place")
    tab.get_by_label("Bot that gives hints").select_option("ppo")
    tab.get_by_role("button", name="Hint").click()
    names = tab.locator(".opinion .legend span")
    sync_api.expect(names).to_have_count(2)
    first, second = names.all_inner_texts()
    assert re.fullmatch(r"Ada \d+(\.\d)?%", first) and re.fullmatch(r"random \d+(\.\d)?%", second)


# ------------------------------------------------------------------------------------ the board


def test_pointing_at_ones_court_lights_the_court_alone(open_tab: Open) -> None:
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    if tab.locator(".hand [aria-pressed=true]").count() == 0:
        tab.locator(".hand button").first.click()
    tab.locator('.where [data-to="0"]').focus()
    court = tab.locator(".board .court.aimed")
    sync_api.expect(court).to_have_count(1)
    lit = court.evaluate(
        "e => [...e.querySelectorAll('*')].filter(p => getComputedStyle(p).filter !== 'none')"
        ".map(p => p.tagName)"
    )
    assert lit == ["rect"]


@pytest.fixture
def sheet(browser: Any) -> Iterator[Tab]:
    """A page without a server."""
    context = browser.new_context(viewport=DESKTOP)
    yield context.new_page()
    context.close()


def bare(tab: Tab, svg: str) -> None:
    tab.set_content(f'<body style="margin:0;width:1200px">{svg}')


def test_the_emperor_hides_no_number_and_no_text(sheet: Tab) -> None:
    states = ce.new_games(Rules(), 1, seed=1)
    tab = sheet
    for region in range(15):
        states["emperor"] = region
        bare(tab, board_svg(states[0], layout="wide"))
        covered = tab.evaluate(
            """() => {
                const box = (e) => e.getBoundingClientRect();
                const he = box(document.querySelector('.emperor'));
                return [...document.querySelectorAll('text')].filter((text) => {
                    const t = box(text);
                    const [high, low] = [t.top + t.height * 0.2, t.bottom - t.height * 0.2];
                    const beside = t.right < he.left || he.right < t.left;
                    return !beside && high < he.bottom && he.top < low;
                }).map((text) => text.textContent);
            }"""
        )
        assert covered == [], region


@pytest.mark.parametrize("name", ["\U0001f389" * 40, "W" * 40, "日本" * 20, "m" * 40])
def test_long_and_wide_names_stay_in_their_places(sheet: Tab, name: str) -> None:
    states = ce.new_games(Rules(), 1, seed=1)
    while states["phase"][0] != PLACE:
        last = states.copy()[0], int(np.flatnonzero(ce.legal_masks(states)[0])[0])
        ce.step(states, np.array([last[1]]))
    tab = sheet
    bare(tab, board_svg(states[0], names=[name, name], layout="wide", last=last))
    for seat in tab.locator(".seat").all():
        label, castles = box(seat.locator("text").first), box(seat.locator(".castles rect").first)
        assert label[2] <= castles[0]
    reach = tab.evaluate(
        """() => [...document.querySelectorAll('svg > g:first-of-type > text')].map((text) => {
            const { x, width } = text.getBBox();
            return Math.max(500 - x, x + width - 500);
        })"""
    )
    assert len(reach) >= 5 and max(reach) <= 215  # where the Emperor begins
