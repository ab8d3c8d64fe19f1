"""In a real browser: after a game, sharing, phones, and what all can reach and see."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from page import Page
from test_play_browser import (  # noqa: F401  (fixtures)
    PHONE,
    Open,
    Tab,
    after,
    browser,
    click_on,
    click_to,
    decided,
    drop,
    events,
    fits,
    open_tab,
    page,
    pytestmark,
    record_of,
    some_record,
    start_game,
    sync_api,
)

from carolus_env.records import record_line

image = pytest.importorskip("PIL.Image")
expect = sync_api.expect


def finished(tab: Tab, seed: int = 7) -> None:
    start_game(tab, rounds=1, seed=seed)
    while decided(tab) != "over":
        click_on(tab)


def viewer(tab: Tab, record: dict[str, Any], at: int = 0) -> None:
    drop(tab, "one.jsonl", record_line(record))
    tab.wait_for_url("**/replay/*")
    tab.wait_for_selector(".axes")
    tab.evaluate("at => (location.hash = `#0/${at}`)", at)
    tab.wait_for_selector(f'.board[data-at="{at}"]')


# ------------------------------------------------------------------------------------ after a game


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_the_end_shows_how_the_game_went_with_links_into_it(open_tab: Open, size: Any) -> None:  # noqa: F811
    tab = open_tab(size=size)
    finished(tab)
    card = tab.get_by_role("region", name="How the game went")
    card.locator(".axes .graph").wait_for()
    assert card.locator(".share-axis span").all_inner_texts() == ["100%", "50%", "0%"]
    assert card.locator(".round-axis span").all_inner_texts() == ["1"]
    assert fits(tab)
    assert card.locator("h3").all_inner_texts() == [
        "Largest swings",
        "Best decision",
        "Worst decision",
    ]
    link = card.locator(".moments a").first
    at = link.get_attribute("href").rsplit("/", 1)[1]
    link.click()
    tab.wait_for_selector(f'.viewer .board[data-at="{at}"]')


def test_the_viewer_looks_back_when_it_is_asked_to(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab("/replay")
    viewer(tab, some_record())
    assert tab.locator(".moments").count() == 0
    tab.get_by_text("Looking back", exact=True).click()
    link = tab.locator(".moments a").first
    link.wait_for()
    link.click()
    at = link.get_attribute("href").rsplit("/", 1)[1]
    tab.wait_for_selector(f'.board[data-at="{at}"]')


def test_a_record_plays_by_itself_until_it_is_paused_or_over(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab("/replay")
    record = some_record(1)
    viewer(tab, record)
    last = len(record["events"])
    tab.get_by_label("Pace").select_option("fast")
    tab.get_by_role("button", name="Play", exact=True).click()
    tab.wait_for_function("() => document.querySelector('.board').dataset.at >= 2")
    tab.keyboard.press("ArrowLeft")  # any other way to go stops it
    expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()
    at = tab.get_by_role("slider").input_value()
    tab.wait_for_selector(f'.board[data-at="{at}"]')
    tab.wait_for_timeout(900)
    assert tab.get_by_role("slider").input_value() == at
    tab.locator("h1").click()
    tab.keyboard.press(" ")
    tab.wait_for_selector(f'.board[data-at="{last}"]')
    expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_whoever_looks_on_sits_down_where_bots_played(open_tab: Open, page: Page) -> None:  # noqa: F811
    tab = open_tab("/replay")
    record = some_record()
    at = next(k for k, event in enumerate(record["events"]) if k > 20 and event["player"] == 1)
    viewer(tab, record, at)
    seat = tab.evaluate("n => fetch(`/api/files/${location.pathname.split('/')[2]}/0/${n}`)"
                        ".then(a => a.json()).then(v => v.seat)", at)  # fmt: skip
    tab.get_by_role("button", name="Play from here").click()
    tab.get_by_role("dialog").get_by_role("button", name="Play").click()
    tab.wait_for_url("**/game/*")
    decided(tab)
    assert record_of(tab, page)["agents"] == [None if k == seat else "greedy" for k in (0, 1)]
    click_on(tab)


# ------------------------------------------------------------------------------------ sharing


def test_a_position_is_copied_pasted_and_linked(open_tab: Open, page: Page) -> None:  # noqa: F811
    tab = open_tab(permissions=["clipboard-read", "clipboard-write"])
    start_game(tab)
    click_to(tab, "place")
    tab.get_by_role("button", name="Share").click()
    dialog = tab.get_by_role("dialog", name="Share")
    line = dialog.get_by_label("The position as text").input_value()
    dialog.get_by_role("button", name="Copy position").click()
    expect(tab.locator("#notice")).to_have_text("Copied.")
    assert tab.evaluate("navigator.clipboard.readText()") == line
    dialog.get_by_role("button", name="Copy link").click()
    link = tab.evaluate("navigator.clipboard.readText()")
    dialog.get_by_role("button", name="Close").click()
    for text in (line, link):
        tab.goto(page.address)
        tab.get_by_label("A position as text").fill(text)
        tab.get_by_role("button", name="Show it").click()
        tab.wait_for_url("**/position#*")
        tab.wait_for_selector(".board svg")
        assert tab.url == link
    tab.get_by_label("Bot to ask").select_option("greedy")
    tab.get_by_role("button", name="Ask").click()
    tab.get_by_role("region", name="What greedy thinks").wait_for()


def test_a_text_that_is_no_position_is_refused_beside_the_field(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab()
    tab.get_by_label("A position as text").fill("<img src=x onerror=alert(1)>")
    tab.get_by_role("button", name="Show it").click()
    expect(tab.locator(".paste .problem")).to_contain_text("position: expected")
    tab.goto(tab.url.split("#")[0] + "position#nothing%ZZ")
    expect(tab.get_by_role("alert").first).not_to_be_empty()


def test_board_film_and_record_are_saved(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab("/replay")
    record = some_record(1)
    viewer(tab, record, 9)
    tab.get_by_role("button", name="Share").click()
    saved = {}
    for name in ("PNG", "SVG", "GIF", "page that plays", "record"):
        with tab.expect_download() as download:
            tab.get_by_role("dialog").get_by_role("button", name=f"Save {name}").click()
        saved[download.value.suggested_filename] = download.value.path().read_bytes()
    assert set(saved) == {f"carolus.{end}" for end in ("png", "svg", "gif", "html", "jsonl")}
    assert image.open(io.BytesIO(saved["carolus.png"])).width == 1200
    assert image.open(io.BytesIO(saved["carolus.gif"])).n_frames > 5
    assert json.loads(saved["carolus.jsonl"])["events"] == record["events"]


# ------------------------------------------------------------------------------------ phones

SMALL = """() => [...document.querySelectorAll('button, a, input, select, summary, .board .open')]
    .filter(e => e.checkVisibility() && !e.disabled)
    .filter(e => !e.matches('.unseen, .skip-link, [type=radio]'))
    .map(e => [e, e.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
    .map(([e, box]) => `${e.outerHTML.slice(0, 90)} ${box.width} x ${box.height}`)"""


@pytest.mark.parametrize("width", [360, 390, 768])
def test_all_that_is_touched_is_24_pixels_large(
    open_tab: Open,  # noqa: F811
    page: Page,  # noqa: F811
    width: int,
) -> None:
    tab = open_tab(size={"width": width, "height": 800}, has_touch=True)
    tab.locator("form.card").wait_for()
    assert tab.evaluate(SMALL) == []
    start_game(tab)
    seen = set()
    while len(seen) < 4 and (phase := decided(tab)) != "over":
        if phase not in seen:
            seen.add(phase)
            assert tab.evaluate(SMALL) == [], phase
        click_on(tab)
    assert seen == {"disc", "place", "move", "crown"}
    tab.goto(f"{page.address}/replay")
    viewer(tab, some_record())
    assert tab.evaluate(SMALL) == []


def test_the_actions_stay_in_sight_on_a_phone(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab(size=PHONE, has_touch=True)
    start_game(tab)
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


# ------------------------------------------------------------------------------------ access


def test_everything_on_the_board_has_a_tip(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab()
    start_game(tab)
    click_to(tab, "place")
    tip = tab.locator(".tip")
    for kind, said in (
        (".disc", "disc 1: "),
        (".reserve .token", "reserve: "),
        (".supply .token", " in the supply"),
        (".castles", " of 10 castles"),
        (".court", ""),
        (".region", ""),
        (".emperor", "The Emperor"),
    ):
        tab.mouse.move(5, 5)
        expect(tip).to_be_hidden()
        tab.locator(f".board {kind}").first.locator("path, circle, rect, text").first.hover(
            force=True
        )
        expect(tip).to_be_visible()
        assert said in tip.inner_text(), kind


READ = ("button", "combobox", "link", "textbox", "radio", "slider", "image", "img", "log")


def read(tab: Tab) -> list[tuple[str, str, dict[str, Any]]]:
    """Role, name and properties of what a screen reader meets, in order, by Chromium itself."""
    session = tab.context.new_cdp_session(tab)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [
        (
            node["role"]["value"],
            node.get("name", {}).get("value", ""),
            {one["name"]: one["value"].get("value") for one in node.get("properties", [])},
        )
        for node in nodes
        if not node["ignored"]
    ]


def test_a_screen_readers_path_through_a_whole_turn(open_tab: Open) -> None:  # noqa: F811
    tab = open_tab()
    start_game(tab)
    phases = []
    while "move" not in phases:
        phase = decided(tab)
        phases.append(phase)
        nodes = read(tab)
        roles = [role for role, _, _ in nodes]
        assert roles.count("main") == 1
        nameless = {role for role, name, more in nodes if more.get("focusable") and not name}
        assert nameless <= {"main"}, "where the link to the main part leads"
        assert [role for role, name, _ in nodes if role in READ and not name] == []
        headings = [name for role, name, _ in nodes if role == "heading"]
        [turn] = [name for name in headings if name.endswith(": Player 1")]
        board = next(
            name for role, name, _ in nodes if role in ("image", "img") and "round" in name
        )
        assert "Player 1" in board, "the board says what is due"
        status = tab.get_by_role("status").inner_text()
        assert turn in status, "and so does the announcement"
        # Only keys that a screen reader leaves to the page: Tab and Enter.
        names = [
            name for role, name, more in nodes if role == "button" and not more.get("disabled")
        ]
        wanted = {
            "disc": lambda name: name.startswith("disc "),
            "crown": lambda name: name.startswith("Choose "),
            "place": lambda name: " paladin to " in name,
            "move": lambda name: " step" in name,
        }[phase]
        if phase == "place" and not any(map(wanted, names)):
            tab.locator(".hand button").first.focus()
            tab.keyboard.press("Enter")
            names = [name for role, name, more in read(tab) if role == "button"]
        assert any(map(wanted, names)), (phase, names)
        tab.locator("h1").evaluate("e => e.focus()")
        for _ in range(60):
            tab.keyboard.press("Tab")
            focused = tab.evaluate(
                "document.activeElement.ariaLabel || document.activeElement.textContent"
            )
            if wanted(focused):
                break
        after(tab, lambda: tab.keyboard.press("Enter"))
    assert set(phases) >= {"disc", "place", "move"}
    assert events(tab) >= len(phases)
