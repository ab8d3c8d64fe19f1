"""Win rates less luck: their mean is right, their intervals hold the truth, files keep them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carolus_env import arena, bots, engine
from carolus_env.analysis.luck import METHODS, luck
from carolus_env.analysis.values import value_function
from carolus_env.arena import Plan, Tournament, pool
from carolus_env.arena.luck import METHOD
from carolus_env.arena.pairing import less_luck
from carolus_env.arena.report.page import page
from carolus_env.arena.report.standings import standings
from carolus_env.engine.chance import chance_outcomes, roll
from carolus_env.engine.rules import ROLL, Rules
from carolus_env.engine.state import States
from carolus_env.engine.streams import new_streams
from carolus_env.records import read_records, start_of
from carolus_env.records.events import play_events


def plan_of(
    agents: tuple[str, ...] = ("greedy", "random"),
    deals: int = 6,
    players: int = 2,
    luck: str | None = "planner",
    **options: Any,
) -> Plan:
    return Plan(Rules(players), agents, deals=deals, seed=5, luck=luck, **options)


def played(plan: Plan, file: Path | None = None, **options: Any) -> Tournament:
    cup = Tournament(plan)
    cup.run(file=file, **options)
    return cup


def waiting(players: int, games: int) -> States:
    """Games of greedy players that wait for a roll of the third round."""
    greedy, found = bots.make("greedy"), []
    for seed in range(games):
        state, stream = engine.new_games(Rules(players), 1, seed=seed), new_streams(seed, 1)
        while state["phase"][0] != ROLL or state["round"][0] < 3:
            roll(state)
            engine.step(state, greedy.act(state, stream), roll=False)
        found.append(state)
    return np.concatenate(found)


# ------------------------------------------------------------------------------------ the mean


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("method", METHODS)
def test_the_luck_of_all_outcomes_of_a_roll_has_the_mean_0(players: int, method: str) -> None:
    states = waiting(players, 3)
    outcomes = chance_outcomes(int(states["dice_due"][0]))
    for spec in ("planner", "ppo"):
        value = value_function(spec, players)
        for state in states:
            before = np.repeat(state[None], len(outcomes.faces))
            found = luck(before, outcomes.faces, value, method)
            np.testing.assert_allclose(outcomes.probabilities @ found, 0, atol=1e-12)
            np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-6)
            assert np.abs(found).max() > 1e-4


@pytest.mark.parametrize(
    ("agents", "players", "deals"),
    [
        (("greedy", "greedy"), 2, 800),
        (("greedy", "random"), 2, 300),
        (("planner", "greedy"), 2, 60),
        (("greedy", "random"), 3, 100),
        (("greedy", "greedy"), 4, 300),
        (("greedy", "random"), 4, 200),
    ],
)
def test_luck_has_the_mean_0_over_games(agents: tuple[str, str], players: int, deals: int) -> None:
    results = played(plan_of(agents, deals, players)).results
    np.testing.assert_allclose(results.luck.sum(axis=1), 0, atol=1e-6)
    seats = results.luck.reshape(deals, -1, players)
    tables = results.tables.reshape(deals, -1, players)
    of_deal = (seats * (tables == 0)).sum(axis=2).mean(axis=1)
    assert of_deal.std() > 0.01
    assert abs(of_deal.mean()) < 4 * of_deal.std() / deals**0.5


def test_a_games_luck_is_the_sum_over_its_rolls(tmp_path: Path) -> None:
    for players in (2, 3, 4):
        path = tmp_path / f"{players}.jsonl"
        plan = plan_of(deals=2, players=players, luck="ppo")
        found = played(plan, records=path).results.luck
        value = value_function("ppo", players)
        for game, (_, record) in enumerate(read_records(path)):
            total = 0.0
            for event in play_events(start_of(record), record["events"]):
                if "roll" in event.event and event.before["round"][0] > 0:
                    faces = np.array([event.event["roll"]])
                    total = total + luck(event.before, faces, value, METHOD)[0]
            rules = plan.rules
            team = [rules.team(seat) for seat in range(players)]
            wanted = [total[t] / team.count(t) for t in team]
            np.testing.assert_allclose(found[game], wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("schedule", "players", "agents"),
    [("round_robin", p, 3) for p in (2, 3, 4)] + [("field", 3, 3), ("mixed", 3, 4)],
)
def test_what_a_start_is_worth_cancels_between_the_seatings_of_a_deal(
    schedule: str, players: int, agents: int
) -> None:
    rules, deals = Rules(players), 5
    plan = Plan(rules, ("greedy",) * agents, schedule, deals)
    team = np.array([rules.team(seat) for seat in range(players)])
    starts = engine.new_games(rules, deals, seed=1)
    worth = value_function("ppo", players)(starts)[:, team] / np.bincount(team)[team]
    assert worth.std() > 0.01
    fixtures = plan.fixtures(0, plan.games)
    seats = worth[fixtures.deals]
    for number, meeting in enumerate(plan.meetings):
        here = fixtures.meetings == number
        for agent in meeting.agents:
            of_game = (seats * (fixtures.tables == agent)).sum(axis=1)[here]
            of_deal = of_game.reshape(deals, -1).mean(axis=1)
            np.testing.assert_allclose(of_deal, 1 / len(meeting.agents), atol=1e-6)


# ------------------------------------------------------------------------------------ intervals


def test_the_interval_less_luck_holds_the_truth_in_95_of_100_real_tournaments() -> None:
    cups, deals = 120, 30
    results = played(plan_of(("greedy", "greedy"), cups * deals)).results
    size = len(results) // cups
    held = 0
    for cup in range(cups):
        some = results.rows(slice(cup * size, (cup + 1) * size))
        [low, high], _ = arena.pairing_result(("a", "b"), some).adjusted_ci95 or ((1, 0), None)
        held += low <= 0.5 <= high
    assert 0.88 * cups <= held < cups


@pytest.mark.parametrize("deals", [4, 12, 100])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_interval_less_luck_holds_the_truth_in_95_of_100_runs(
    deals: int, weight: float
) -> None:
    """Half of a score's variance is luck, which the value function takes for luck / weight."""
    rng, runs, held, truth = np.random.default_rng(1), 1000, 0, 0.6
    numbers = np.repeat(np.arange(deals), 2)
    rates = []
    for _ in range(runs):
        dice, noise = rng.normal(0, 0.2, 2 * deals), rng.normal(0, 0.2, 2 * deals)
        scores = truth + dice + noise
        useless = rng.normal(size=2 * deals)
        found = less_luck(scores, dice / weight if weight else useless, numbers)
        low, high = found["adjusted_ci95"][0]
        held += low <= truth <= high
        rates.append(found["adjusted_rate"][0])
    assert 0.93 <= held / runs <= (0.98 if deals > 4 else 0.995)
    assert abs(np.mean(rates) - truth) < 4 * np.std(rates) / runs**0.5
    if deals == 100 and weight:
        assert found["luck_weight"] == pytest.approx(weight, abs=0.2)
        low, saved, high = (found["games_saved"][k] for k in (1, 0, 2))
        assert low < 2 < high
        assert np.std(rates) ** 2 == pytest.approx(0.04 / 200, rel=0.2)
        assert saved > 1.2


