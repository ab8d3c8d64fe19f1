"""Render modes and notebooks: every environment shows the board that its state says."""

from __future__ import annotations

import gc
import html
import re
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import render_test

import carolus_env as ce
from carolus_env import carolus_magnus_v0
from carolus_env.drawing import Film, Picture, animation, board_svg, raster, show
from carolus_env.drawing.window import Window
from carolus_env.engine.rules import Rules
from carolus_env.envs.gym import CarolusEnv, CarolusVectorEnv
from carolus_env.records import RecordError, position

pytest.importorskip("resvg")
pygame = pytest.importorskip("pygame")
pytest.importorskip("PIL.Image")

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def unseen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


@pytest.fixture
def small(monkeypatch):
    """Frames that are drawn quickly."""
    monkeypatch.setitem(raster.WIDE, "width", 120)


@pytest.fixture
def frames(monkeypatch, small):
    """The frames that windows were asked to show, and how many a second at most."""
    shown = []
    monkeypatch.setattr(Window, "show", lambda self, pixels, fps=None: shown.append((pixels, fps)))
    return shown


def pixels(state, last=None):
    return raster.board_pixels(state, last=last, **raster.WIDE)


def random_action(mask, random):
    return int(random.choice(np.flatnonzero(mask)))


def play(env, decisions, seed=0):
    """An AEC game from its start; returns the state before the last decision, and that decision."""
    env.reset(seed=seed)
    random, last = np.random.default_rng(seed), None
    for _ in range(decisions):
        last = env.games[0].copy(), random_action(env.last()[0]["action_mask"], random)
        env.step(last[1])
    return last


