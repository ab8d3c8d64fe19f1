"""The page in a real browser: Chromium without a window, driven by Playwright."""

import io
import json
import shutil

import numpy as np
import pytest
from page import Slow, book, finished, serving
from PIL import Image

import carolus_env as ce
from carolus_env import bots
from carolus_env.drawing import board_svg
from carolus_env.engine.rules import PLACE, Rules, action_parts
from carolus_env.play import session
from carolus_env.play.server import Api
from carolus_env.play.session import LEVELS, Roster
from carolus_env.records import replay

sync_api = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
TIMEOUT = 120_000  # milliseconds; the first decision of an agent may have to be compiled
sync_api.expect.set_options(timeout=TIMEOUT)
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
DECIDING = ", ".join(f".choices.{what}" for what in ("disc", "crown", "place", "move", "over"))
NASTY = '<img src=x onerror="window.hit=1"><b>B'
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page; its file 0 has two games and a line that is none."""
    games = [finished("greedy", rounds, 3, names=[f"A{rounds}", "B"]) for rounds in (1, 2)]
    file = book(tmp_path_factory.mktemp("games") / "two.jsonl", *games, b"rubbish\n")
    with serving(Api(Roster(), [file])) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        usual = ["--disable-back-forward-cache"]  # as a user's browser, which has it
        started = playwright.chromium.launch(executable_path=BROWSER, ignore_default_args=usual)
        yield started
        started.close()


@pytest.fixture
def open_tab(browser, page):
    """Opens tabs that fail the test when a script fails or the page's policy is broken."""
    contexts, problems = [], []

    def opened(path="/", size=DESKTOP, speed="instant", clock=False, **options):
        context = browser.new_context(viewport=size, **options)
        context.set_default_timeout(TIMEOUT)
        context.add_init_script(f"localStorage.setItem('carolus.speed', '\"{speed}\"')")
        contexts.append(context)
        if clock:  # which the test moves on by hand
            context.clock.install()
        return watched(context, path)

    def watched(context, path="/"):
        tab = context.new_page()
        tab.on("pageerror", lambda error: problems.append(("error", str(error))))
        tab.on("console", lambda said: problems.append((said.type, said.text)))
        tab.goto(path if path.startswith("http") else page.address + path)
        return tab

    opened.beside = lambda tab: watched(tab.context)
    yield opened
    for context in contexts:
        context.close()
    refused = "Failed to load resource"  # answers that refuse something are expected
    assert [said for said in problems if said[0] == "error" and refused not in said[1]] == []


def start_game(tab, bots="random", seed=7, rounds=2, players=2, name="", first=""):
    """Fill in the form for all new games: a person, or the bot ``first``, against bots."""
    if not tab.locator("form.card").is_visible():
        tab.get_by_text("More", exact=True).click()
    tab.get_by_label(str(players), exact=True).check(force=True)
    tab.get_by_label("Name in seat 1").fill(name)
    for seat, bot in enumerate([first, *[bots] * (players - 1)], 1):
        if bot:
            tab.get_by_label(f"Seat {seat}", exact=True).select_option(bot)
    tab.get_by_text("Options", exact=True).click()
    tab.get_by_label("Seed (empty: random)").fill(str(seed))
    tab.get_by_label("Max rounds (empty: none)").fill(str(rounds))
    if players == 4:
        tab.locator("select[name=partners]").select_option("adjacent")
    tab.get_by_role("button", name="Start").click()
    if not first:
        decided(tab)


def decided(tab):
    """Wait for a decision of a person or the end; returns the phase."""
    tab.wait_for_selector(DECIDING, state="attached")
    return tab.locator(DECIDING).get_attribute("class").split()[-1]


def events(tab):
    return tab.locator(".log li").count()


def after(tab, act):
    """Do something that plays a decision; wait for the next one."""
    before = events(tab)
    act()
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=before)
    return decided(tab)


def click_on(tab):
    """Decide by clicking on the board alone: a disc, a clan, a paladin and its place, a region."""
    phase = decided(tab)
    board = tab.locator(".board")
    number = events(tab)
    if phase == "place":
        token = board.locator(".reserve .token.open").last
        if "held" not in token.get_attribute("class"):
            token.click()
    target = {
        "disc": board.locator(".disc.open").first,
        "crown": board.locator(".supply .token.open").first,
        "move": board.locator(".region.open text, .step.open").nth(number % 2),
        "place": board.locator(".region.open text").nth(number % 7),
    }[phase]
    if phase == "place" and number % 3 == 0:
        target = board.locator(".court.open > rect").first
    return after(tab, target.click)


def click_to(tab, phase):
    while decided(tab) != phase:
        click_on(tab)


def game_at(open_tab, phase, rounds=2, **options):
    """A tab with a new game, played until this phase of a person, or until it is over."""
    tab = open_tab(**options)
    start_game(tab, rounds=rounds)
    click_to(tab, phase)
    return tab


