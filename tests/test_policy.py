"""Saved policies: what is read back plays the same, and what is none is refused with a reason."""

from __future__ import annotations

import errno
import hashlib
import json
import pickle

import numpy as np
import pytest

import carolus_env as ce
from carolus_env import bots, files

torch = pytest.importorskip("torch")

import agents  # noqa: E402, F401 (registers ppo)
from agents.policy import (  # noqa: E402
    PolicyAgent,
    PolicyError,
    PolicyInfo,
    PolicyNetwork,
    load,
    load_agent,
    save,
)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return PolicyNetwork(PolicyInfo(2, (8, 8), training={"seed": 1})).requires_grad_(False)


@pytest.fixture
def saved(network, tmp_path):
    save(network, tmp_path / "p")
    return tmp_path / "p"


def rewrite(path, **changes):
    about = json.loads(path.with_suffix(".json").read_text())
    about.update(changes)
    path.with_suffix(".json").write_text(json.dumps(about))


def decisions(players=2, n=64):
    return ce.new_games(ce.Rules(players=players), n, seed=3)


def test_a_saved_policy_plays_as_before(network, saved):
    states = decisions()
    before = PolicyAgent(network).act(states, ce.new_streams(0, 64))
    for name in (saved, saved.with_suffix(".json"), saved.with_suffix(".safetensors")):
        again = PolicyAgent(load(name)).act(states, ce.new_streams(0, 64))
        np.testing.assert_array_equal(again, before)
    assert load(saved).info.training == {"seed": 1}
    assert not list(saved.parent.glob(".*")), "nothing is left beside the files"


def test_a_policy_plays_legal_actions_only(network):
    states, streams = decisions(), ce.new_streams(0, 64)
    for temperature in (0.0, 1.0, 100.0):
        agent = PolicyAgent(network, temperature=temperature)
        for _ in range(10):
            fresh = states.copy()
            ce.step(fresh, agent.act(fresh, streams))


def test_temperature_one_draws_from_the_policy(network):
    states = decisions(n=1).repeat(20_000)
    actions = PolicyAgent(network, temperature=1.0).act(states, ce.new_streams(5, 20_000))
    seen = torch.from_numpy(ce.observe(states[:1], dtype=np.float32))
    masks = torch.from_numpy(ce.legal_masks(states[:1]))
    chances = torch.softmax(network.logits(seen, masks), dim=1)[0].numpy()
    drawn = np.bincount(actions, minlength=95) / 20_000
    np.testing.assert_allclose(drawn, chances, atol=0.02)


def test_a_policy_refuses_games_of_another_number_of_players(network):
    with pytest.raises(PolicyError, match="was trained for 2 players, not for 3"):
        PolicyAgent(network).act(decisions(players=3), ce.new_streams(0, 64))


def test_spec_string_makes_the_agent(saved):
    agent = bots.make(f"ppo:{saved},temperature=0.5")
    assert isinstance(agent, PolicyAgent)
    assert agent.temperature == 0.5
    assert agent.name == f"ppo:{saved},temperature=0.5"


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("", "say which policy, as in ppo:runs/first/best"),
        ("{}, sims=3", "unknown option ' sims=3', known is temperature=T"),
        ("{},temperature=hot", "temperature must be a number, got 'hot'"),
        ("{},temperature=-1", "temperature must be from 0 to 100, got -1.0"),
        ("nowhere/p", r"^nowhere/p\.json: cannot be read"),
    ],
)
def test_a_wrong_spec_is_refused(saved, argument, text):
    with pytest.raises(ValueError, match=text):
        load_agent(argument.format(saved))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "zip"}, "no policy, its format is not 'carolus-policy'"),
        ({"version": 99}, "policy version 99, known is 1"),
        ({"players": 5}, "players must be 2, 3 or 4, got 5"),
        ({"players": 3}, "no weights for this network"),
        ({"hidden": [8]}, "no weights for this network"),
        ({"hidden": [10**9]}, "hidden must list at most 16 layer widths"),
        ({"hidden": "8"}, "hidden must list at most 16 layer widths"),
        ({"observation_version": 0}, "made for observation version 0, this is version 2"),
        ({"sha256": "0"}, r"not the weights that its JSON describes"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(saved, changes, text):
    rewrite(saved, **changes)
    with pytest.raises(PolicyError, match=text):
        load(saved)


@pytest.mark.parametrize("junk", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"null"])
def test_a_json_that_is_none_is_refused(saved, junk):
    saved.with_suffix(".json").write_bytes(junk)
    with pytest.raises(PolicyError, match=r"p\.json: no policy"):
        load(saved)


class Bomb:
    """Pickles into something that runs when it is loaded."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code of a stranger has run')",))


@pytest.mark.parametrize("kind", ["pickle", "cut short", "zeros", "torch"])
def test_foreign_weights_are_refused_and_run_no_code(saved, kind):
    path = saved.with_suffix(".safetensors")
    if kind == "torch":
        torch.save({"policy.0.weight": Bomb()}, path)
        data = path.read_bytes()
    else:
        whole = path.read_bytes()
        data = {"pickle": pickle.dumps(Bomb()), "cut short": whole[:-7], "zeros": bytes(64)}[kind]
    path.write_bytes(data)
    rewrite(saved, sha256=hashlib.sha256(data).hexdigest())  # as a forger would
    with pytest.raises(PolicyError, match="no weights for this network"):
        load(saved)


def test_weights_with_nan_are_refused(network, tmp_path):
    network.policy[0].bias.fill_(float("nan"))
    save(network, tmp_path / "nan")
    with pytest.raises(PolicyError, match="NaN or infinity"):
        load(tmp_path / "nan")


def test_a_full_disk_leaves_the_old_policy(network, saved, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {path.name: path.read_bytes() for path in saved.parent.iterdir()}
    network.policy[0].bias.fill_(1.0)
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        save(network, saved)
    assert {path.name: path.read_bytes() for path in saved.parent.iterdir()} == before
