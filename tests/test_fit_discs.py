"""The planner's discs: only the layers that choose discs learn, and they learn the discs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tyro")

from agents import fit_discs
from carolus_env.bots import Agent
from carolus_env.bots.neural import network
from carolus_env.bots.neural.model import Model, load, save
from carolus_env.engine.rules import DISC


class Highest(Agent):
    """Plays the highest legal disc; is asked for discs alone."""

    def act(self, states, generators):
        assert (states["phase"] == DISC).all()
        from carolus_env import engine

        masks = engine.legal_masks(states)[:, :5]
        return 4 - masks[:, ::-1].argmax(axis=1)


def pupil(players):
    size = network.Size(players, region=4, trunk=8)
    return Model(size, network.initial(size, 1), {"command": "first"})


@pytest.mark.parametrize("players", [2, 3, 4])
def test_only_the_layers_of_discs_learn_the_teachers_discs(tmp_path, players):
    first = pupil(players)
    options = fit_discs.Options(tmp_path, tmp_path, positions=3000, games=64, epochs=5)
    choices = fit_discs.collect(first, Highest(), options)
    legal = choices.legal
    assert len(choices.discs) >= 3000
    assert (legal.sum(axis=1) > 1).all()
    assert (choices.discs == 4 - legal[:, ::-1].argmax(axis=1)).all()
    taught, before, after = fit_discs.teach(first, choices, options)
    assert after > max(before, 0.7)
    for name, weight in taught.weights.items():
        same = np.array_equal(weight, first.weights[name])
        assert same != name.startswith(("disc", "reach")), name


def test_the_command_writes_a_model_with_its_history(tmp_path, capsys):
    save(pupil(2), tmp_path / "first")
    options = [str(tmp_path / "first"), "--out", str(tmp_path / "taught"), "--teacher", "greedy"]
    assert fit_discs.main([*options, "--positions", "200", "--games", "16"]) == 0
    command = load(tmp_path / "taught").about["command"]
    assert command.startswith("first; python -m agents.fit_discs ")
    assert "choices, agreement with the teacher" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "teacher", "message"),
    [("nowhere", "greedy", "nowhere.json: cannot be read"), ("first", "nobody", "unknown agent")],
)
def test_a_wrong_model_or_teacher_is_reported(tmp_path, capsys, model, teacher, message):
    save(pupil(2), tmp_path / "first")
    options = [str(tmp_path / model), "--teacher", teacher, "--out", str(tmp_path / "out")]
    assert fit_discs.main(options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