def type_on(tab):
    """Decide by keys alone."""
    phase, keys = decided(tab), tab.keyboard
    chosen = lambda: tab.evaluate("document.activeElement.dataset.text")  # noqa: E731
    if phase == "disc":
        keys.press(tab.locator(".choices button").last.inner_text()[-1])
    elif phase == "crown":
        keys.press(tab.locator(".choices button").last.inner_text()[0])
    elif phase == "move":
        keys.press("1")
    else:
        keys.press(tab.locator(".hand button span").first.inner_text()[0])
        if events(tab) % 3 == 0:
            keys.press("c")
        else:
            digit = str(events(tab) % 3)  # not after those of the paladin before
            keys.press(digit)
            assert chosen() == digit
            keys.press("ArrowRight")
            assert chosen() == str(int(digit) + 1)
            keys.press("1")
            keys.press("1")
    return after(tab, lambda: keys.press("Enter"))


def record_of(tab):
    """The record that the tab keeps."""
    return json.loads(tab.evaluate("sessionStorage.getItem('carolus.game')"))


def view_of(tab, page):
    """The game as the server shows it."""
    return page.post("view", {"record": record_of(tab)})[1]


def paste(tab, page, record):
    """Paste a record, or any text, and wait for its board."""
    tab.goto(page.address + "/replay")
    text = record if isinstance(record, str) else json.dumps(record)
    tab.get_by_label("A game record").fill(text)
    tab.get_by_role("button", name="Show it").click()
    if text is not record:
        tab.wait_for_selector(".viewer .board svg")


def fits(tab):
    return tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("size", "decide"),
    [(DESKTOP, click_on), (PHONE, click_on), (DESKTOP, type_on)],
    ids=["clicking", "clicking on a phone", "keyboard"],
)
def test_a_full_game_is_played(open_tab, page, size, decide):
    tab = open_tab(size=size)
    tab.locator(".level").first.wait_for()
    assert fits(tab)
    start_game(tab)
    seen, news = set(), set()
    while (phase := decided(tab)) != "over":
        seen.add(phase)
        assert fits(tab)
        marked = [line.get_attribute("data-event") for line in tab.locator(".log .fresh").all()]
        assert [int(event) for event in marked] == view_of(tab, page)["news"]
        news.update(marked)
        decide(tab)
    assert seen >= {"disc", "place", "move", "crown"} and news
    assert tab.locator(".log [data-round]").first.get_attribute("data-round") == "set-up"
    record = record_of(tab)
    assert replay(record) == []
    assert record["result"]["rounds"] == 2
    assert tab.locator("h1").inner_text() == "Nobody won; the limit of 2 rounds is reached."
    assert events(tab) == len(record["events"])
    parts = [action_parts(event["action"]) for event in record["events"] if "action" in event]
    places = [part.destination for part in parts if part.kind == "place"]
    assert {place == 0 for place in places} == {True, False}, "court and regions"


def test_an_illegal_click_says_why_and_changes_nothing(open_tab):
    tab = game_at(open_tab, "disc")
    board = tab.locator(".board")

    def refused(piece, reason):
        before = events(tab)
        board.locator(piece).first.click()
        sync_api.expect(tab.locator("#notice")).to_contain_text(reason)
        assert events(tab) == before

    refused(".region text", "Play a disc first.")
    click_to(tab, "place")
    refused(".region.open text", "Choose a paladin from your reserve first.")
    refused(".supply .token", "to your court or to a region")
    click_to(tab, "move")
    where = board.locator(".region:not(.open)").first.get_attribute("data-territories")
    refused(".region:not(.open) text", f"The Emperor cannot reach {where} this turn.")


def test_pieces_and_what_a_paladin_would_do_are_shown_where_they_are_pointed_at(open_tab, page):
    tab = game_at(open_tab, "place")
    tip, board, game = tab.locator(".tip"), tab.locator(".board"), view_of(tab, page)
    for piece, said in ((".disc", "disc 1: "), (".castles", " of 10 castles")):
        board.locator(piece).first.locator("path, circle, rect, text").first.hover(force=True)
        sync_api.expect(tip).to_contain_text(said)
    for region in game["regions"][:3]:
        board.locator(f'.region[data-territories="{region["territories"]}"] text').first.hover()
        sync_api.expect(tip.locator("b")).to_have_text(region["territories"])
        sync_api.expect(tip.locator("p").last).to_have_text(region["result"])
        assert tip.locator("span").all_inner_texts() == [str(n) for n in region["strengths"]]
    paladin = tab.locator(".hand button").first
    if paladin.get_attribute("aria-pressed") == "false":
        paladin.click()
    clan = paladin.get_attribute("data-clan")
    places = [decision for decision in game["legal"] if decision["clan"] == clan]
    for button, place in zip(tab.locator(".where button").all()[:3], places, strict=False):
        button.focus()
        sync_api.expect(tip).to_contain_text(place["result"])
        assert button.get_attribute("aria-description").endswith(place["result"])
        assert board.locator(".aimed").count() == 1
    tab.evaluate("document.activeElement.blur()")
    sync_api.expect(tip).to_be_hidden()
    assert board.locator(".aimed").count() == 0
    click_to(tab, "move")
    before, step = events(tab), tab.locator(".choices .step").first
    for aim in (step.hover, step.focus, board.locator(".region.open text").first.hover):
        tab.mouse.move(1, 1)
        tab.evaluate("document.activeElement.blur()")
        sync_api.expect(tip).to_be_hidden()
        aim()
        sync_api.expect(tip).to_contain_text(step.locator("span").inner_text())
    assert events(tab) == before


