"""The examples run as shipped, and train, evaluate and save."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from carolus_env import GameBatch, Rules, evaluation
from carolus_env.commands import dataset

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

EXAMPLE = Path(__file__).parent.parent / "examples" / "ppo_torch.py"
SELF_PLAY = EXAMPLE.with_name("ppo_self_play.py")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script with options, in this process; the lines that it prints."""

    def call(script, *words):
        monkeypatch.setattr(sys, "argv", [str(script), *words])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return call


@pytest.mark.parametrize(
    ("turns", "outputs"), [([], 95), pytest.param(["--turns"], 1, marks=pytest.mark.slow)]
)
def test_ppo_in_one_file_trains_evaluates_and_saves(run, tmp_path, turns, outputs):
    weights = tmp_path / "weights.safetensors"
    options = "--players 3 --envs 8 --rollout 32 --steps 500 --minibatch 64 --epochs 1"
    words = [*turns, *options.split(), "--eval-games=12", "--save", str(weights)]
    first, *progress, last = run(EXAMPLE, *words)
    opponents = "planner:errors=0.1" if turns else "greedy"
    for when, line in (("before", first), ("after", last)):
        assert line.startswith(f"{when} training: win rate ")
        assert line.endswith(f"against {opponents}, 12 games of 3 players")
    assert [line.split()[0] for line in progress] == ["256", "512"]
    assert safetensors.load_file(weights)["policy.4.bias"].shape == (outputs,)


def test_ppo_in_one_file_bootstraps_across_no_end_and_plays_legal_actions_only():
    names = runpy.run_path(str(EXAMPLE))
    rewards, values = torch.zeros(3, 2), torch.full((3, 2), 0.5)
    rewards[1, 0] = -1.0  # the first game is lost with the second decision
    ends = torch.tensor([[False, False], [True, False], [False, False]])
    result = names["advantages"](rewards, ends, values, torch.tensor([0.9, 0.9]), 1.0, 0.5)
    assert result[:, 0].tolist() == pytest.approx([-0.75, -1.5, 0.4])
    assert result[:, 1].tolist() == pytest.approx([0.1, 0.2, 0.4])
    args = names["Args"](hidden=8)
    envs = names["make"](args, 16)
    network = names["Network"](envs, args.hidden)
    obs, masks = names["as_tensors"](*envs.reset(seed=1))
    choice, _ = network(obs, masks)
    assert (choice.probs > 0).equal(masks)
    assert choice.entropy().isfinite().all()
    for _ in range(300):
        moves = network(obs, masks)[0].sample()
        following, _, _, _, infos = envs.step(moves.numpy())
        assert "illegal" not in infos.get("final_info", {})
        obs, masks = names["as_tensors"](following, infos)
        assert masks.any(dim=1).all(), "every step is a decision in every game"


def test_ppo_by_self_play_gives_each_seat_the_advantages_of_its_own_payoffs():
    names = runpy.run_path(str(SELF_PLAY))
    args = names["Args"](players=3, games=2, steps=3)
    batch = GameBatch(Rules(3), 2, seed=1, observation="float32")
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


def test_ppo_by_self_play_learns_and_plays_against_bots(run):
    options = "--players 4 --games 8 --steps 8 --minibatches 2 --minutes 0.01 --opponents random"
    assert "against random (" in run(SELF_PLAY, *options.split(), "--eval-games", "24")[-1]


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
