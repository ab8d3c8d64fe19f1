"""Imitation: what the teacher decided is what is learnt, and results by team."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

from agents import imitate
from carolus_env import engine, network, observation
from carolus_env.bots import Agent, make
from carolus_env.bots.model import Model, load, save
from carolus_env.rules import Rules


class Watched(Agent):
    """Greedy, and what it was asked and has answered."""

    def __init__(self):
        self.greedy, self.asked = make("greedy"), []

    def act(self, states, generators):
        actions = self.greedy.act(states, generators)
        self.asked.append((states.copy(), actions.copy()))
        return actions


def lessons(players, own_choices=0.0, games=30):
    teacher = Watched()
    rules = Rules(players, max_rounds=30)
    found = imitate.watch(teacher, make("random"), rules, games, own_choices=own_choices, seed=5)
    return teacher, found


@pytest.mark.parametrize("own_choices", [0.0, 0.5])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_lessons_are_the_teachers_decisions_where_there_is_a_choice(players, own_choices):
    teacher, found = lessons(players, own_choices)
    states = np.concatenate([states for states, _ in teacher.asked])
    actions = np.concatenate([actions for _, actions in teacher.asked])
    masks = engine.legal_masks(states)
    choice = masks.sum(axis=1) > 1
    assert (found.seen == observation.observe(states[choice])).all()
    assert (found.masks == masks[choice]).all()
    assert (found.actions == actions[choice]).all()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_lessons_tell_each_team_its_part_of_the_win_the_deciders_first(players):
    teacher, found = lessons(players)
    assert found.parts.sum(axis=1) == pytest.approx(1)
    rules = Rules(players, max_rounds=30)
    games = engine.new_games(rules, 30, seed=5)
    streams = imitate.new_streams(5, 30)
    payoffs, sides = np.zeros((30, rules.players)), []
    number = np.arange(30)
    while len(games):  # the same games once more
        masks = engine.legal_masks(games)
        seats = games["player"][masks.sum(axis=1) > 1]
        sides.append(np.column_stack([number[masks.sum(axis=1) > 1], seats]))
        engine.step(games, teacher.greedy.act(games, streams))
        over = engine.is_over(games)
        if over.any():
            payoffs[number[over]] = engine.returns(games[over])
        games, streams, number = games[~over], streams[~over], number[~over]
    game, seat = np.concatenate(sides).T
    assert (found.game == game).all()
    part = ((rules.teams - 1) * payoffs[game, seat] + 1) / rules.teams
    assert found.parts[:, 0] == pytest.approx(part)


def test_the_pupils_own_choices_lead_the_games_elsewhere():
    (_, alone), (_, mixed) = lessons(2, 0.0), lessons(2, 0.5)
    assert not np.array_equal(alone.seen, mixed.seen)


def test_teaching_makes_the_pupil_decide_like_the_teacher(tmp_path, capsys):
    size = network.Size(2, region=8, trunk=16)
    save(Model(size, network.initial(size, 1), {"command": "first"}), tmp_path / "pupil")
    options = [str(tmp_path / "pupil"), "--teacher", "greedy", "--out", str(tmp_path / "taught")]
    options += ["--games", "128", "--together", "64", "--epochs", "6", "--batch", "256"]
    assert imitate.main([*options, "--learning-rate", "0.003"]) == 0
    taught = load(tmp_path / "taught")
    assert taught.about["command"].startswith("first; python -m agents.imitate")
    assert taught.about["imitated"] > 1000
    told = capsys.readouterr().out
    before, after = (float(word) for word in told.partition("teacher ")[2].split()[::3][:2])
    assert after > before + 8  # greedy breaks ties by lot, which nobody can learn


@pytest.mark.parametrize(
    ("model", "teacher", "told"),
    [("nowhere", "greedy", "nowhere.json: cannot be read"), ("pupil", "nobody", "unknown agent")],
)
def test_a_wrong_model_or_teacher_is_told(tmp_path, capsys, model, teacher, told):
    size = network.Size(2, region=4, trunk=4)
    save(Model(size, network.initial(size, 1)), tmp_path / "pupil")
    options = [str(tmp_path / model), "--teacher", teacher, "--out", str(tmp_path / "out")]
    assert imitate.main(options) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