def test_a_hint_is_marked_and_decisions_are_undone_until_dice_fall(open_tab):
    tab = game_at(open_tab, "disc")
    log, undo = tab.locator(".log li"), tab.get_by_role("button", name="Undo")
    tab.get_by_label("Bot that gives hints").select_option("ppo")
    for phase in ("disc", "place", "move"):
        click_to(tab, phase)
        tab.get_by_role("button", name="Hint").click()
        opinion = tab.get_by_role("region", name="What ppo thinks")
        assert "%" in opinion.locator("li").first.inner_text()
        assert opinion.get_by_role("img").get_attribute("aria-label").startswith("Expected share")
        assert tab.locator(".choice.advised").count() == tab.locator(".board .advised").count() == 1
        before = log.all_inner_texts()
        click_on(tab)
        sync_api.expect(opinion).to_have_count(0)
        assert tab.locator(".advised").count() == 0
        if phase == "place":
            click_on(tab)
            undo.click()
            sync_api.expect(log).to_have_count(len(before) + 1)
            tab.keyboard.press("u")
            sync_api.expect(log).to_have_count(len(before))
            assert log.all_inner_texts() == before
    sync_api.expect(undo).to_be_disabled()


def test_a_game_goes_on_after_a_reload_and_when_the_server_was_started_anew(open_tab):
    with serving(Api(Roster())) as page:
        tab = open_tab(page.address)
        start_game(tab)
        click_to(tab, "place")
        click_on(tab)
        tab.reload()
        decided(tab)
        before = tab.locator(".log li").all_inner_texts()
    tab.locator(".hand button").first.click()
    tab.locator(".where button").first.click()
    sync_api.expect(tab.locator("#notice")).to_contain_text("The server is not responding.")
    with serving(Api(Roster()), page.port):
        tab.reload()
        decided(tab)
        assert tab.locator(".log li").all_inner_texts() == before
        click_on(tab)


def test_two_tabs_are_two_games(open_tab):
    one = open_tab()
    start_game(one, seed=1)
    two = open_tab.beside(one)
    start_game(two, bots="greedy", seed=2, players=4)
    for tab in (one, two) * 3:
        tab.bring_to_front()  # a browser lets pages behind others wait
        click_on(tab)
    first, second = record_of(one), record_of(two)
    assert (first["seed"], first["agents"]) == (1, [None, "random"])
    assert (second["seed"], second["agents"]) == (2, [None, "greedy", "greedy", "greedy"])
    assert second["rules"]["partners"] == "adjacent"
    three = open_tab.beside(two)
    three.get_by_role("region", name="Continue your last game").get_by_role("link").click()
    decided(three)
    assert record_of(three) == second
    click_on(three)
    for tab, record in ((one, first), (two, second)):
        tab.reload()
        decided(tab)
        assert record_of(tab) == record, "the same game in two tabs goes two ways"


def test_a_bot_that_thinks_for_long_is_shown_and_left(open_tab):
    slow = Slow()
    bots.register("slowest", lambda _: slow, "thinks for long and fails")
    with serving(Api(Roster(["slowest"]))) as page:
        tab = open_tab(page.address)
        start_game(tab, first="slowest")
        doing = tab.locator(".doing.thinking")
        sync_api.expect(doing).to_contain_text("slowest has been thinking for")
        start_game(open_tab(page.address))
        slow.going.set()
        failure = "slowest failed with RuntimeError: no idea (page.py"
        sync_api.expect(tab.locator("#notice")).to_contain_text(failure)
        sync_api.expect(tab.get_by_role("button", name="Resume")).to_be_enabled()