@pytest.mark.parametrize("players", [2, 4])
def test_pettingzoos_render_test_passes(players, small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render_test(
            lambda render_mode: carolus_magnus_v0.env(players=players, render_mode=render_mode)
        )
    assert not pygame.display.get_init(), "closed"


@pytest.mark.parametrize("players", [2, 3, 4])
def test_rgb_array_is_the_board_with_the_last_decision_marked(players, small):
    env = carolus_magnus_v0.env(players=players, render_mode="rgb_array")
    last = play(env, 0)
    np.testing.assert_array_equal(env.render(), pixels(env.games[0]))
    for decisions in (1, 7, 40):
        last = play(env, decisions, seed=players)
        frame = env.render()
        np.testing.assert_array_equal(frame, pixels(env.games[0], last))
        assert (frame != pixels(env.games[0])).any(), "a mark"
    assert frame.dtype == np.uint8 and frame.shape[2] == 3
    env.reset(options={"position": position.to_dict(env.games[0])})
    np.testing.assert_array_equal(env.render(), pixels(env.games[0]))


def test_the_human_mode_shows_reset_and_every_step_by_itself(frames):
    env = carolus_magnus_v0.env(players=3, render_mode="human", illegal="forfeit")
    last = play(env, 9)
    assert len(frames) == 10
    np.testing.assert_array_equal(frames[-1][0], pixels(env.games[0], last))
    assert {fps for _, fps in frames} == {env.metadata["render_fps"]}
    assert env.render() is None
    assert frames[-1][1] is None, "a second look does not wait"
    env.step(int((env.last()[0]["action_mask"] == 0).argmax()))
    np.testing.assert_array_equal(frames[-1][0], pixels(env.games[0], last))  # no decision


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
def test_gymnasium_makes_every_mode(mode, small):
    env = gymnasium.make("CarolusMagnus-v0", players=3, render_mode=mode)
    env.reset(seed=1)
    kinds = {"ansi": str, "rgb_array": np.ndarray, "human": type(None)}
    assert isinstance(env.render(), kinds[mode])
    assert pygame.display.get_init() == (mode == "human")
    env.close()
    env.close()
    assert not pygame.display.get_init()


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
@pytest.mark.parametrize(("players", "opponents"), [(2, "greedy"), (3, ["greedy", "random"])])
def test_rendering_changes_no_game(mode, players, opponents, frames, monkeypatch):
    monkeypatch.setattr("carolus_env.envs.vector.board_pixels", lambda state, **_: None)

    def course(render_mode):
        env = CarolusEnv(players, opponents, render_mode=render_mode)
        random, seen = np.random.default_rng(1), []
        observation, info = env.reset(seed=players)
        for _ in range(120):
            seen.append(observation.tobytes())
            action = random_action(info["action_mask"], random)
            observation, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                seen.append(observation.tobytes())
                observation, info = env.reset()
        return seen

    assert course(mode) == course(None)


def test_the_human_mode_shows_the_opponents_decisions_too(frames):
    env = CarolusEnv(3, "greedy", render_mode="human")
    random = np.random.default_rng(1)
    _, info = env.reset(seed=5)
    states = env._vector.games.states
    for _ in range(20):
        decisions = len(frames)
        before, action = states[0].copy(), random_action(info["action_mask"], random)
        _, _, over, _, info = env.step(action)
        assert len(frames) > decisions
        after = before.reshape(1).copy()
        ce.step(after, np.array([action]))
        np.testing.assert_array_equal(frames[decisions][0], pixels(after[0], (before, action)))
        last = env._window._before[0], int(env._window._actions[0])
        again = last[0].reshape(1).copy()
        ce.step(again, np.array([last[1]]))
        assert again.tobytes() == states.tobytes(), "the last decision leads to what is shown"
        np.testing.assert_array_equal(frames[-1][0], pixels(states[0], last))
        assert not over
    assert len(frames) > 50
    decisions = len(frames)
    env.step(int((info["action_mask"] == 0).argmax()))
    assert len(frames) == decisions + 1, "a forfeit is shown"
    assert (frames[-1][0] != frames[-2][0]).any()


def test_a_vector_gives_a_frame_for_each_game_and_forgets_the_last_games_decisions(small):
    envs = gymnasium.make_vec(
        "CarolusMagnus-v0", num_envs=3, players=2, render_mode="rgb_array", max_rounds=1
    ).unwrapped
    _, infos = envs.reset(seed=1)
    random, fresh = np.random.default_rng(1), 0
    for _ in range(40):
        actions = [random_action(m, random) if m.any() else 0 for m in infos["action_mask"]]
        _, _, _, _, infos = envs.step(np.array(actions))
        marks = envs._pictures
        for row, state in enumerate(envs.games.states):
            if marks._actions[row] < 0:
                fresh += 1
                assert state["round"] <= 1
                continue
            again = marks._before[row].reshape(1).copy()
            ce.step(again, marks._actions[row : row + 1])
            assert again[0].tobytes() == state.tobytes()
    assert fresh
    pictures = envs.render()
    assert isinstance(pictures, tuple) and len(pictures) == 3
    with pytest.raises(ValueError, match="'human'"):  # it has no window
        CarolusVectorEnv(2, render_mode="human")
    assert (pictures[0] != pictures[1]).any()


def test_a_game_an_environment_and_a_state_show_their_board():
    game = ce.Game(Rules(players=3), seed=1)
    expected = board_svg(game.states[0], layout="wide", width=raster.WIDTH)
    assert game._repr_svg_() == expected
    assert show(game.states[0])._repr_svg_() == show(game.states)._repr_svg_() == expected
    for env in (carolus_magnus_v0.env(players=3), carolus_magnus_v0.raw_env(players=3)):
        assert env._repr_svg_() is None  # nothing before the first game
        last = play(env, 6)
        marked = board_svg(env.games[0], last=last, layout="wide", width=raster.WIDTH)
        assert env._repr_svg_() == marked


@pytest.mark.parametrize(("n", "shown"), [(2, 2), (8, 8), (1300, 8)])
def test_a_batch_shows_the_first_eight_boards_and_says_how_many_more_there_are(n, shown):
    batch = ce.GameBatch(Rules(players=2), n, seed=1)
    batch.rollout(30)
    svg = batch._repr_svg_()
    assert show(batch.states)._repr_svg_() == svg
    boards = [e for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}svg")][1:]
    assert len(boards) == shown
    for board, state in zip(boards, batch.states, strict=False):
        same = ElementTree.fromstring(board_svg(state))
        assert [e.attrib for e in board.iter()][1:] == [e.attrib for e in same.iter()][1:]
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert [t for t in texts if t.startswith("game ")] == [f"game {i}" for i in range(shown)]
    said = [t for t in texts if t.endswith(" more")]
    assert said == ([] if n <= 8 else [f"and {n - 8:,} more"])


def test_a_record_is_a_page_of_its_own_that_a_notebook_cannot_meet(tmp_path):
    env = carolus_magnus_v0.env(players=3)
    play(env, 30)
    record, options = env.unwrapped.record(), {"names": ["</script>", '"><b>', "Eve"]}
    film = show(record, **options, theme="dark")
    assert isinstance(film, Film)
    frame = film._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and frame.count("<") == 2
    assert 'sandbox="allow-scripts"' in frame
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == film.page
    assert film.page == animation.animation_page(record, **options, theme="dark")
    assert "max-width:400px" in show(record, width=400)._repr_html_()
    film.save(tmp_path / "a.html")
    film.save(tmp_path / "b.svg", theme="light", seconds_per_move=2)
    assert (tmp_path / "a.html").read_text() == film.page
    light = animation.animation_svg(record, **options, theme="light", seconds_per_move=2)
    assert (tmp_path / "b.svg").read_text() == light


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        (3, TypeError, "what to show must be"),
        (ce.new_games(Rules(), 2, seed=1)[:0], ValueError, "there is no game to draw"),
        ({"format": "chess"}, RecordError, "format must be"),
    ],
)
def test_what_cannot_be_shown_is_refused(what, error, said):
    with pytest.raises(error, match=said):
        show(what)