def test_useless_luck_leaves_the_win_rate_nearly_as_it_is() -> None:
    rng = np.random.default_rng(2)
    scores, useless = rng.integers(0, 2, 400).astype(float), 10 * rng.normal(size=400)
    found = less_luck(scores, useless, np.arange(400))
    assert found["adjusted_rate"][0] == pytest.approx(scores.mean(), abs=0.01)
    assert found["games_saved"][0] == pytest.approx(1, abs=0.05)


def test_without_luck_or_with_few_deals_there_is_no_adjusted_rate() -> None:
    [without] = played(plan_of(luck=None)).pairings()
    assert without.adjusted_rate is without.adjusted_ci95 is without.games_saved is None
    assert "adjusted_rate" not in without.to_dict()
    [few] = played(plan_of(deals=2)).pairings()
    assert few.adjusted_rate is None


def test_an_agent_that_always_wins_keeps_all_its_wins() -> None:
    ones = np.ones(20)
    found = less_luck(ones, np.random.default_rng(0).normal(size=20), np.arange(20) // 2)
    assert found["adjusted_rate"] == (1, 0)
    assert found["adjusted_ci95"][0] == pytest.approx((1, 1))
    assert "games_saved" not in found


# ------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("players", [2, 3, 4])
def test_luck_is_the_same_bytes_on_any_number_of_workers_and_in_any_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, players: int
) -> None:
    plan = plan_of(players=players, deals=3, luck="ppo")
    played(plan, tmp_path / "one")
    played(plan, tmp_path / "two", workers=2)
    monkeypatch.setattr(pool, "SIDE_BY_SIDE", 5)
    played(plan, tmp_path / "small")
    lines = [
        [line for line in (tmp_path / name).read_bytes().splitlines() if b'"game"' in line]
        for name in ("one", "two", "small")
    ]
    assert len(lines[0]) == plan.games
    assert lines[0] == lines[1] == lines[2]
    assert all(np.abs(json.loads(line)["luck"]).max() > 0 for line in lines[0])


