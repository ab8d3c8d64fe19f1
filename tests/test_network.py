"""The network: the same answers from NumPy, torch and the kernel; clans have no names in it."""

from __future__ import annotations

import numpy as np
import pytest
from test_policy import decisions

import carolus_env as ce
from carolus_env.bots.neural import network
from carolus_env.bots.neural.inference import Net
from carolus_env.bots.neural.network import Size
from carolus_env.engine import observation
from carolus_env.engine.rules import (
    CLANS,
    CROWN_CHOICE,
    DESTINATIONS,
    DISC,
    FIRST_CROWN,
    FIRST_MOVE,
    FIRST_PLACE,
    MOVE,
    PLACE,
)

every_number = pytest.mark.parametrize("players", [2, 3, 4])


def random_weights(size, seed=0):
    """Weights of which each is felt, biases too."""
    random = np.random.default_rng(seed)
    return {
        name: random.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        for name, shape in network.shapes(size).items()
    }


def observed(states):
    return ce.observe(states).astype(np.float32)


def positions(players, **rules):
    """Positions of whole games of random play, in every phase, until few regions are left."""
    states = ce.new_games(ce.Rules(players, "deferred", **rules), 40, seed=players)
    streams, kept = ce.new_streams(1, 40), []
    while not ce.is_over(states).all():
        rows = np.flatnonzero(~ce.is_over(states))
        own = streams[rows]
        ce.step(states, ce.random_actions(states[rows], own), rows=rows)
        streams[rows] = own
        kept.append(states[~ce.is_over(states)][:: max(1, len(rows) // 4)])
    return np.concatenate(kept)[::7].copy()


def log_policy(states, logits):
    logits = np.where(ce.legal_masks(states) == 1, logits.astype(np.float64), -np.inf)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def chances(scores):
    parts = np.exp(scores - scores.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


def off(found, wanted, where, sizes):
    """The largest difference, each row's by what its numbers were calculated from."""
    wrong = np.zeros(found.shape)
    np.subtract(found, wanted, out=wrong, where=where)
    return (np.abs(wrong).max(axis=1) / (1 + np.abs(sizes).max(axis=1))).max()


# ------------------------------------------------------------------------------------ sameness


@every_number
def test_numpy_and_torch_give_the_same(players):
    torch = pytest.importorskip("torch")
    size = Size(players)
    weights, seen = random_weights(size), observed(positions(players))
    logits, scores = network.forward(weights, seen, players, np)
    tensors = {name: torch.from_numpy(w) for name, w in weights.items()}
    found = network.forward(tensors, torch.from_numpy(seen), players, torch)
    for ours, theirs in zip((logits, scores), found, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-4 * np.abs(ours).max())


@every_number
@pytest.mark.parametrize(("region", "trunk"), [(32, 128), (5, 3), (2, 9)])
def test_the_kernel_gives_the_same(players, region, trunk):
    size = Size(players, region, trunk)
    weights, states = random_weights(size), positions(players)
    assert set(states["phase"].tolist()) == {CROWN_CHOICE, DISC, PLACE, MOVE}
    assert states["regions"].min() < 8
    logits, scores = network.forward(weights, observed(states), players, np)
    policy, parts = Net(size, weights).judge(states)
    legal = ce.legal_masks(states) == 1
    np.testing.assert_array_equal(np.isfinite(policy), legal)
    assert off(policy, log_policy(states, logits), legal, logits) < 1e-5
    own = states["team"][np.arange(len(states)), states["player"]]
    turned = np.array([np.roll(row, by) for row, by in zip(chances(scores), own, strict=True)])
    assert off(parts, turned, parts >= 0, scores) < 1e-5
    assert policy[legal].std() > 0.1, "else anything would be near"
    assert parts.std() > 0.1


def test_the_kernel_counts_paladins_beyond_a_byte_as_the_observation_does():
    states = positions(2, paladins_per_clan=200)
    size = Size(2, 4, 8)
    weights = random_weights(size)
    logits, _ = network.forward(weights, observed(states), 2, np)
    policy, _ = Net(size, weights).judge(states)
    legal = ce.legal_masks(states) == 1
    assert off(policy, log_policy(states, logits), legal, logits) < 1e-5


def test_the_kernel_says_the_same_of_a_position_in_any_batch():
    size, states = Size(3), positions(3)
    net = Net(size, random_weights(size))
    together = net.judge(states)
    for i in range(0, len(states), 20):
        alone = net.judge(states[i : i + 1].copy())
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_array_equal(ours[i : i + 1], theirs)


def test_version_2_answers_as_it_did():
    """Weights and observation from arithmetic, so that they stay what they are."""
    for players, wanted in ANSWERS.items():
        size = Size(players, 4, 8)
        weights = {
            name: np.sin(1 + k + np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
            for k, (name, shape) in enumerate(network.shapes(size).items())
        }
        seen = np.zeros((1, observation.length(players)), np.uint8)
        seen[0] = np.arange(seen.shape[1]) * 7 % (observation.highs(players).astype(int) + 1) % 12
        exists = observation.unpack(seen, players)["region_exists"]
        exists[0] = np.arange(15) < 9
        logits, scores = network.forward(weights, seen.astype(np.float32), players, np)
        found = [*scores[0].tolist(), *logits[0, [0, 6, 12, 15, 40]].tolist()]
        np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert (network.VERSION, observation.VERSION) == (2, 2), "new answers for a new version"


# chances' scores, then logits of a disc, a crown, a move, a paladin to the court and to a region
ANSWERS = {
    2: [-2501.9, -836.11, 2359.0, 116.27, 799.76, -118.07, 68007.0],
    3: [-3358.2, -892.61, 2393.7, 5467.6, 290.77, 1994.3, -299.73, 394970.0],
    4: [-1075.4, -377.47, 1005.9, 44.814, 499.7, -50.01, 16632.0],
}


# ------------------------------------------------------------------------------------ shape


@every_number
def test_renaming_the_clans_renames_the_answers(players):
    size, states = Size(players), positions(players)
    weights, seen = random_weights(size), observed(states)
    order = np.array([3, 0, 4, 2, 1])
    renamed = seen.copy()
    blocks, views = observation.unpack(seen, players), observation.unpack(renamed, players)
    for name, axis in (("supply", 1), ("reserves", 2), ("courts", 2), ("control", 2)):
        views[name][...] = np.take(blocks[name], order, axis)
    views["region_paladins"][...] = blocks["region_paladins"][:, order]
    assert (renamed != seen).any()

    logits, scores = network.forward(weights, seen, players, np)
    others, same = network.forward(weights, renamed, players, np)
    wanted = logits.copy()
    wanted[:, FIRST_CROWN:FIRST_MOVE] = logits[:, FIRST_CROWN:FIRST_MOVE][:, order]
    places = logits[:, FIRST_PLACE:].reshape(-1, CLANS, DESTINATIONS)
    wanted[:, FIRST_PLACE:] = places[:, order].reshape(len(states), -1)
    scale = np.abs(logits).max()
    np.testing.assert_allclose(others, wanted, atol=1e-5 * scale)
    np.testing.assert_allclose(same, scores, atol=1e-5 * np.abs(scores).max())
    assert np.abs(others - logits).max() > 0.01 * scale


@every_number
def test_regions_that_do_not_exist_do_not_matter(players):
    size, states = Size(players), positions(players)
    states = states[states["regions"] <= 9]
    weights, seen = random_weights(size), observed(states)
    before = network.forward(weights, seen, players, np)
    random = np.random.default_rng(1)
    for name in ("region_b", "region_2_b"):
        weights[name][9:] = random.normal(size=weights[name][9:].shape)
    views = observation.unpack(seen, players)
    for name in ("region_castles", "region_strength"):
        views[name][:, :, 9:] = random.integers(0, 9, views[name][:, :, 9:].shape)
    after = network.forward(weights, seen, players, np)
    legal = ce.legal_masks(states) == 1
    np.testing.assert_allclose(after[0][legal], before[0][legal], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-5, atol=1e-4)


@every_number
def test_a_new_network_finds_all_about_alike(players):
    size, states = Size(players), decisions(players, 200, steps=40)
    policy, parts = Net(size, network.initial(size, 1)).judge(states)
    likely = np.exp(policy)
    entropy = -np.sum(likely * np.where(likely > 0, policy, 0), axis=1)
    alike = np.exp(entropy) / ce.legal_masks(states).sum(axis=1)  # 1: all of them
    assert 0.9 < alike.min() <= 1 + 1e-9
    np.testing.assert_allclose(parts, 1 / parts.shape[1], atol=0.1)


def test_a_seed_gives_the_same_weights():
    one, again, other = (network.initial(Size(2), seed) for seed in (1, 1, 2))
    for name, shape in network.shapes(Size(2)).items():
        assert one[name].shape == shape
        assert one[name].dtype == np.float32
        np.testing.assert_array_equal(one[name], again[name])
        if not name.endswith("_b"):
            assert (one[name] != other[name]).any()


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((5,), "players must be 2, 3 or 4, got 5"),
        ((2.0,), "players must be 2, 3 or 4, got 2.0"),
        ((2, 0), "region must be an integer from 1 to 4096, got 0"),
        ((2, 32, 5000), "trunk must be an integer from 1 to 4096, got 5000"),
        ((2, True), "region must be an integer from 1 to 4096, got True"),
    ],
)
def test_a_wrong_size_is_refused(sizes, text):
    with pytest.raises(ValueError, match=text):
        Size(*sizes)


def test_decisions_are_of_every_phase():
    """What the tests of policies are made from."""
    assert len(set(decisions()["phase"].tolist())) > 1