def test_names_are_shown_as_they_are_and_run_nothing(open_tab, page):
    tab = open_tab()
    start_game(tab, name=NASTY)
    click_on(tab)
    assert tab.locator("h1").inner_text().endswith(NASTY)
    assert tab.locator("main img").count() == 0
    tab.get_by_text("The board in words").click()
    lines = tab.locator(".words li")
    sync_api.expect(lines).to_have_count(15 + 2)
    assert f" for {NASTY}, " in lines.first.inner_text()
    assert lines.nth(15).inner_text().startswith(f"{NASTY}, 0 castles of 10: ")
    paste(tab, page, finished("greedy", 2, names=[NASTY, NASTY]))
    assert NASTY in tab.locator("h1").inner_text()
    assert tab.evaluate("window.hit") is None


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_record_is_pasted_and_stepped_through(open_tab, page, size):
    record = finished("greedy", 2)
    last = len(record["events"])
    second = next(i for i, event in enumerate(record["events"]) if event.get("action", 99) < 5)
    tab = open_tab(size=size)
    paste(tab, page, record)
    assert "/replay/own" in tab.url
    lines, graph, keys = tab.locator(".log li"), tab.locator(".graph"), tab.keyboard
    button = lambda name: tab.get_by_role("button", name=name, exact=True)  # noqa: E731
    for act, at in (
        (lambda: None, 0),
        (lambda: keys.press("ArrowRight"), 1),
        (lambda: keys.press("ArrowRight"), 2),
        (lambda: keys.press("ArrowLeft"), 1),
        (lambda: keys.press("End"), last),
        (button("Start of the game").click, 0),
        (button("Next event").click, 1),
        (button("Next round").click, second),
        (lines.nth(9).click, 10),
        (lambda: tab.get_by_role("slider").fill("17"), 17),
        (lambda: graph.click(position={"x": 1, "y": 50}), 0),
        (tab.reload, 0),
        (lambda: tab.evaluate("location.hash = '#0/5'"), 5),
    ):
        act()
        tab.wait_for_selector(f'.board[data-at="{at}"]')
        assert fits(tab)
        assert lines.count() == last
        current = tab.locator('.log li[aria-current="true"]')
        marked = [int(line.get_attribute("data-event")) for line in current.all()]
        assert marked == ([at - 1] if at else [])
        if at == last:
            assert " won" in tab.locator(".board svg").get_attribute("aria-label")


def test_opinions_stand_beside_the_board(open_tab):
    tab = open_tab("/replay/0#1")
    tab.wait_for_selector(".graph")
    tab.locator(".log li[title*='>']").first.click()
    tab.keyboard.press("ArrowLeft")  # to before the first paladin
    for name, is_valued in (("greedy", False), ("ppo", True)):
        tab.get_by_label("Bot to ask").select_option(name)
        opinion = tab.get_by_role("region", name=f"What {name} thinks")
        sync_api.expect(opinion.locator(".played")).to_have_count(1)
        sync_api.expect(opinion.get_by_role("img")).to_have_count(int(is_valued))
        sync_api.expect(tab.locator(".graph-place .graph")).to_have_count(int(is_valued))


def test_a_text_is_refused_or_a_files_games_are_a_list_and_can_be_played_on(open_tab, page):
    tab = open_tab()
    paste(tab, page, "hello")
    sync_api.expect(tab.locator(".problem")).to_contain_text("JSON")
    paste(tab, page, "{}")
    sync_api.expect(tab.locator(".problem")).to_have_text("format is missing")
    tab.get_by_role("link", name="two.jsonl").click()
    tab.wait_for_selector(".board svg")
    assert tab.locator("h1").inner_text() == "A1 · B"
    tab.get_by_label("Game", exact=True).select_option(index=1)
    sync_api.expect(tab.locator("h1")).to_have_text("A2 · B")
    tab.get_by_text("Problems in the file (1)").click()
    assert "line 3: not JSON" in tab.locator("details:not(.words) li").inner_text()
    tab.route("**/api/records/*/0", lambda route: route.fulfill(status=500, body="{}"))
    tab.get_by_label("Game", exact=True).select_option(index=0)
    sync_api.expect(tab.locator("h1")).to_have_text("This game cannot be shown")
    for name in ("Play", "Share", "Save"):  # nothing to do, and no error on the page
        tab.get_by_role("button", name=name, exact=True).click()
    tab.get_by_label("Game", exact=True).select_option(index=1)
    sync_api.expect(tab.locator("h1")).to_have_text("A2 · B")
    tab.locator(".log li").nth(19).click()
    tab.wait_for_selector('.board[data-at="20"]')  # where it is seat 1's turn
    tab.get_by_role("button", name="Play from here").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Seat 1", exact=True).select_option(label="a person")
    dialog.get_by_role("button", name="Play").click()
    tab.wait_for_url("**/game")
    decided(tab)
    again = record_of(tab)
    assert again["events"][:20] == finished("greedy", 2, 3)["events"][:20]
    assert again["agents"] == [None, "greedy"]
    click_on(tab)


def test_a_list_of_games_that_is_not_all_says_so(open_tab, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "MAX_LINES", 2)
    file = book(tmp_path / "three.jsonl", *[finished("greedy", 1)] * 3)
    with serving(Api(Roster(), [file])) as page:
        tab = open_tab(f"{page.address}/replay/0")
        sync_api.expect(tab.locator(".picker")).to_contain_text("The first 2 games of more")


