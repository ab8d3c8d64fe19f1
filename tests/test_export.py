"""A model as ONNX gives the outputs of NumPy, in batches of any size."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_policy import decisions, small

import carolus_env as ce
from carolus_env.bots.neural import model, network
from carolus_env.engine import observation

pytest.importorskip("torch")
pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from carolus_env.learners.single import export  # noqa: E402


def session(data):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_onnx_gives_the_outputs_of_numpy(players):
    ran = session(export.to_onnx(small(players)))
    for n in (1, 2, 64):
        states = decisions(players, n, seed=n)
        seen, legal = ce.observe(states).astype(np.float32), ce.legal_masks(states) == 1
        policy, chances = ran.run(None, {"observation": seen, "mask": legal})
        logits, scores = network.forward(small(players).weights, seen, players, np)
        logits = np.where(legal, logits, -np.inf)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(policy, logits, atol=1e-5)
        won = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(chances, won, atol=1e-6)


def test_the_command_writes_a_file_with_metadata(tmp_path, capsys):
    model.save(small(3), tmp_path / "m")
    assert export.main([str(tmp_path / "m"), str(tmp_path / "m.onnx")]) == 0
    assert "3 players" in capsys.readouterr().out
    ran = session((tmp_path / "m.onnx").read_bytes())
    about = json.loads(ran.get_modelmeta().custom_metadata_map["carolus"])
    assert about == {
        "players": 3,
        "network_version": network.VERSION,
        "observation_version": observation.VERSION,
        "about": {"seed": 0},
    }
    assert [(i.name, i.type) for i in ran.get_inputs()] == [
        ("observation", "tensor(float)"),
        ("mask", "tensor(bool)"),
    ]


def test_the_command_names_a_model_that_it_cannot_read(tmp_path, capsys):
    assert export.main([str(tmp_path / "none"), str(tmp_path / "m.onnx")]) == 1
    assert "none.json: cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "m.onnx").exists()
