"""The benchmarks: their results are of what ships, and their tables write numbers shortly."""

import re
import shutil
import sys

import pytest

from benchmarks import carolusbench, results, strength, throughput
from carolus_env.bots import GreedyOptions
from carolus_env.evaluation import ladder
from carolus_env.networks.files import FOLDER


def test_rows_replace_those_of_the_same_case_and_numbers_have_three_digits_at_most(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    results.save("other", 1)
    results.save_rows("pace", [{"name": "a", "per_s": 1}, {"name": "b", "per_s": 2}], ("name",))
    results.save_rows("pace", [{"name": "a", "per_s": 3}], ("name",))
    assert results.load("pace") == [{"name": "a", "per_s": 3}, {"name": "b", "per_s": 2}]
    assert results.load("other") == 1
    numbers = [10_912_345, 3_710_000, 999_600, 619_999, 69_049, 6_938, 512.4, 2.5]
    written = ["10.9 M", "3.71 M", "1.00 M", "620 k", "69 k", "6.94 k", "512", "2.5"]
    assert [results.short(number) for number in numbers] == written
    ratios = [results.times(ratio) for ratio in (0.421, 1.7312, 17.3, 4230)]
    assert ratios == ["0.42", "1.73", "17", "4,200"]


@pytest.mark.parametrize("mode", ["rollout_mask", "gym_vector", "gym_single", "single"])
def test_a_mode_counts_decisions_and_games(mode: str) -> None:
    row = throughput.measure(mode, 2, 1 if "single" in mode else 64, 1, seconds=0.05, repeats=1)
    assert row["min"] == row["decisions_per_s"] == row["max"] > 0
    assert row["games_per_s"] < row["decisions_per_s"]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_matches_are_those_of_the_shipped_models(players: int) -> None:
    rows = [row for row in results.load("strength") if row["players"] == players]
    assert [tuple(row["pair"]) for row in rows] == list(strength.MATCHES[players])
    for row in rows:
        assert row["model"] == strength.digest(players, tuple(row["pair"])), row["pair"]
    times = [row for row in results.load("times") if row["players"] == players]
    agents = {spec for pair in strength.MATCHES[players] for spec in pair}
    assert {row["agent"] for row in times} == agents and len(times) == len(agents)
    for row in times:
        assert row["model"] == strength.digest(players, [row["agent"]]), row["agent"]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_every_shipped_agent_has_a_row_of_the_protocol(players: int) -> None:
    rows = {r["agent"]: r for r in results.load("carolusbench") if r["players"] == players}
    for spec in carolusbench.specs(players):
        assert rows[spec]["version"] == carolusbench.version(players, spec), spec


def test_an_agent_is_measured_again_when_its_model_changes(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    results.save("carolusbench", [])
    spec, measured = f"value:{tmp_path / 'mine'}", []

    def row(players: int, agent: str) -> results.Row:
        measured.append((players, agent))
        made = {"agent": agent, "players": players, "version": carolusbench.version(players, agent)}
        numbers = {"elo": 7.0, "elo_ci95": [-5.0, 20.0], "regret": 0.02, "regret_ci95": [0.0, 0.1]}
        return {**made, **numbers, "games": 1000, "minutes": 0.26, "machine": "here"}

    def run(model: str) -> str:
        shutil.copy(FOLDER / model, tmp_path / "mine.safetensors")
        carolusbench.main()
        return capsys.readouterr().out

    monkeypatch.setattr(carolusbench, "row", row)
    words = f"x {spec} --players 2 --name Mine --learning 5 --seed 3 --save"
    monkeypatch.setattr(sys, "argv", words.split())
    cells = "Mine seed 3 | +7 (-5 to +20); 2.0 % (0.0 - 10.0) | - | -"
    assert f"| {cells} |" in run("value_2p.safetensors")
    assert f"| {cells} |" in run("value_2p.safetensors") and measured == [(2, spec)]
    run("ppo_2p.safetensors")
    assert measured == [(2, spec)] * 2 and len(results.load("carolusbench")) == 1


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_rungs_of_the_ladder_are_quick(players: int) -> None:
    times = {row["agent"]: row["ms"] for row in results.load("times") if row["players"] == players}
    most = 0.5 if players == 2 else 1.0
    for rung in ladder.rungs(players):
        agent = re.sub(r"[:,]errors=[\d.]+", "", rung.spec)
        assert agent in ("random", "greedy") or times[agent] <= most, rung.spec


def test_decisions_are_timed_and_the_defaults_belong_to_the_digest(monkeypatch) -> None:
    row = strength.timed(2, "greedy")
    assert (row["players"], row["agent"]) == (2, "greedy") and row["ms"] > 0
    before = strength.digest(2, ["greedy"])
    monkeypatch.setitem(strength.OPTIONS, "greedy", lambda: GreedyOptions(errors=0.5))
    assert strength.digest(2, ["greedy"]) != before