def test_a_game_that_is_over_is_looked_back_at_and_played_again(open_tab):
    tab = open_tab()
    start_game(tab, rounds=1, name="Ada")
    click_to(tab, "over")
    before, count, address = record_of(tab), events(tab), tab.url
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save").click()
    assert download.value.suggested_filename == "carolus.jsonl"
    assert json.loads(download.value.path().read_bytes()) == before
    tab.locator(".choices").get_by_role("button", name="Review").click()
    tab.wait_for_selector(".viewer .board svg")
    assert events(tab) == count
    tab.goto(address)
    decided(tab)
    sync_api.expect(tab.get_by_label("Bot speed")).to_be_hidden()
    tab.get_by_role("button", name="Play again").click()
    tab.wait_for_selector(".choices:not(.over)")
    decided(tab)
    again = record_of(tab)
    for what in ("rules", "names", "agents"):
        assert again[what] == before[what]
    assert again["seed"] != before["seed"]


READ = ("button", "combobox", "link", "textbox", "radio", "slider", "image", "img", "log")


def read(tab):
    """What a screen reader meets, in order, by Chromium itself: role, name, can be reached."""
    session = tab.context.new_cdp_session(tab)
    nodes = [one for one in session.send("Accessibility.getFullAXTree")["nodes"] if "role" in one]
    session.detach()
    return [
        (
            node["role"]["value"],
            node.get("name", {}).get("value", ""),
            any(one["name"] == "focusable" for one in node.get("properties", [])),
        )
        for node in nodes
        if not node["ignored"]
    ]


TWICE = """() => [...document.querySelectorAll('[id]')].map(e => e.id)
    .filter((id, i, all) => all.indexOf(id) !== i)"""
SMALL = """() => [...document.querySelectorAll('button, a, input, select, summary, .board .open')]
    .filter(e => e.checkVisibility() && !e.disabled)
    .filter(e => !e.matches('.unseen, .skip-link, [type=radio]'))
    .map(e => [e, e.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
    .map(([e, box]) => `${e.outerHTML.slice(0, 90)} ${box.width} x ${box.height}`)"""


# Texts, but for the drawing's, whose contrast with what is behind them is less than 4.5.
PALE = """() => {
    const ink = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const luminance = (colours) => {  // of these, one above the other
        for (const colour of ["white", ...colours]) {
            ink.fillStyle = colour;
            ink.fillRect(0, 0, 1, 1);
        }
        const [r, g, b] = [...ink.getImageData(0, 0, 1, 1).data].map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const backs = (e) => e ? [...backs(e.parentElement), getComputedStyle(e).backgroundColor] : [];
    const pale = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
        if (element.closest(".board, option, noscript, .unseen, #notice, :disabled")) continue;
        const behind = backs(element);
        const text = luminance([...behind, getComputedStyle(element).color]);
        const [low, high] = [text, luminance(behind)].sort((a, b) => a - b);
        const contrast = (high + 0.05) / (low + 0.05);
        if (contrast < 4.5) pale.add(`${contrast.toFixed(2)} ${element.outerHTML.slice(0, 99)}`);
    }
    return [...pale];
}"""
TINY = """() => [...document.querySelectorAll("input, select, textarea")]
    .filter((field) => parseFloat(getComputedStyle(field).fontSize) < 16)
    .map((field) => field.outerHTML.slice(0, 99))"""


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_texts_can_be_read_and_fields_are_large_enough_for_a_phone(open_tab, page, scheme):
    tab = open_tab(color_scheme=scheme, reduced_motion="reduce")
    tab.locator(".level").last.hover()
    assert tab.evaluate(PALE) == tab.evaluate(TINY) == []
    start_game(tab)
    for phase in ("disc", "place", "move"):
        click_to(tab, phase)
        for choice in tab.locator(".choices button:enabled").all()[-2:]:
            for aim in (choice.hover, choice.focus):
                aim()
                assert tab.evaluate(PALE) == []
    tab.get_by_label("Bot that gives hints").select_option("ppo")
    tab.get_by_role("button", name="Hint").click()
    tab.locator(".opinion").wait_for()
    tab.get_by_role("button", name="Share").click()
    assert tab.evaluate(PALE) == tab.evaluate(TINY) == []
    tab.keyboard.press("Escape")
    paste(tab, page, finished("greedy", 1))
    tab.locator(".graph").wait_for()
    tab.locator(".log li").first.hover()
    assert tab.evaluate(PALE) == tab.evaluate(TINY) == []


def test_what_is_chosen_can_be_told_in_forced_colours(open_tab, page):
    tab = open_tab(forced_colors="active", reduced_motion="reduce")

    def told(chosen, other):
        """Their colours, which are a few pixels from their corners, can be told."""
        pictures = [tab.locator(what).first.screenshot() for what in (chosen, other)]
        at = [Image.open(io.BytesIO(png)).convert("L").getpixel((5, 9)) for png in pictures]
        assert abs(at[0] - at[1]) > 60, (chosen, at)

    tab.get_by_text("More", exact=True).click()
    told("input:checked + label", "input:not(:checked) + label")
    start_game(tab)
    click_to(tab, "place")
    if tab.locator(".hand [aria-pressed=true]").count() == 0:
        tab.locator(".hand button").first.click()
    told(".hand [aria-pressed=true]", ".hand [aria-pressed=false]")
    tab.get_by_label("Bot that gives hints").select_option("ppo")
    tab.get_by_role("button", name="Hint").click()
    tab.locator(".opinion").wait_for()
    told(".shares span:first-child", ".shares span:last-child")
    told(".opinion li:first-child", ".opinion h3")
    paste(tab, page, finished("greedy", 1))
    tab.locator(".log li").nth(3).click()
    tab.wait_for_selector(".log [aria-current]")
    told(".log [aria-current]", ".log li:not([aria-current])")