@pytest.mark.parametrize("n", [1, 3])
def test_a_picture_is_saved_as_its_name_says(n, tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = show(ce.new_games(Rules(), n, seed=1), theme="dark", width=200)
    assert isinstance(picture, Picture)
    for suffix in ("svg", "png", "gif"):
        picture.save(tmp_path / f"board.{suffix}")
    assert (tmp_path / "board.svg").read_text() == picture.svg
    sizes = {image.open(tmp_path / f"board.{suffix}").size for suffix in ("png", "gif")}
    assert len(sizes) == 1 and sizes.pop()[0] == 200
    with pytest.raises(ValueError, match=r"ends in \.svg, \.png or \.gif, got .*board.pdf"):
        picture.save(tmp_path / "board.pdf")
    assert len(list(tmp_path.iterdir())) == 3


def render(mode, frames):
    """Draw so many frames, each of another state, over several games."""
    env = carolus_magnus_v0.raw_env(players=3, render_mode=None if mode == "svg" else mode)
    random = np.random.default_rng(1)
    for number in range(frames):
        if number % 50 == 0:
            env.reset(seed=number)
        env.step(random_action(env.last()[0]["action_mask"], random))
        if mode != "human":  # it has drawn already
            assert env._repr_svg_() if mode == "svg" else env.render() is not None
    env.close()


def resident():
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in /proc")
@pytest.mark.parametrize("mode", ["ansi", "svg", "rgb_array", "human"])
def test_frames_leave_nothing_in_memory(mode, monkeypatch):
    monkeypatch.setitem(raster.WIDE, "width", 240)  # 100 kB
    render(mode, 40)  # what is made once
    before = resident()
    render(mode, 60)
    assert resident() - before < 2_000_000


def test_the_rendering_page_has_snippets_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "rendering.md").read_text()
    names: dict = {}
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        quick = snippet.replace("width=480", "width=48").replace("width=1600", "width=160")
        quick = quick.replace("env(players=3", "env(max_rounds=2, players=3")
        exec(compile(quick, "docs/rendering.md", "exec"), names)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == set(re.findall(r'"(\w+\.(?:svg|png|gif|html))"', page))
