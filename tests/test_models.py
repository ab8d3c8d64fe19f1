"""Models: what is read back plays the same; what is none, or does not fit, is refused by name."""

import pickle
import re
import threading
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import random_model
from safetensors.numpy import save as tensor_bytes

import carolus_env as ce
from carolus_env import bots, engine, evaluation
from carolus_env.bots import ModelError, NetworkModel, PpoBot, ValueBot
from carolus_env.bots.network import find
from carolus_env.engine import observation
from carolus_env.envs.gym import CarolusVectorEnv
from carolus_env.networks import decisions, files
from carolus_env.system.arrays import from_bytes, to_bytes


def small(players=2, seed=0, policy=True) -> NetworkModel:
    """Return a small random model."""
    return random_model(players, policy, seed, width=16, hidden=4)


@pytest.fixture
def saved(tmp_path):
    small().save(tmp_path / "p")
    return tmp_path / "p"


KEYS = ("about", "format", "hidden", "players", "policy", "sha256", "version", "width")
MISSING = object()


def rewrite(path, arrays=None, **changes):
    """Write other arrays and another description into a model's file, as a forger would."""
    path = path.with_suffix(".safetensors")
    weights, about = from_bytes(path.read_bytes())
    about = {key: value for key, value in (about | changes).items() if value is not MISSING}
    path.write_bytes(to_bytes(arrays or weights, about))


def test_what_was_saved_is_read_back(saved):
    for name in (saved, str(saved), saved.with_suffix(".safetensors")):
        again = NetworkModel.load(name)
        assert (again.size, dict(again.about)) == (small().size, {"seed": 0})
        assert again.weights.keys() == small().weights.keys()
        for key, value in small().weights.items():
            np.testing.assert_array_equal(again.weights[key], value)
    assert sorted(p.name for p in saved.parent.iterdir()) == ["p.safetensors"]
    about = from_bytes(saved.with_suffix(".safetensors").read_bytes())[1]
    assert sorted(about) == list(KEYS)
    versions = {saved.with_name(f"v1.{k}"): small(seed=k) for k in (5, 6)}
    for name, model in versions.items():
        model.save(name)
    for name, model in versions.items():
        assert NetworkModel.load(name).digest() == model.digest(), "a name goes on after its dot"
    assert isinstance(bots.make(f"value:{saved}"), ValueBot), "a policy head is left aside"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "carolus-sb3"}, "format must be 'carolus-network', got 'carolus-sb3'"),
        ({"version": 99}, "version must be 1, got 99"),
        ({"version": True}, "version must be a whole number, got True"),
        ({"players": 5}, "players must be a whole number from 2 to 4, got 5"),
        ({"players": [[["x" * 10**5] * 5]]}, "players must be a whole number, got "),
        ({"format": "y" * 10**5}, "format must be 'carolus-network', got "),
        ({"players": 3}, r"p\.safetensors: .* Size\(players=3, .* must be float32"),
        ({"policy": False}, r"out must be float32 .*; sharpness must be float32 \(0,\), got"),
        ({"policy": 1}, "policy must be true or false, got 1"),
        ({"width": 24}, r"bias must be float32 \(24,\), got float32 \(16,\)"),
        ({"width": 10**12}, "width must be a whole number from 16 to 1,024, got 1000000000000"),
        ({"width": 18}, "width must be .*, got 18"),
        ({"hidden": 2}, "hidden must be .*, got 2"),
        ({"hidden": 8.0}, "hidden must be a whole number, got 8.0"),
        ({"about": []}, r"about must be an object, got \[\]"),
        ({"sha256": None}, "sha256 must be a string, got None"),
        ({"sha256": "0" * 64}, r"damaged: its weights are not those that were saved \(sha256\)"),
        *(({key: MISSING}, rf"p\.safetensors: {key} is missing") for key in KEYS),
    ],
)
def test_a_model_that_does_not_fit_is_refused(saved, changes, text):
    rewrite(saved, **changes)
    with pytest.raises(ModelError, match=text) as caught:
        NetworkModel.load(saved)
    assert str(saved) in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (None, "metadata.about is missing"),
        ({"other": "{}"}, "metadata.about is missing"),
        *(({"about": junk}, "not JSON") for junk in ("", "{", "[" * 100_000, "1" * 5000)),
        *(({"about": junk}, "must be an object") for junk in ("[]", "null", "1")),
    ],
)
def test_a_description_that_is_none_is_refused(saved, metadata, text):
    weights = {name: np.array(array) for name, array in small().weights.items()}
    saved.with_suffix(".safetensors").write_bytes(tensor_bytes(weights, metadata))
    with pytest.raises(ModelError, match=rf"p\.safetensors: .*{text}"):
        NetworkModel.load(saved)


def test_a_reader_beside_a_writer_always_gets_a_whole_model(saved):
    models_of = [small(seed=seed) for seed in range(2)]
    stop, digests = threading.Event(), {model.digest() for model in models_of}

    def write():
        while not stop.is_set():
            for model in models_of:
                model.save(saved)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {NetworkModel.load(saved).digest() for _ in range(200)} <= digests
    finally:
        stop.set()
        writer.join()