@pytest.mark.parametrize("width", [360, 768])
def test_all_that_can_be_reached_has_a_name_and_is_24_pixels_large(open_tab, page, width):
    tab = open_tab(size={"width": width, "height": 800}, has_touch=True)
    tab.locator(".level").first.wait_for()

    def check():
        nodes = [node for node in read(tab) if node[0] != "main"]  # where the skip link leads
        nameless = [role for role, name, reached in nodes if (reached or role in READ) and not name]
        assert [nameless, tab.evaluate(TWICE), tab.evaluate(SMALL)] == [[], [], []]
        assert tab.locator("h1").count() == 1

    check()
    start_game(tab)
    seen = set()
    while len(seen) < 4:
        if (phase := decided(tab)) not in seen:
            seen.add(phase)
            check()
        click_on(tab)
    assert seen == {"disc", "place", "move", "crown"}
    tab.goto(f"{page.address}/replay")
    tab.get_by_label("A game record").wait_for()
    assert [tab.evaluate(TWICE), tab.evaluate(SMALL)] == [[], []]
    paste(tab, page, finished("greedy", 2))
    tab.locator(".graph").wait_for()
    check()
    tab.goto(f"{page.address}/replay/7")
    gone = "The server was not started with this file."
    sync_api.expect(tab.get_by_role("alert").first).to_have_text(gone)
    check()


def test_help_tells_the_rules_and_one_choice_begins_a_game(open_tab):
    tab = open_tab()
    tab.locator(".level").first.wait_for()
    tab.keyboard.press("?")
    dialog = tab.get_by_role("dialog", name="How to play")
    assert "10 castles on the board" in dialog.inner_text()
    assert dialog.evaluate("e => e.scrollTop") == 0
    tab.keyboard.press("Escape")
    sync_api.expect(dialog).to_be_hidden()
    tab.get_by_role("button", name="Help").click()
    assert dialog.is_visible()
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Easy").click()
    decided(tab)
    assert record_of(tab)["agents"] == [None, LEVELS[0].agents[2]]


def test_the_back_button_leads_to_a_page_that_starts_another_game(open_tab):
    tab = open_tab()
    names = []
    for level in ("Easy", "Medium"):
        tab.get_by_role("button", name=level).click()
        decided(tab)
        names.append(record_of(tab)["names"][1])
        tab.go_back()
        tab.wait_for_selector(".level")
    assert names == ["Easy bot", "Medium bot"]
    last = tab.get_by_role("region", name="Continue your last game").get_by_role("link")
    sync_api.expect(last).to_contain_text("Medium bot")


# As a browser's translator: other texts in elements of its own, also in what comes later.
TRANSLATED = """
new MutationObserver((changes) => {
    for (const added of changes.flatMap((change) => [...change.addedNodes])) {
        const walker = document.createTreeWalker(added, NodeFilter.SHOW_TEXT);
        const texts = added.nodeType === Node.TEXT_NODE ? [added] : [];
        while (walker.nextNode()) texts.push(walker.currentNode);
        for (const text of texts) {
            if (text.parentElement?.closest("font, svg, script, style, option")) continue;
            const font = document.createElement("font");
            font.textContent = "\u00fcbersetzt";
            text.replaceWith(font);
        }
    }
}).observe(document, { childList: true, subtree: true });
"""
# A key of this place on a keyboard; what it types there is no letter or digit of ours.
OTHER_KEY = """([key, code]) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true }))"""


@pytest.mark.parametrize("how", ["translated", "other keyboard"])
def test_keys_decide_on_translated_pages_and_other_keyboards(open_tab, page, how):
    tab = open_tab()
    start_game(tab)
    if how == "translated":
        tab.context.add_init_script(TRANSLATED)
        tab.reload()

    def press(key):
        if how == "other keyboard" and key.isalpha():  # Cyrillic
            return tab.evaluate(OTHER_KEY, ["йцукен"["rpbygc".index(key)], f"Key{key.upper()}"])
        if how == "other keyboard":  # AZERTY
            return tab.evaluate(OTHER_KEY, ["à&é\"'("[int(key)], f"Digit{key}"])
        return tab.keyboard.press(key)

    seen = set()
    while len(seen) < 4:
        phase, legal = decided(tab), view_of(tab, page)["legal"]
        seen.add(phase)
        if phase == "place":
            press(legal[0]["clan"][0])
            press("c")
        elif phase == "crown":
            press(legal[-1]["clan"][0])
        else:
            press(legal[-1]["text"][-1] if phase == "disc" else "1")
        after(tab, lambda: tab.keyboard.press("Enter"))
        if phase == "disc":
            assert {"player": 0, "action": legal[-1]["action"]} in record_of(tab)["events"]


