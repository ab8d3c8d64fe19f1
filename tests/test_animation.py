"""A film shows every position of a recorded game, and nothing else."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import strategies

import carolus_env as ce
from carolus_env.drawing import board_svg, pictures, save_animation
from carolus_env.engine.rules import Rules
from carolus_env.records import RecordError, make_record

SVG = "{http://www.w3.org/2000/svg}"


def played(players, seed=1, decisions=10**9):
    """The record of a game played at random, and its states from the first decision on."""
    start, actions, _ = strategies.played(Rules(players=players), seed, decisions)
    games = start.copy()
    ce.roll(games)
    states = [games[0].copy()]
    for action in actions:
        ce.step(games, np.array([action]))
        states.append(games[0].copy())
    return make_record(start, actions), states, actions


def shown_at(film, moment):
    """What of a film stands on the screen at ``moment`` (0 to 1), leaf by leaf."""
    leaves = []

    def walk(element, head):
        for child in element:
            name = child.tag.removeprefix(SVG)
            if name in ("title", "style", "animate"):
                continue
            timer = child.find(f"{SVG}animate")
            if timer is not None:
                times = [float(time) for time in timer.get("keyTimes").split(";")]
                values = timer.get("values").split(";")
                assert times[0] == 0 and len(times) == len(values)
                if values[np.searchsorted(times, moment, side="right") - 1] == "none":
                    continue
            attributes = child.attrib.items() if timer is None else ()
            tag = (name, *attributes)
            if name == "g":
                walk(child, (*head, tag) if attributes else head)
            else:
                leaves.append((*head, tag, child.text or ""))

    walk(film, ())
    return leaves


def drawn(svg):
    """The leaves of a board, likewise; groups without a look are left out."""
    root = ElementTree.fromstring(svg)
    for group in root.iter(f"{SVG}g"):
        for name in list(group.attrib):
            if name == "class" or name.startswith("data-"):
                del group.attrib[name]
        for title in group.findall(f"{SVG}title"):
            group.remove(title)
    root.remove(root.find(f"{SVG}desc"))
    return shown_at(root, 0)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_each_moment_of_a_film_shows_the_board_after_a_decision_and_no_more(players):
    record, states, _ = played(players)
    end = pictures.frames_of(record)[-1][0].copy()
    end["generator"] = states[-1]["generator"]  # a record has none
    assert end.tobytes() == states[-1].tobytes()
    record, states, actions = played(players, seed=players, decisions=40)
    svg = pictures.animation_svg(record, layout="narrow", seconds_per_move=0.5)
    film, frames = ElementTree.fromstring(svg), pictures.frames_of(record)
    timers = list(film.iter(f"{SVG}animate"))
    assert {timer.get("dur") for timer in timers} == {f"{0.5 * (len(frames) + 3):g}s"}
    assert {timer.get("repeatCount") for timer in timers} == {"indefinite"}
    assert frames[0][1] is None and len(frames) == len(actions) + 1
    for k, ((frame, last), state) in enumerate(zip(frames, states, strict=True)):
        same = frame.copy()
        same["generator"] = state["generator"]
        assert same.tobytes() == state.tobytes()
        if k:
            before, decided = last
            assert (decided, before.tobytes()) == (actions[k - 1], frames[k - 1][0].tobytes())
        moment = (k + 0.5) / (len(frames) + 3)  # the last frame is shown four times as long
        assert shown_at(film, moment) == drawn(board_svg(frame, layout="narrow", last=last)), k
    assert shown_at(film, 1) == shown_at(film, moment)


def test_a_film_stands_still_at_its_first_frame_where_nothing_moves():
    pytest.importorskip("resvg")
    record, _, _ = played(3)
    first, _ = pictures.frames_of(record)[0]
    film = np.array(pictures.svg_picture(pictures.animation_svg(record, width=400)))
    board = np.array(pictures.svg_picture(board_svg(first, width=400)))
    np.testing.assert_array_equal(film, board)


def test_a_film_runs_no_script_fetches_nothing_and_a_wrong_event_is_named():
    record, _, _ = played(4, decisions=30)
    film = pictures.animation_svg(record, names=["<script>", "a&b", '"x"', "</svg>"])
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(film).iter()}
    assert tags <= {"svg", "g", "path", "rect", "circle", "text", "title", "style", "animate"}
    assert not re.search(r"href|url\(|@import|\bon\w+=", film)
    assert film.count("http") == 1  # the name of SVG itself
    broken, _, _ = played(2)
    broken["events"][3]["action"] = 94
    with pytest.raises(RecordError, match="event 3: game 0: "):
        pictures.animation_svg(broken)


def test_a_gif_shows_each_frame_in_nearly_the_colours_of_the_board(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("resvg")
    record, _, actions = played(3, decisions=12)
    path = tmp_path / "film.GIF"
    options = {"seconds_per_move": 0.3, "width": 240}
    save_animation(record, path, **options)
    frames = pictures.frames_of(record)
    film = image.open(path)
    assert film.n_frames == len(actions) + 1 and film.info["loop"] == 0
    for k, (state, last) in enumerate(frames):
        film.seek(k)
        assert film.info["duration"] == (1200 if k == len(actions) else 300)
        board = board_svg(state, last=last, width=240)
        wanted = np.array(pictures.svg_picture(board)).astype(int)
        apart = np.abs(np.array(film.convert("RGB")) - wanted)
        assert apart.mean() < 4 and np.quantile(apart, 0.999) < 50


def test_a_saved_animation_is_the_film(tmp_path):
    record, _, _ = played(2, decisions=10)
    save_animation(record, tmp_path / "a.svg", seconds_per_move=2)
    film = pictures.animation_svg(record, seconds_per_move=2)
    assert (tmp_path / "a.svg").read_text() == film


def test_an_animation_names_the_agents_that_its_record_names():
    record, _, _ = played(2, decisions=4)
    for more, options, names in (
        ({}, {}, ["player 0", "player 1"]),
        ({"agents": ["greedy", "value:a"]}, {}, ["greedy", "value:a"]),
        ({"agents": ["greedy", "value:a"], "names": ["Ann", "Bob"]}, {}, ["Ann", "Bob"]),
        ({"names": ["Ann", "Bob"]}, {"names": ["Eve", "Joe"]}, ["Eve", "Joe"]),
    ):
        svg = pictures.animation_svg({**record, **more}, **options)
        assert all(f">{name}</text>" in svg for name in names)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("film.mp4", {}, ".svg or .gif"),
        ("film.svg", {"seconds_per_move": 0}, "0.02 to 3,600, got 0"),
        ("film.gif", {"seconds_per_move": float("nan")}, "seconds_per_move"),
        ("film.gif", {"seconds_per_move": 164}, "163, got 164"),
        ("film.gif", {"theme": "blue"}, "theme"),
    ],
)
def test_a_bad_option_is_refused_and_the_old_file_stays(
    name, options, error, tmp_path, monkeypatch
):
    record, _, _ = played(2, decisions=5)
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=re.escape(error)):
        save_animation(record, path, **options)
    assert path.read_bytes() == b"old"
    monkeypatch.setattr(pictures, "board_svg", pytest.fail)
    with pytest.raises(OSError, match="none"):  # noticed before anything is drawn
        save_animation(record, tmp_path / "none" / "a.gif")
    assert list(tmp_path.iterdir()) == [path]
