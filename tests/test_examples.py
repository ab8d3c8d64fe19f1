"""The examples run as shipped, and train, evaluate and save."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from carolus_env import Rules, arena
from carolus_env.commands import dataset

torch = pytest.importorskip("torch")
pytest.importorskip("tyro")
safetensors = pytest.importorskip("safetensors.torch")

EXAMPLE = Path(__file__).parent.parent / "examples" / "ppo_torch.py"


@pytest.mark.parametrize(("turns", "outputs"), [([], 95), (["--turns"], 1)])
def test_ppo_in_one_file_trains_evaluates_and_saves(tmp_path, turns, outputs):
    weights = tmp_path / "weights.safetensors"
    options = "--players 3 --envs 8 --rollout 32 --steps 500 --minibatch 64 --epochs 1"
    done = subprocess.run(
        [sys.executable, EXAMPLE, *turns, *options.split(), "--eval-games=12", "--save", weights],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *progress, last = done.stdout.splitlines()
    assert [line.split()[0] for line in progress] == ["256", "512"]
    assert "evaluation: win rate" in last
    assert "against greedy, 12 games of 3 players" in last
    assert safetensors.load_file(weights)["policy.4.bias"].shape == (outputs,)


def test_ppo_in_one_file_bootstraps_across_no_end():
    advantages = runpy.run_path(str(EXAMPLE))["advantages"]
    rewards, values = torch.zeros(3, 2), torch.full((3, 2), 0.5)
    rewards[1, 0] = -1.0  # the first game is lost with the second decision
    ends = torch.tensor([[False, False], [True, False], [False, False]])
    found = advantages(rewards, ends, values, torch.tensor([0.9, 0.9]), 1.0, 0.5)
    assert found[:, 0].tolist() == pytest.approx([-0.75, -1.5, 0.4])
    assert found[:, 1].tolist() == pytest.approx([0.1, 0.2, 0.4])


def test_ppo_in_one_file_plays_legal_actions_only():
    names = runpy.run_path(str(EXAMPLE))
    args = names["Args"](hidden=8)
    envs = names["make"](args, 16)
    network = names["Network"](225, 95, args.hidden)
    seen, masks = names["as_tensors"](*envs.reset(seed=1))
    choice, _ = network(seen, masks)
    assert (choice.probs > 0).equal(masks)
    assert choice.entropy().isfinite().all()
    for _ in range(300):
        moves = network(seen, masks)[0].sample()
        following, _, _, _, infos = envs.step(moves.numpy())
        assert "illegal" not in infos.get("final_info", {})
        seen, masks = names["as_tensors"](following, infos)
        assert masks.any(dim=1).all(), "every step is a decision in every game"


@pytest.mark.slow
def test_a_network_is_cloned_from_a_data_set(tmp_path):
    words = ["greedy", "--games", "60", "--workers", "1", "--out", str(tmp_path / "data")]
    assert dataset.main(words) == 0
    script = EXAMPLE.with_name("clone_torch.py")
    options = ["--games", "20", "--opponents", "random", "--epochs", "2", "--hidden", "32"]
    done = subprocess.run(
        [sys.executable, script, tmp_path / "data", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert first.startswith("pass 1: ") and second.startswith("pass 2: ")
    assert last.startswith("against random: ")
    dataset.main([*words[:-1], str(tmp_path / "bare"), "--no-masks"])
    done = subprocess.run(
        [sys.executable, script, tmp_path / "bare"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "uint8 observations and masks are needed" in done.stderr


IDEAS = EXAMPLE.with_name("own_ideas.py")


@pytest.fixture
def ideas(monkeypatch):
    monkeypatch.syspath_prepend(str(IDEAS.parent))
    return runpy.run_path(str(IDEAS))


@pytest.mark.parametrize("idea", ["features", "network", "reward", "opponent"])
def test_an_own_idea_is_learnt_with_and_evaluated(ideas, idea, capsys):
    small = {"envs": 8, "rollout": 16, "minibatch": 64, "epochs": 1, "eval_games": 6, "hidden": 8}
    ideas["main"](ideas["Args"](idea=idea, players=3, steps=128, **small))
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith(f"{idea}, seed 1: win rate ")
    assert last.endswith("against greedy, 6 games of 3 players")


def test_rewards_for_castles_are_paid_back(ideas):
    """Discounted rewards of a game add up to its discounted payoff, less the first potential."""
    args = ideas["Args"](players=2, opponents="random", idea="reward")
    with_castles = ideas["games"](args, 4, learning=True)
    plain = ideas["games"](args, 4, learning=False)
    first = with_castles.reset(seed=3)[0]
    assert (first == plain.reset(seed=3)[0]).all()
    start = with_castles.potential.copy()
    total, paid, weight, over = *np.zeros((2, 4)), 1.0, np.zeros(4, bool)
    while not over.all():
        actions = np.zeros(4, int)
        _, rewards, *_ = with_castles.step(actions)
        _, payoffs, terminated, truncated, _ = plain.step(actions)
        total += np.where(over, 0, weight * rewards)
        paid += np.where(over, 0, weight * payoffs)
        over |= terminated | truncated
        weight *= with_castles.gamma
    assert total == pytest.approx(paid - start)
    assert (paid != 0).all()


def test_the_courts_of_others_are_seen_clockwise(ideas):
    args = ideas["Args"](players=3, opponents="random", idea="features")
    envs = ideas["games"](args, 5, learning=True)
    envs.reset(seed=1)
    for _ in range(20):
        seen, *_ = envs.step(np.zeros(5, int))
    states, masks = ideas["states_of"](envs), envs.unwrapped.action_masks()
    assert states["courts"].any()
    for game, state in enumerate(states):
        for k in (1, 2):
            court = state["courts"][(state["player"] + k) % 3]
            row = seen[game, 0, -15 + 5 * (k - 1) : -10 + 5 * (k - 1) or None]
            assert row.tolist() == (court * 0.25).tolist()
        assert (seen[game, :, -5:] == 0).all()  # there is no fourth player
        assert (seen[game, masks[game] == 0] == 0).all()


@pytest.mark.slow
def test_stable_baselines_example_trains_and_plays(tmp_path, monkeypatch):
    pytest.importorskip("sb3_contrib")
    script = EXAMPLE.with_name("sb3_ppo.py")
    options = ["--envs", "8", "--steps", "256", "--opponents", "random", "--players", "3"]
    done = subprocess.run(
        [sys.executable, script, *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("saved: sb3_ppo.safetensors\n")
    monkeypatch.chdir(tmp_path)
    found = arena.play_pairing((f"{script}:Trained", "random"), Rules(3), 12, seed=1)
    assert found.games >= 12
