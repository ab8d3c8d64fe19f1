"""The page's main ways in three engines: Chromium, Firefox and WebKit."""

import json

import pytest
from engines import ENGINES, until
from page import serving

from carolus_env.play import server
from carolus_env.play.server import Api
from carolus_env.play.session import Roster
from carolus_env.records import replay

pytestmark = pytest.mark.slow
DESKTOP, PHONE = (1440, 900), (390, 844)


@pytest.fixture(scope="module")
def page():
    framed = server.HEADERS["content-security-policy"].replace("; frame-ancestors 'none'", "")
    with pytest.MonkeyPatch.context() as patch, serving(Api(Roster())) as running:
        patch.setitem(server.HEADERS, "content-security-policy", framed)  # a phone is a frame
        yield running


@pytest.fixture(scope="module", params=ENGINES)
def tab(request, page):
    start, missing = ENGINES[request.param]
    if missing:
        pytest.skip(f"{missing} is not installed")
    with start() as opened:
        yield opened


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def sized(request, tab, page):
    """A tab of this size with the start page, as at the first visit."""
    tab.resize(*request.param)
    tab.goto(page.address)
    tab.run("() => { localStorage.clear(); sessionStorage.clear(); window.name = ''; }")
    tab.run("() => localStorage.setItem('carolus.speed', JSON.stringify('instant'))")
    return tab


DECIDING = ["disc", "crown", "place", "move", "over"]
FILL = """(values) => {
    for (const [selector, value] of values) {
        const field = document.querySelector(selector);
        field.value = value;
        field.dispatchEvent(new Event("change", { bubbles: true }));
    }
}"""
PHASE = """() => document.querySelector(".choices")?.className.split(" ").at(-1)"""
CUT_OFF = """() => [...document.querySelectorAll("main button, main a, main select, main summary")]
    .filter((each) => each.checkVisibility() && !each.disabled)
    .filter((each) => each.matches("summary") || !each.closest("details:not([open])"))
    .filter((each) => {
        each.scrollIntoView({ block: "center" });
        const box = each.getBoundingClientRect();
        const middle = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const hit = document.elementFromPoint(...middle);
        return !each.contains(hit) && !hit?.contains(each);
    })
    .map((each) => each.outerHTML.slice(0, 120))"""
WIDE = "() => document.scrollingElement.scrollWidth > innerWidth"
SAVED = """() => {
    HTMLAnchorElement.prototype.click = () => {};
    URL.createObjectURL = (file) => file.text().then((text) => (window.saved = text));
}"""


def phase(tab):
    """Wait for a decision of a person, or the end."""
    return until(lambda: (found := tab.run(PHASE)) in DECIDING and found, "decision")


def events(tab):
    return tab.run("() => document.querySelectorAll('.log li').length")


def text(tab, selector):
    return tab.run("(what) => document.querySelector(what)?.innerText ?? ''", selector)


def shown(tab, selector):
    return until(
        lambda: tab.run("(what) => document.querySelector(what) !== null", selector), selector
    )


def record(tab):
    return json.loads(tab.run("() => sessionStorage.getItem('carolus.game')"))


def checked(tab):
    """Everything is in the width of the window, and can be reached."""
    assert not tab.run(WIDE)
    assert tab.run(CUT_OFF) == []
    tab.run("() => scrollTo(0, 0)")


def start(tab, rounds=2):
    shown(tab, ".level")
    checked(tab)
    tab.click(".more summary")
    tab.run(FILL, [["[data-part=rules] [name=max_rounds]", rounds], ["[data-part=seed]", 7]])
    tab.run(FILL, [[".seat:nth-of-type(2) select", "random"]])
    tab.click("form.card .primary")
    phase(tab)


def decide(tab):
    """Decide on the board, and for one in three by the buttons beside it."""
    now, before = phase(tab), events(tab)
    if now == "place":
        if not tab.run("() => document.querySelector('.hand [aria-pressed=true]') !== null"):
            tab.click(".board .reserve .token.open")
        tab.click(".where button" if before % 3 == 0 else ".board .region.open text")
    elif now == "disc":
        tab.click(".board .disc.open")
    else:
        tab.click(".choices button")
    until(lambda: events(tab) > before, "decision")


def test_a_game_is_played_to_its_end_with_hints_a_reload_and_a_record(sized, page):
    tab = sized
    start(tab)
    tab.run(FILL, [["[data-part=adviser]", "ppo"]])
    seen = set()
    while (now := phase(tab)) != "over":
        if now not in seen:
            seen.add(now)
            checked(tab)
            tab.click("[data-part=hint]")
            shown(tab, ".opinion")
            shown(tab, ".choice.advised")
            shown(tab, ".board .advised")
            checked(tab)
        if now == "place" and "reload" not in seen:
            seen.add("reload")
            lines = text(tab, ".log")
            tab.reload()
            phase(tab)
            assert text(tab, ".log") == lines
        decide(tab)
    assert seen >= {"disc", "place", "move"}
    checked(tab)
    assert "limit of 2 rounds" in text(tab, "h1")
    played = record(tab)
    assert replay(played) == []
    tab.run(SAVED)
    tab.click("[data-part=save]")
    saved = until(lambda: tab.run("() => window.saved"), "saved record")
    assert json.loads(saved) == played
    tab.goto(f"{page.address}/replay")
    shown(tab, ".paste textarea")
    checked(tab)
    tab.run(FILL, [[".paste textarea", saved]])
    tab.click(".paste button")
    shown(tab, ".board[data-at='0']")
    tab.press("ArrowRight")
    shown(tab, ".board[data-at='1']")
    tab.press("End")
    shown(tab, f".board[data-at='{len(played['events'])}']")
    shown(tab, ".graph")
    checked(tab)


def test_a_turn_is_played_by_keys(sized, page):
    tab = sized
    start(tab)
    decisions = 0
    while decisions < 6:
        now, before = phase(tab), events(tab)
        legal = page.post("view", {"record": record(tab)})[1]["legal"]
        if now == "place":
            tab.press(legal[0]["clan"][0])
            tab.press("c")
        elif now == "crown":
            tab.press(legal[0]["clan"][0])
        else:
            tab.press(legal[0]["text"][-1] if now == "disc" else "1")
        tab.press("Enter")
        until(lambda: events(tab) > before, "decision")  # noqa: B023
        decisions += 1


def test_back_leads_to_a_page_that_starts_another_game(sized):
    tab = sized
    names = []
    for level in ("easy", "medium"):
        shown(tab, f".level.{level}")
        tab.leave("(what) => document.querySelector(what).click()", f".level.{level}")
        phase(tab)
        names.append(record(tab)["names"][1])
        tab.back()
    assert names == ["Easy bot", "Medium bot"]


def test_a_game_goes_on_where_nothing_is_stored(sized):
    tab = sized
    shown(tab, ".level.easy")
    tab.run("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    tab.leave("() => document.querySelector('.level.easy').click()")
    assert phase(tab) in DECIDING
    tab.run("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    decide(tab)
    assert "cannot keep the game" in text(tab, "main .problem")
