"""The examples run as shipped, and train, evaluate and save."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from carolus_env import GameBatch, Rules, bots, evaluation, new_streams
from carolus_env.commands import dataset
from carolus_env.networks.decisions import Size

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

EXAMPLE = Path(__file__).parent.parent / "examples" / "ppo_torch.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script with options, in this process; the lines that it prints."""

    def call(script, *words):
        monkeypatch.setattr(sys, "argv", [str(script), *words])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return call


def test_ppo_in_one_file_trains_evaluates_and_saves_what_a_bot_plays(run, tmp_path):
    options = "--players 3 --envs 8 --rollout 32 --steps 500 --minibatch 64 --epochs 1"
    options += " --eval-every 300 --eval-games 6 --opponents greedy --save"
    lines = run(EXAMPLE, *options.split(), str(tmp_path / "mine.safetensors"))
    assert [line.split()[0] for line in lines if "entropy" in line] == ["256", "512"]
    last = lines[-1]
    assert last.startswith("win rate ") and last.endswith("greedy, 6 games of 3 players")
    agent = bots.make(f"decisions:{tmp_path / 'mine.safetensors'}")
    assert evaluation.play_pairing((agent, "random"), Rules(3), 6, seed=1).games == 6


@pytest.mark.parametrize("minibatch", [1, 8])
def test_ppo_in_one_file_learns_what_legal_actions_gain(minibatch):
    """An update makes an action with a gain likelier; illegal ones stay without probability."""
    names = runpy.run_path(str(EXAMPLE))
    args = names["Args"](
        envs=4, rollout=8, minibatch=minibatch, region=8, whole=8, learning_rate=0.01
    )
    batch = GameBatch(Rules(), 4, seed=1, observation="uint8")
    network = names["Network"](Size(2, 8, 8), 1)
    decisions = names["Decisions"](args, batch)
    names["play"](batch, network, decisions)
    obs, masks = decisions.obs.flatten(0, 1), decisions.masks.flatten(0, 1)
    actions = decisions.actions.flatten()[:, None]
    before, _ = network(obs, masks)
    assert (before.exp() > 0).equal(masks == 1)
    assert masks.gather(1, actions).all()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    decisions.rewards[3, :, 0], decisions.rewards[3, :, 1] = 1.0, -1.0  # seat 0 has won them all
    decisions.goes_on[3] = 0.0
    names["learn"](network, optimizer, decisions, args)
    after, _ = network(obs, masks)
    gained = (after - before).gather(1, actions)[:, 0][:16]  # of the first four steps
    seats = decisions.seats.flatten()[:16]
    assert gained[seats == 0].mean() > gained[seats == 1].mean()


def test_a_teachers_choices_are_learnt_and_the_networks_are_played():
    names = runpy.run_path(str(EXAMPLE))
    args = names["Args"](
        teacher="greedy", envs=8, rollout=8, minibatch=16, learning_rate=0.01, entropy_weight=0.0
    )
    batch = GameBatch(Rules(), 8, seed=1, observation="uint8")
    network = names["Network"](Size(2, 8, 8), 1)
    decisions = names["Decisions"](args, batch)
    states, played, step = batch.states.copy(), [], batch.step
    batch.step = lambda actions: (played.append(actions), step(actions))
    names["play"](batch, network, decisions, names["Teacher"]("greedy", args))
    taught = bots.make("greedy").act(states, new_streams(args.seed, 8))
    assert decisions.actions[0].tolist() == taught.tolist()
    inputs = decisions.obs.flatten(0, 1), decisions.masks.flatten(0, 1)
    before, _ = network(*inputs)
    own = before.gather(1, torch.cat(played)[:, None])[:, 0]
    assert torch.allclose(own, decisions.log_probs.flatten(), atol=1e-5)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    names["learn"](network, optimizer, decisions, args)
    after, _ = network(*inputs)
    gained = (after - before).gather(1, decisions.actions.flatten()[:, None]).mean()
    assert gained > 0.5, gained


def test_ppo_by_self_play_gives_each_seat_the_advantages_of_its_own_payoffs():
    names = runpy.run_path(str(EXAMPLE))
    args = names["Args"](players=3, envs=2, rollout=3)
    batch = GameBatch(Rules(3), 2, seed=1, observation="uint8")
    decisions = names["Decisions"](args, batch)
    decisions.goes_on[:] = 1.0
    decisions.goes_on[1, 0] = 0.0  # the first game ends with the second decision
    decisions.rewards[1, 0] = torch.tensor([1.0, -0.5, -0.5])
    decisions.values[:] = 0.25
    decisions.values[3] = 0.5
    result = names["advantages"](decisions, 0.5)
    assert result[:, 0, 0].tolist() == pytest.approx([0.375, 0.75, 0.25])
    assert result[:, 0, 2].tolist() == pytest.approx([-0.375, -0.75, 0.25])
    assert result[:, 1, 0].tolist() == pytest.approx([0.0625, 0.125, 0.25])
    per_seat = torch.tensor([[10.0, 11.0, 12.0]])
    counted = names["clockwise"](per_seat, torch.tensor([2]), 1)
    assert counted.tolist() == [[12.0, 10.0, 11.0]]
    assert names["clockwise"](counted, torch.tensor([2]), -1).equal(per_seat)


@pytest.mark.slow
def test_a_network_is_cloned_from_a_data_set(tmp_path, monkeypatch):
    words = ["greedy", "--games", "60", "--workers", "1", "--out", str(tmp_path / "data")]
    assert dataset.main(words) == 0
    script = EXAMPLE.with_name("clone_torch.py")
    command = [sys.executable, script, "data"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert steps == ["pass 1", "pass 2", "pass 3", "saved"]
    monkeypatch.chdir(tmp_path)
    result = evaluation.play_pairing((f"{script}:Trained", "random"), Rules(2), 20, seed=1)
    assert result.win_rate[0] > 0.5
    dataset.main([*words[:-1], str(tmp_path / "bare"), "--observation=float32"])
    done = subprocess.run([*command[:2], "bare"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "uint8 observations are needed" in done.stderr
