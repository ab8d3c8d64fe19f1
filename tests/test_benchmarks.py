"""The benchmarks: their results are of what ships, and their tables write numbers shortly."""

import pytest

from benchmarks import results, strength, throughput


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


@pytest.mark.parametrize("mode", ["rollout_mask", "gym_vector", "single"])
def test_a_mode_counts_decisions_and_games(mode: str) -> None:
    row = throughput.measure(mode, 2, 1 if mode == "single" else 64, 1, seconds=0.05, repeats=1)
    assert row["min"] == row["decisions_per_s"] == row["max"] > 0
    assert row["games_per_s"] < row["decisions_per_s"]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_matches_are_those_of_the_shipped_models(players: int) -> None:
    rows = [row for row in results.load("strength") if row["players"] == players]
    assert [tuple(row["pair"]) for row in rows] == list(strength.MATCHES[players])
    for row in rows:
        assert row["model"] == strength.digest(players, tuple(row["pair"])), row["pair"]