FULL = (
    "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
)
DENIED = """for (const name of ["sessionStorage", "localStorage"])
    Object.defineProperty(window, name, { get() { throw new DOMException("", "SecurityError"); } });
"""


@pytest.mark.parametrize(
    "storage", [FULL, pytest.param(DENIED, marks=pytest.mark.slow)], ids=["full", "denied"]
)
def test_a_game_is_played_without_storage_and_says_that_it_is_not_kept(open_tab, page, storage):
    tab = open_tab()
    tab.context.add_init_script(storage)
    tab.goto(page.address)
    start_game(tab)
    click_to(tab, "place")
    sync_api.expect(tab.get_by_role("alert").first).to_contain_text("cannot keep the game")
    before = events(tab)
    tab.reload()
    decided(tab)
    assert events(tab) == before
    tab.get_by_role("button", name="Review").click()
    tab.wait_for_selector(".viewer .board svg")
    assert events(tab) == before
    paste(tab, page, finished("greedy", 1))


def test_another_site_names_no_game(open_tab, page):
    with serving(Api(Roster())) as other:
        tab = open_tab(other.address)
        record = json.dumps({"game": finished("greedy", 1)})
        with tab.context.expect_page() as opened:
            tab.evaluate("([to, name]) => window.open(to, name)", [f"{page.address}/game", record])
        gone = "There is no game in this tab."
        sync_api.expect(opened.value.get_by_role("alert").first).to_have_text(gone)


def asked_in(tab, seconds):
    """The requests that a page makes within so many seconds of its clock."""
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.clock.run_for(1000 * seconds)
    tab.evaluate("0")  # and back
    return asked


def test_a_bot_is_paused_and_goes_on(open_tab):
    tab = open_tab(speed="slow", clock=True)
    start_game(tab, first="random")
    tab.wait_for_selector(".log li")
    tab.get_by_role("button", name="Pause").click()
    tab.get_by_role("button", name="Resume").wait_for()
    assert asked_in(tab, 10) == []
    before = events(tab)
    tab.keyboard.press("s")
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=before)


# The server has answered, and a bot's answer is still on its way when it is no longer wanted.
SLOW_BODY = """
const fetched = window.fetch;
window.healed = () => (window.fetch = fetched);
window.fetch = async (path, options) => {
    const response = await fetched(path, options);
    if (path.endsWith("/decide")) {
        document.body.dataset.answering = "";
        response.json = () => new Promise((_, refuse) => {
            options.signal.addEventListener("abort", () => refuse(options.signal.reason));
        });
    }
    return response;
};
"""


def test_a_bot_is_paused_while_its_answer_arrives(open_tab):
    tab = open_tab()
    tab.add_init_script(SLOW_BODY)
    start_game(tab, first="random")
    tab.wait_for_selector("[data-answering]", state="attached")
    tab.get_by_role("button", name="Pause").click()
    tab.get_by_role("button", name="Resume").wait_for()
    before = events(tab)
    tab.evaluate("healed()")
    tab.keyboard.press("s")
    tab.wait_for_function("n => document.querySelectorAll('.log li').length > n", arg=before)


def test_a_record_plays_by_itself_until_it_is_paused_or_over(open_tab, page):
    tab = open_tab("/replay", clock=True)
    record = finished("greedy", 1)
    paste(tab, page, record)
    last, slider = len(record["events"]), tab.get_by_role("slider")
    play = tab.get_by_role("button", name="Play", exact=True)
    play.click()
    tab.clock.run_for(3000)
    tab.wait_for_function("() => document.querySelector('.board').dataset.at >= 2")
    tab.keyboard.press("ArrowLeft")  # any other way to go stops it
    sync_api.expect(play).to_be_visible()
    at = slider.input_value()
    asking = "/^$|Pause to ask|is thinking/.test(document.querySelector('.opinions').textContent)"
    tab.wait_for_function(f"() => !{asking}")  # about the position where it stopped
    assert asked_in(tab, 5) == []
    assert int(slider.input_value()) == int(at) < last
    tab.locator("h1").click()
    tab.keyboard.press(" ")
    tab.clock.run_for(1000 * 2 * last)
    tab.wait_for_selector(f'.board[data-at="{last}"]')
    sync_api.expect(play).to_be_visible()