def test_a_tournament_with_luck_is_resumed(tmp_path: Path) -> None:
    plan, path = plan_of(), tmp_path / "games"
    whole = played(plan, path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6][:20])
    again = Tournament(plan)
    again.run(file=path, resume=True, notice=lambda text: None)
    np.testing.assert_array_equal(again.results.luck, whole.results.luck)
    np.testing.assert_array_equal(arena.read_games(path).results.luck, whole.results.luck)
    header = json.loads(path.read_text().splitlines()[0])
    assert header["luck"] == {"value": "planner", "version": value_function("planner", 2).version}
    assert Plan.from_dict(header) == plan


def test_games_are_the_same_with_luck_and_without(tmp_path: Path) -> None:
    played(plan_of(luck=None), tmp_path / "without")
    played(plan_of(), tmp_path / "with")
    without, counted = (
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("without", "with")
    )
    assert "luck" not in without[0]
    for a, b in zip(without[1:-1], counted[1:-1], strict=True):
        assert a == {key: value for key, value in b.items() if key != "luck"}
        assert "luck" not in a
    assert not arena.read_games(tmp_path / "without").results.luck.any()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (plan_of(luck=None), "luck: {'value': 'planner', .* in the file, None here"),
        (plan_of(luck="ppo"), "luck: {'value': 'planner', .* {'value': 'ppo'"),
        (plan_of(luck_version="0"), "luck: .*'version': '0'} here"),
    ],
)
def test_a_file_with_other_luck_is_refused(tmp_path: Path, other: Plan, said: str) -> None:
    played(plan_of(), tmp_path / "games")
    with pytest.raises(arena.ResultsFileError, match=f"of another tournament: {said}"):
        Tournament(other).run(file=tmp_path / "games", resume=True)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"luck": [1, 2, 3]}, r"luck must be numbers of shape \(2,\)"),
        ({"luck": None}, r"luck must be numbers of shape \(2,\)"),
    ],
)
def test_damaged_luck_is_refused_by_its_line(tmp_path: Path, edit: Any, said: str) -> None:
    path = tmp_path / "games"
    played(plan_of(), path)
    lines = path.read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **edit})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(arena.ResultsFileError, match=f"line 3: {said}"):
        arena.read_games(path)


@pytest.mark.parametrize("given", [{}, [], {"value": "ppo"}, {"value": "ppo", "version": 1}, "ppo"])
def test_a_damaged_header_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"missing|must have a value|not the plan"):
        Plan.from_dict({**plan_of().to_dict(), "luck": given})


# ------------------------------------------------------------------------------------ plans


@pytest.mark.parametrize(
    ("spec", "players", "said"),
    [
        (
            "best",
            2,
            "a value function must be planner, ppo, value, ppo:MODEL or value:MODEL, got 'best'",
        ),
        ("ppo:2p", 3, "'ppo:2p' is for 2 players, not for 3"),
        ("ppo:nowhere", 2, "nowhere"),
    ],
)
def test_a_value_function_that_cannot_be_is_refused_before_anything_is_played(
    spec: str, players: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plan_of(luck=spec, players=players)


def test_a_value_function_that_has_changed_since_is_refused() -> None:
    cup = Tournament(plan_of(luck_version="0123456789ab"))
    with pytest.raises(arena.ArenaError, match="must have version 0123456789ab"):
        cup.run()
    assert cup.games == 0


def test_the_summary_and_the_report_say_what_luck_was_counted_by() -> None:
    cup = played(plan_of(("greedy", "greedy"), deals=10))
    summary = cup.summary(rated=False)
    version = value_function("planner", 2).version
    assert summary["luck"] == {"value": "planner", "version": version, "method": METHOD}
    [pairing] = summary["pairings"]
    assert len(pairing["games_saved"]) == 3
    text = page(summary, standings(summary), "")
    rate = 100 * pairing["adjusted_rate"][0]
    assert "less luck" in text
    assert f"{rate:.1f} [" in text
    assert version in text
    plain = dataclasses.replace(cup.plan, luck=None, luck_version=None)
    summary = played(plain).summary(rated=False)
    assert "luck" not in summary
    assert "less luck" not in page(summary, standings(summary), "")
