"""Render modes and notebooks: every environment shows the board that its state says."""

import gc
import re
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import render_test

import carolus_env as ce
from carolus_env import carolus_magnus_v0
from carolus_env.drawing import Picture, board_svg, pictures, show
from carolus_env.drawing.pictures import Window
from carolus_env.engine.rules import Rules
from carolus_env.envs.gym import CarolusEnv, CarolusVectorEnv
from carolus_env.records import RecordError, position

pytest.importorskip("resvg")
pygame = pytest.importorskip("pygame")
pytest.importorskip("PIL.Image")

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Frames that are drawn quickly, in a window that nobody sees."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(pictures.WIDE, "width", 120)
    yield
    pygame.display.quit()


@pytest.fixture
def frames(monkeypatch):
    """The frames that windows were asked to show, and how many a second at most."""
    shown = []
    monkeypatch.setattr(Window, "show", lambda self, pixels, fps=None: shown.append((pixels, fps)))
    return shown


def marked_board(state, last=None):
    return pictures.board_pixels(state, last=last, **pictures.WIDE)


def stepped(state, action):
    """The batch of one game after this decision."""
    games = state.reshape(1).copy()
    ce.step(games, np.array([action]))
    return games


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
def test_pettingzoos_render_test_passes(players):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        render_test(lambda **mode: carolus_magnus_v0.env(players=players, **mode))
    assert not pygame.display.get_init(), "closed"


@pytest.mark.parametrize("players", [2, 3, 4])
def test_rgb_array_is_the_board_with_the_last_decision_marked(players):
    env = carolus_magnus_v0.env(players=players, render_mode="rgb_array")
    for decisions in (0, 1, 7, 40):
        last = play(env, decisions, seed=players)
        frame, unmarked = env.render(), marked_board(env.games[0])
        np.testing.assert_array_equal(frame, marked_board(env.games[0], last))
        assert (frame != unmarked).any() == (decisions > 0), "a mark"
    assert frame.dtype == np.uint8 and frame.shape[2] == 3
    env.reset(options={"position": position.to_dict(env.games[0])})
    np.testing.assert_array_equal(env.render(), unmarked)


def test_the_human_mode_shows_reset_and_every_step_by_itself(frames):
    env = carolus_magnus_v0.env(players=3, render_mode="human", illegal="forfeit")
    last = play(env, 9)
    assert len(frames) == 10
    np.testing.assert_array_equal(frames[-1][0], marked_board(env.games[0], last))
    assert {fps for _, fps in frames} == {env.metadata["render_fps"]}
    assert env.render() is None
    assert frames[-1][1] is None, "a second look does not wait"
    env.step(int((env.last()[0]["action_mask"] == 0).argmax()))
    np.testing.assert_array_equal(frames[-1][0], marked_board(env.games[0], last))  # no decision


@pytest.mark.parametrize(
    ("mode", "kind"), [("ansi", str), ("rgb_array", np.ndarray), ("human", type(None))]
)
def test_gymnasium_makes_every_mode(mode, kind):
    env = gymnasium.make("CarolusMagnus-v0", players=3, render_mode=mode)
    env.reset(seed=1)
    assert isinstance(env.render(), kind)
    assert pygame.display.get_init() == (mode == "human")
    for _ in range(2):
        env.close()
        assert not pygame.display.get_init()


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
@pytest.mark.parametrize(("players", "opponents"), [(2, "greedy"), (3, ["greedy", "random"])])
def test_rendering_changes_no_game(mode, players, opponents, frames, monkeypatch):
    monkeypatch.setattr("carolus_env.envs.gym.board_pixels", lambda state, **_: None)

    def course(render_mode):
        env = CarolusEnv(players, opponents, render_mode=render_mode)
        random, seen, over = np.random.default_rng(1), [], True
        for number in range(120):
            if over:
                observation, info = env.reset(seed=None if number else players)
                seen.append(observation.tobytes())
            action = random_action(info["action_mask"], random)
            observation, _, terminated, truncated, info = env.step(action)
            seen.append(observation.tobytes())
            over = terminated or truncated
        return seen

    assert course(mode) == course(None)


def test_the_human_mode_shows_the_opponents_decisions_too(frames):
    env, random = CarolusEnv(3, "greedy", render_mode="human"), np.random.default_rng(1)
    _, info = env.reset(seed=5)
    states = env._vector.games.states
    for _ in range(20):
        decisions = len(frames)
        before, action = states[0].copy(), random_action(info["action_mask"], random)
        _, _, over, _, info = env.step(action)
        assert len(frames) > decisions
        shown = marked_board(stepped(before, action)[0], (before, action))
        np.testing.assert_array_equal(frames[decisions][0], shown)
        last = env._pictures._before[0], int(env._pictures._actions[0])
        assert stepped(*last).tobytes() == states.tobytes()
        np.testing.assert_array_equal(frames[-1][0], marked_board(states[0], last))
        assert not over
    assert len(frames) > 50
    decisions = len(frames)
    env.step(int((info["action_mask"] == 0).argmax()))
    assert len(frames) == decisions + 1, "a forfeit is shown"
    assert (frames[-1][0] != frames[-2][0]).any()