def test_a_position_is_copied_and_saved(open_tab, page):
    tab = game_at(open_tab, "place", permissions=["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="Share").click()
    dialog = tab.get_by_role("dialog", name="Share")
    line = dialog.get_by_label("The position as text").input_value()
    dialog.get_by_role("button", name="Copy position").click()
    sync_api.expect(tab.locator("#notice")).to_have_text("Copied.")
    assert tab.evaluate("navigator.clipboard.readText()") == line == view_of(tab, page)["line"]
    saved = {}
    for name in ("PNG", "SVG"):
        with tab.expect_download() as download:
            dialog.get_by_role("button", name=f"Save {name}").click()
        saved[download.value.suggested_filename] = download.value.path().read_bytes()
    assert saved["carolus.png"].startswith(b"\x89PNG")
    assert int.from_bytes(saved["carolus.png"][16:20], "big") == 1200  # pixels across
    assert saved["carolus.svg"].startswith(b"<svg ")
    dialog.get_by_role("button", name="Close").click()
    sync_api.expect(dialog).to_be_hidden()


def test_on_a_phone_the_actions_stay_in_sight_and_a_second_tap_moves(open_tab):
    tab = game_at(open_tab, "disc", size=PHONE, has_touch=True)
    for phase in ("disc", "place", "move"):
        click_to(tab, phase)
        for y in (0, 300, 10_000):
            tab.evaluate("y => scrollTo(0, y)", y)
            box = tab.locator(".choices button").first.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= PHONE["height"], (phase, y)
        reached = tab.evaluate(
            """() => {  // the end of the page is not hidden behind them
                const last = document.querySelector('.log').getBoundingClientRect().bottom;
                return last <= document.querySelector('.turn').getBoundingClientRect().top + 1;
            }"""
        )
        assert reached, phase
    before, region = events(tab), tab.locator(".board .step.open").first
    region.tap()
    sync_api.expect(tab.locator(".tip")).to_be_visible()
    sync_api.expect(tab.locator("#notice")).to_contain_text("Tap again")
    assert events(tab) == before
    after(tab, region.tap)


def test_a_screen_readers_path_through_a_full_turn(open_tab):
    tab = open_tab()
    start_game(tab)
    wanted = {"disc": "disc ", "crown": "Choose ", "place": " paladin to ", "move": " step"}
    phases = []
    while "move" not in phases:
        phases.append(phase := decided(tab))
        nodes = read(tab)
        assert [role for role, _, _ in nodes].count("main") == 1
        [turn] = [name for role, name, _ in nodes if role == "heading" and ": Player 1" in name]
        [board] = [name for role, name, _ in nodes if role in READ and "round" in name]
        assert "Player 1" in board, "the board says what is due"
        assert turn in tab.get_by_role("status").inner_text(), "and so does the announcement"
        # Only keys that a screen reader leaves to the page: Tab and Enter.
        if phase == "place" and tab.locator(".where button:enabled").count() == 0:
            tab.locator(".hand button").first.focus()
            tab.keyboard.press("Enter")
        tab.locator("h1").evaluate("e => e.focus()")
        focused = ""
        for _ in range(60):
            if wanted[phase] not in focused:
                tab.keyboard.press("Tab")
                focused = tab.locator(":focus").evaluate("e => e.ariaLabel || e.textContent")
        assert wanted[phase] in focused
        assert any(wanted[phase] in name for role, name, _ in read(tab) if role == "button")
        after(tab, lambda: tab.keyboard.press("Enter"))
    assert set(phases) >= {"disc", "place", "move"}


@pytest.fixture
def sheet(browser):
    """Shows a drawing without a server."""
    tab = browser.new_page(viewport=DESKTOP)
    tab.draw = lambda svg: tab.set_content(f'<body style="margin:0;width:1200px">{svg}')
    yield tab
    tab.close()


def test_the_emperor_hides_no_number_and_no_text(sheet):
    states = ce.new_games(Rules(), 1, seed=1)
    for region in range(15):
        states["emperor"] = region
        sheet.draw(board_svg(states[0], layout="wide"))
        boxes = "all => all.map((e) => e.getBoundingClientRect().toJSON())"
        [he], texts = (sheet.locator(what).evaluate_all(boxes) for what in (".emperor", "text"))
        for text in texts:
            beside = text["right"] < he["left"] or he["right"] < text["left"]
            edge = text["height"] * 0.2
            above = text["bottom"] - edge <= he["top"] or he["bottom"] <= text["top"] + edge
            assert beside or above, region


@pytest.mark.parametrize("name", ["\U0001f389" * 40, "W" * 40, "日本" * 20, "m" * 40])
def test_long_and_wide_names_stay_in_their_places(sheet, name):
    states = ce.new_games(Rules(), 1, seed=1)
    while states["phase"][0] != PLACE:
        last = states.copy()[0], int(np.flatnonzero(ce.legal_masks(states)[0])[0])
        ce.step(states, np.array([last[1]]))
    sheet.draw(board_svg(states[0], names=[name, name], layout="wide", last=last))
    for seat in sheet.locator(".seat").all():
        label = seat.locator("text").first.bounding_box()
        castles = seat.locator(".castles rect").first.bounding_box()
        assert label["x"] + label["width"] <= castles["x"]
    reach = sheet.evaluate(
        """() => [...document.querySelectorAll('svg > g:first-of-type > text, .words text')]
            .map((text) => {
            const { x, width } = text.getBBox();
            return Math.max(500 - x, x + width - 500);
        })"""
    )
    assert len(reach) >= 5 and max(reach) <= 215  # where the Emperor begins
