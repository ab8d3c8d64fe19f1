"""Pixels and windows: the same everywhere, without a system's fonts, and without a display."""

import copy
import io
import os
import pickle
import re
import sys

import numpy as np
import pytest
import strategies

import carolus_env as ce
from carolus_env.drawing import board_pixels, board_png, board_svg, pictures
from carolus_env.drawing.pictures import Window
from carolus_env.drawing.pieces import BACKGROUNDS
from carolus_env.engine.rules import OVER, ROLL

pytest.importorskip("resvg")
image = pytest.importorskip("PIL.Image")
pygame = pytest.importorskip("pygame")


def sample_state(players=3, decisions=60, seed=1):
    return strategies.history(ce.Rules(players), seed, games=1, limit=decisions)[-1, 0]


def boards():
    """States with all that is drawn: every phase, merged regions, castles, an end, long names."""
    for players in (2, 3, 4):
        states = strategies.history(ce.Rules(players), 1, games=1, limit=10_000)[:, 0]
        yield states[-1], {"theme": "dark"}
        for state in states[players::33]:
            yield state, {"legal": state["phase"] not in (ROLL, OVER)}


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
@pytest.mark.parametrize("layout", ["narrow", "wide"])
def test_pixels_are_as_wide_as_wished_and_fill_their_corners(layout, theme):
    pixels = board_pixels(sample_state(), width=302, layout=layout, theme=theme)
    height, width, channels = pixels.shape
    assert (width, channels, pixels.dtype) == (302, 3, np.uint8)
    assert (height > width) == (layout == "narrow")
    corners = {bytes(pixels[y, x]).hex() for x in (0, -1) for y in (0, -1)}
    assert corners == {BACKGROUNDS[theme].removeprefix("#")}


def test_a_png_holds_the_same_pixels_and_round_corners():
    state = sample_state()
    picture = image.open(io.BytesIO(board_png(state, width=400)))
    assert picture.format == "PNG"
    pixels = np.array(picture.convert("RGBA"))
    assert pixels[0, 0, 3] == 0
    middle = (slice(20, -20), slice(20, -20))
    np.testing.assert_array_equal(pixels[middle][..., :3], board_pixels(state, width=400)[middle])


def test_the_bundled_fonts_have_every_character_that_is_drawn_and_those_of_most_names():
    font = pytest.importorskip("fontTools.ttLib").TTFont
    written = {"Ångström, Łukasz, Αλέξης, Екатерина, Zoë & <Đorđe>\ufffd…"}
    for state, options in boards():
        written |= set(re.findall(r"<text[^>]*>([^<]*)</text>", board_svg(state, **options)))
    assert len(pictures._FONTS) == 2
    for path in pictures._FONTS:
        missing = set("".join(written)) - {chr(code) for code in font(path).getBestCmap()}
        assert not missing, path


def test_text_is_drawn_without_any_font_of_the_system(monkeypatch):
    def ink(text):
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30">'
            f'<text x="5" y="20" font-family="DejaVu Sans, Verdana, sans-serif">{text}</text></svg>'
        )
        return int((np.array(pictures.svg_picture(svg)) < 128).sum())

    assert ink("Emperor") > ink("Emp") > 0
    monkeypatch.setattr(pictures, "_FONTS", [])
    assert ink("Emperor") == 0  # no other font was looked for


def test_names_of_any_characters_can_be_drawn_and_what_is_not_svg_is_refused():
    for name in ("\x00", "\x1b[31m", "\ud800", "\ufffe", "日本", "</text><script>", "x" * 1000, ""):
        assert board_pixels(sample_state(2), width=100, names=[name, name]).any()
    for svg in ("", "<svg", "not SVG", '<svg xmlns="http://www.w3.org/2000/svg"'):
        with pytest.raises(ValueError, match="this SVG cannot be drawn"):
            pictures.svg_png(svg)


@pytest.mark.parametrize("module", ["resvg", "PIL.Image", "pygame"])
def test_without_the_extra_the_error_names_it(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'carolus-env\[render\]'"):
        Window("a window").show(board_pixels(sample_state(), width=60))


def frame(number, width=40, height=30):
    return np.full((height, width, 3), number, np.uint8)


def shown():
    """What pygame's window shows, ``(height, width, 3)``."""
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


@pytest.fixture
def window(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = Window("a window")
    yield shown
    pygame.display.quit()


def test_a_window_shows_the_very_pixels(window):
    pixels = np.random.default_rng(1).integers(256, size=(30, 40, 3), dtype=np.uint8)
    window.show(pixels)
    np.testing.assert_array_equal(shown(), pixels)
    assert pygame.display.get_caption()[0] == "a window"
    window.show(frame(7, 50, 60))  # of another size
    assert (shown() == 7).all() and shown().shape == (60, 50, 3)


def test_a_closed_window_is_gone_and_opens_again_with_the_next_frame(window):
    window.close()  # there is none yet
    window.show(frame(1))
    for copied in (copy.deepcopy(window), pickle.loads(pickle.dumps(window))):
        copied.show(frame(2))
        assert (shown() == 2).all()
    window.close()
    window.close()
    assert not pygame.display.get_init()
    other = Window("another")
    window.show(frame(2))
    other.show(frame(3))
    other.close()
    window.show(frame(4))
    assert (shown() == 4).all(), "it survives that another is closed"
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    for number in (2, 3):
        window.show(frame(number))
        assert not pygame.display.get_init(), "whoever closes it is shown no other"
    window.close()
    window.show(frame(4))
    assert (shown() == 4).all()


def test_frames_are_held_back_only_where_somebody_can_see_them(window, monkeypatch):
    naps = []
    monkeypatch.setattr("carolus_env.drawing.pictures.time.sleep", naps.append)
    window.show(frame(1), fps=2)
    window.show(frame(2), fps=2)
    assert naps == []
    monkeypatch.setattr(pygame.display, "get_driver", lambda: "x11")
    window.show(frame(3))
    assert naps == []
    window.show(frame(4), fps=2)
    assert len(naps) == 1 and 0 <= naps[0] <= 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a display")
def test_without_a_display_a_window_works_unseen_and_says_so(monkeypatch):
    for variable in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    pygame.display.quit()
    window = Window("unseen")
    with pytest.warns(UserWarning, match="there is no display"):
        window.show(frame(1))
    assert (shown() == 1).all()
    assert "SDL_VIDEODRIVER" not in os.environ
    window.close()