class Bomb:
    """Pickles into something that leaves a file behind when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


@pytest.mark.parametrize("kind", ["pickle", "torch", "cut short", "zeros", "empty", "longer"])
def test_foreign_weights_are_refused_and_run_no_code(saved, tmp_path, kind):
    trap = tmp_path / "trap"
    bomb = pickle.dumps(Bomb(trap))
    pickle.loads(bomb)
    assert trap.exists(), "the trap works"
    trap.unlink()
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:  # what torch.save writes
        archive.writestr("archive/data.pkl", bomb)
    intact = saved.with_suffix(".safetensors").read_bytes()
    data = {
        "pickle": bomb,
        "torch": (tmp_path / "z").read_bytes(),
        "cut short": intact[:-7],
        "zeros": bytes(64),
        "empty": b"",
        "longer": intact + b"more",
    }[kind]
    saved.with_suffix(".safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"p\.safetensors: cut short, damaged or no safeten"):
        NetworkModel.load(saved)
    assert not trap.exists()


def test_weights_other_than_the_networks_are_listed(saved):
    wrong = dict(small().weights)
    rewrite(saved, {**wrong, "bias": wrong["bias"] + 1})
    with pytest.raises(ModelError, match=r"p\.safetensors: damaged: .*\(sha256\)"):
        NetworkModel.load(saved)
    wrong["bias"] = wrong["bias"].astype(np.float64)
    wrong["out_bias"] = np.full_like(wrong["out_bias"], np.nan)
    wrong["hidden"] = wrong["hidden"].T.copy()
    wrong["extra"] = wrong.pop("sharpness")
    rewrite(saved, wrong)
    with pytest.raises(ModelError) as caught:
        NetworkModel.load(saved)
    texts = "bias must be float32 (16,), got float64 (16,)", "hidden must be float32 ("
    for text in (*texts, "sharpness is missing", "'extra' is unknown", "out_bias holds NaN"):
        assert text in str(caught.value)
    with pytest.raises(ModelError, match="out_bias holds NaN or infinity"):
        NetworkModel(small().size, {**small().weights, "out_bias": wrong["out_bias"]})
    with pytest.raises(ModelError, match=f"and {len(small().size.shapes()) - 6} more"):
        NetworkModel(small().size, {})


def test_a_file_that_is_too_long_or_missing_or_a_folder_is_refused(saved, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(files, "LARGEST", 100)
        with pytest.raises(ModelError, match=r"p\.safetensors: not a model: longer than 100 bytes"):
            NetworkModel.load(saved)
        with pytest.raises(ModelError, match="allowed are 100"):
            small().save(saved)
    path = saved.with_suffix(".safetensors")
    path.unlink()
    with pytest.raises(ModelError, match=r"p\.safetensors: cannot be read: No such file"):
        NetworkModel.load(saved)
    path.mkdir()
    with pytest.raises(ModelError, match=r"p\.safetensors: cannot be read: not a regular file"):
        NetworkModel.load(saved)


def test_a_policy_needs_a_policy_head(tmp_path):
    small(policy=False).save(tmp_path / "v")
    with pytest.raises(ModelError, match="v: the model has no policy head"):
        bots.make(f"ppo:{tmp_path}/v")
    with pytest.raises(bots.AgentError, match="needs a model with a policy head"):
        PpoBot(small(policy=False))


@pytest.mark.parametrize("spec", ["ppo:2p", "ppo:{}", "value:{}", "search:{}", "search:{},sims=9"])
def test_games_of_another_number_of_players_are_refused(saved, spec):
    agent = bots.make(spec := spec.format(saved))
    text = f"agent '{re.escape(spec)}': has a model for 2 players, not for 3"
    with pytest.raises(ValueError, match=text):
        agent.act(ce.new_games(ce.Rules(3), 4, seed=1), ce.new_streams(0, 4))


@pytest.mark.parametrize(("bot", "kind"), [("ppo", "ppo"), ("value", "value"), ("search", "value")])
def test_a_model_of_the_package_is_for_its_number_of_players_and_named_if_missing(
    monkeypatch, tmp_path, bot, kind
):
    for name in files.NAMES:
        size = find(kind, name).size
        assert (f"{size.players}p", size.policy) == (name, kind == "ppo")
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    with pytest.raises(ModelError, match=rf"{kind}_2p\.safetensors: cannot be read: No such file"):
        bots.make(f"{bot}:2p")
    with pytest.raises(ModelError, match=rf"{kind}_3p\.safetensors: cannot be read"):
        bots.make(bot).act(ce.new_games(ce.Rules(3), 4, seed=1), ce.new_streams(0, 4))


def decision_model(players=2, seed=1):
    size = decisions.Size(players, region=8, whole=12)
    return decisions.DecisionModel(size, decisions.random_weights(size, seed), {"seed": seed})


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_policy_over_single_decisions_plays_in_the_arena_and_as_an_opponent(tmp_path, players):
    decision_model(players).save(tmp_path / "mine")
    spec = f"decisions:{tmp_path}/mine"
    assert evaluation.play_pairing((spec, "random"), ce.Rules(players), 12, seed=1).games >= 12
    envs = CarolusVectorEnv(4, players, spec)
    envs.reset(seed=1)
    envs.step(envs.action_masks().argmax(axis=1))
    states = ce.new_games(ce.Rules(players), 8, seed=2)
    answer = bots.opinion(bots.make(spec), states)
    chosen = bots.make(spec).act(states, ce.new_streams(0, 8))
    assert (answer.probabilities.argmax(axis=1) == chosen).all()
    with pytest.raises(bots.AgentError, match=f"has a model for {players} players, not for"):
        bots.make(spec).act_one(ce.new_games(ce.Rules(2 if players > 2 else 3), 1)[0])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"observation_version": 0}, "observation_version must be "),
        ({"format": "carolus-network"}, "format must be 'carolus-decisions', got 'carolus-netw"),
        ({"region": 0}, "region must be a whole number from 1 to "),
        ({"whole": 13}, "do not fit .*disc must be float32"),
    ],
)
def test_a_file_that_is_no_policy_over_single_decisions_is_refused(tmp_path, change, text):
    path = tmp_path / "mine.safetensors"
    decision_model().save(path)
    rewrite(path, **change)
    with pytest.raises(ModelError, match=text):
        bots.make(f"decisions:{path}")


def renamed(seen, players, order):
    """Return observations after the clans were renamed."""
    blocks, axes = [], {"supply": 1, "region_paladins": 1, "reserves": 2, "courts": 2, "control": 2}
    layout = observation.layout(players)
    for block, where in zip(layout, observation.slices(players).values(), strict=True):
        numbers = seen[:, where].reshape(len(seen), *block.shape)
        if block.name in axes:
            numbers = np.take(numbers, order, axis=axes[block.name])
        blocks.append(numbers.reshape(len(seen), -1))
    return np.hstack(blocks)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_policy_over_single_decisions_follows_the_clans_and_is_the_same_in_pytorch(players):
    weights, order = decision_model(players).weights, np.array([3, 0, 4, 1, 2])
    batch = ce.GameBatch(ce.Rules(players), 64, seed=5, observation="uint8")
    streams = ce.new_streams(1, 64)
    for _ in range(60):
        batch.step(engine.random_actions(batch.states, streams))
    seen = batch.turn().observations.astype(np.float32)
    logits, values = decisions.forward(weights, seen, players, np)
    others, same = decisions.forward(weights, renamed(seen, players, order), players, np)
    np.testing.assert_allclose(same, values, atol=1e-5)
    np.testing.assert_allclose(others[:, :5], logits[:, :5], atol=1e-5)
    np.testing.assert_allclose(others[:, 5:10], logits[:, 5:10][:, order], atol=1e-5)
    np.testing.assert_allclose(others[:, 10:15], logits[:, 10:15], atol=1e-5)
    places, theirs = (all[:, 15:].reshape(64, 5, 16) for all in (logits, others))
    np.testing.assert_allclose(theirs, places[:, order], atol=1e-5)
    assert np.ptp(places, axis=1).mean() > 1e-3, "clans differ"
    torch = pytest.importorskip("torch")
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    for ours, with_torch in zip(
        (logits, values),
        decisions.forward(tensors, torch.from_numpy(seen), players, torch),
        strict=True,
    ):
        np.testing.assert_allclose(with_torch.numpy(), ours, atol=1e-5)


@given(seed=st.integers(0, 10**6), players=st.integers(2, 4), larger=st.sampled_from([1, 10, 100]))
def test_no_weights_and_no_position_make_a_logit_that_passes_a_librarys_mask(seed, players, larger):
    random, highs = np.random.default_rng(seed), observation.highs(players).astype(float)
    seen = np.rint(
        highs * random.choice([0, 0.01, 0.1, 1], (64, len(highs)), p=[0.4, 0.2, 0.2, 0.2])
    )
    regions = np.arange(15) < random.integers(2, 16, 64)[:, None]
    seen[:, observation.slices(players)["region_exists"]] = regions
    for name in (None, f"{players}p"):
        model = decision_model(players, seed) if name is None else find("decisions", name)
        weights = {key: np.float32(larger) * weight for key, weight in model.weights.items()}
        logits, values = decisions.forward(weights, seen.astype(np.float32), players, np)
        assert np.abs(logits).max() <= decisions.LARGEST_LOGIT
        assert np.abs(values).max() <= 1.00001


@pytest.mark.parametrize("name", [".", "..", "/", "~nobodyx/y"])
def test_a_path_that_cannot_be_a_models_is_refused_as_any_other(name):
    with pytest.raises(ModelError, match=r"unknown model|cannot be read"):
        bots.make(f"value:{name}")