def test_a_vector_gives_a_frame_for_each_game_and_forgets_the_last_games_decisions():
    options = {"num_envs": 3, "players": 2, "render_mode": "rgb_array", "max_rounds": 1}
    envs = gymnasium.make_vec("CarolusMagnus-v0", **options).unwrapped
    _, infos = envs.reset(seed=1)
    random, fresh = np.random.default_rng(1), 0
    for _ in range(40):
        actions = [random_action(m, random) if m.any() else 0 for m in infos["action_mask"]]
        _, _, _, _, infos = envs.step(np.array(actions))
        marks = envs._pictures
        for row, state in enumerate(envs.games.states):
            if marks._actions[row] >= 0:
                again = stepped(marks._before[row], marks._actions[row])
                assert again.tobytes() == state.tobytes()
            else:
                fresh += 1
                assert state["round"] <= 1
    assert fresh
    pictures = envs.render()
    assert isinstance(pictures, tuple) and len(pictures) == 3
    assert (pictures[0] != pictures[1]).any()
    with pytest.raises(ValueError, match="'human'"):  # it has no window
        CarolusVectorEnv(2, render_mode="human")


def test_a_game_an_environment_and_a_state_show_their_board(monkeypatch):
    monkeypatch.setitem(pictures.WIDE, "width", pictures.WIDTH)

    def board(state, **options):
        return board_svg(state, layout="wide", width=pictures.WIDTH, **options)

    game = ce.Game(Rules(players=3), seed=1)
    for shown in (game, show(game), show(game.states[0]), show(game.states)):
        assert shown._repr_svg_() == board(game.states[0])
    assert show(game, legal=True).svg == board(game.states[0], legal=True)
    for env in (carolus_magnus_v0.env(players=3), carolus_magnus_v0.raw_env(players=3)):
        assert env._repr_svg_() is None  # nothing before the first game
        last = play(env, 6)
        assert env._repr_svg_() == board(env.games[0], last=last)
        assert show(env).svg == env._repr_svg_()
    for env in (gymnasium.make("CarolusMagnus-v0"), carolus_magnus_v0.parallel_env()):
        with pytest.raises(gymnasium.error.ResetNeeded):
            show(env)
        env.reset(seed=1)
        assert show(env, last=None).svg == board(env.unwrapped.games[0])


def test_a_record_is_shown_as_the_film_that_plays_by_itself():
    env = carolus_magnus_v0.env(players=3)
    play(env, 30)
    record, options = env.unwrapped.record(), {"names": ["</script>", '"><b>', "Eve"]}
    film = show(record, **options, theme="dark", seconds_per_move=2)
    assert isinstance(film, Picture)
    made = pictures.animation_svg(record, **options, theme="dark", seconds_per_move=2)
    assert film._repr_svg_() == film.svg == made


def test_a_picture_is_saved_as_its_name_says_and_what_cannot_be_shown_is_refused(tmp_path):
    image = pytest.importorskip("PIL.Image")
    picture = show(ce.new_games(Rules(), 1, seed=1), theme="dark", width=200)
    assert isinstance(picture, Picture)
    for suffix in ("svg", "png"):
        picture.save(tmp_path / f"board.{suffix}")
    assert (tmp_path / "board.svg").read_text() == picture.svg
    assert image.open(tmp_path / "board.png").size[0] == 200
    with pytest.raises(ValueError, match=r"ends in \.svg or \.png, got .*board.pdf"):
        picture.save(tmp_path / "board.pdf")
    assert len(list(tmp_path.iterdir())) == 2
    for what, error, said in (
        (3, TypeError, "what to show must be"),
        (ce.new_games(Rules(), 2, seed=1)[:0], ValueError, "one game, such as .*, got 0"),
        (ce.GameBatch(Rules(), 3, seed=1), ValueError, "one game, such as .*, got 3"),
        ({"format": "chess"}, RecordError, "format must be"),
    ):
        with pytest.raises(error, match=said):
            show(what)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in /proc")
@pytest.mark.parametrize(
    "mode", ["svg", "human", pytest.param("rgb_array", marks=pytest.mark.slow)]
)
def test_frames_leave_nothing_in_memory(mode, monkeypatch):
    monkeypatch.setitem(pictures.WIDE, "width", 240)  # 100 kB
    env = carolus_magnus_v0.raw_env(players=3, render_mode=None if mode == "svg" else mode)
    random, resident = np.random.default_rng(1), []
    for frames in (20, 40):  # what is made once is made in the first
        env.reset(seed=frames)
        for _ in range(frames):  # each of another state
            env.step(random_action(env.last()[0]["action_mask"], random))
            if mode != "human":  # it has drawn already
                assert env._repr_svg_() if mode == "svg" else env.render() is not None
        gc.collect()
        resident.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
    assert resident[1] - resident[0] < 2_000_000
    env.close()


def test_the_rendering_page_has_snippets_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "play.md").read_text()
    names: dict = {}
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        quick = snippet.replace("width=480", "width=48").replace("width=1600", "width=160")
        quick = quick.replace("env(players=3", "env(max_rounds=2, players=3")
        exec(compile(quick, "docs/play.md", "exec"), names)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == set(re.findall(r'"(\w+\.(?:svg|png|gif))"', page))
