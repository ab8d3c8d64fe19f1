"""The arena: fair seats, games that do not depend on how they are batched, sound win rates."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from carolus_env import arena, bots, engine
from carolus_env.arena import ArenaError, Interrupted, Results
from carolus_env.rules import BY_CASTLES, BY_MAX_ROUNDS, REASON_NAMES, Rules
from carolus_env.state import STATE
from carolus_env.streams import new_streams

GREEDY, RANDOM = bots.make("greedy"), bots.make("random")


class Spy(bots.RandomBot):
    """A random agent that does something on the side: before its answer, or to it."""

    name = "spy"

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self._before, self._after = before, after

    def act(self, states: Any, generators: Any) -> Any:
        if self._before:
            self._before(states, generators)
        answer = super().act(states, generators)
        return self._after(answer) if self._after else answer


def failing(error: BaseException, call: int = 1) -> Spy:
    """Fails at its ``call``-th answer."""
    calls = iter(range(1, 10**9))

    def fail(*_: Any) -> None:
        if next(calls) == call:
            raise error

    return Spy(before=fail)


def same(a: Results, b: Results, but: tuple[str, ...] = ("seconds",)) -> bool:
    return all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name))
        for field in dataclasses.fields(Results)
        if field.name not in but
    )


def games_won(tables: list[list[int]], winners: list[list[int]], players: int) -> Results:
    """Results where these teams have won; nobody: the game was cut off."""
    rules = Rules(players=players)
    games = len(tables)
    team = np.tile([rules.team(seat) for seat in range(players)], (games, 1))
    shares = np.array(
        [
            [
                1 / rules.teams if not won else (rules.team(seat) in won) / len(won)
                for seat in range(players)
            ]
            for won in winners
        ]
    )
    shares /= players / rules.teams  # partners split their team's
    reasons = [BY_CASTLES if won else BY_MAX_ROUNDS for won in winners]
    return Results(
        tables=np.array(tables),
        returns=np.zeros((games, players)),
        shares=shares,
        castles=team.astype(np.uint8),
        rounds=np.full(games, 5, np.uint16),
        reasons=np.array(reasons, np.uint8),
        decisions=np.array([10, 20]),
        seconds=np.array([0.5, 1.5]),
    )


# ------------------------------------------------------------------------------------ games


@pytest.mark.parametrize("players", [2, 3, 4])
def test_results_do_not_depend_on_how_many_games_are_played_at_once(
    players: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Rules(players=players)
    tables = arena.pairing_tables(rules, 50)
    whole = arena.play_games(tables, [GREEDY, RANDOM], rules, seed=5)
    monkeypatch.setattr(arena, "SIDE_BY_SIDE", 7)
    assert same(whole, arena.play_games(tables, [GREEDY, RANDOM], rules, seed=5))
    assert not same(whole, arena.play_games(tables, [GREEDY, RANDOM], rules, seed=6))


def test_game_g_depends_on_seed_plus_g_alone() -> None:
    rules = Rules(players=3)
    tables = arena.pairing_tables(rules, 12)
    whole = arena.play_games(tables, [GREEDY, RANDOM], rules, seed=5)
    for g in (0, 3, 11):
        alone = arena.play_games(tables[g : g + 1], [GREEDY, RANDOM], rules, seed=5 + g)
        assert np.array_equal(alone.returns[0], whole.returns[g])
        assert alone.rounds[0] == whole.rounds[g]


def test_the_numbers_of_the_agents_make_no_difference() -> None:
    rules = Rules(players=3)
    tables = arena.pairing_tables(rules, 24)
    one = arena.play_games(tables, [GREEDY, RANDOM], rules, seed=1)
    other = arena.play_games(1 - tables, [RANDOM, GREEDY], rules, seed=1)
    assert same(one, other, but=("tables", "decisions", "seconds"))
    assert one.decisions.tolist() == other.decisions[::-1].tolist()


@pytest.mark.parametrize("rules", [Rules(3, "deferred"), Rules(4, partners="adjacent")])
def test_games_are_those_of_a_plain_loop_one_decision_at_a_time(rules: Rules) -> None:
    tables = arena.pairing_tables(rules, 6)
    results = arena.play_games(tables, [GREEDY, RANDOM], rules, seed=40)
    decisions = [0, 0]
    for g, table in enumerate(tables):
        game = engine.new_games(rules, 1, seed=40 + g)
        streams = [new_streams(4 * (40 + g) + seat, 1) for seat in range(rules.players)]
        while not engine.is_over(game)[0]:
            seat = int(game["player"][0])
            agent = (GREEDY, RANDOM)[table[seat]]
            decisions[table[seat]] += 1
            engine.step(game, np.array([agent.act_one(game[0], streams[seat])]))
        team = [rules.team(seat) for seat in range(rules.players)]
        assert results.returns[g].tolist() == engine.returns(game)[0].tolist()
        assert results.castles[g].tolist() == game["castles"][0][team].tolist()
        assert results.rounds[g] == game["round"][0]
        assert results.reasons[g] == game["reason"][0]
    assert results.decisions.tolist() == decisions


def test_every_seat_of_every_game_has_a_random_stream_of_its_own() -> None:
    first: dict[tuple[bytes, int], int] = {}

    def note(states: Any, generators: Any) -> None:
        for state, stream in zip(states, generators, strict=True):
            assert stream != state["generator"], "the dice's stream"
            if state["round"] == 0:
                game = state["region_paladins"].tobytes()  # the set-up tells games apart
                first.setdefault((game, int(state["player"])), int(stream))

    arena.play_games(np.zeros((50, 4), int), [Spy(before=note)], Rules(players=4), seed=0)
    assert len(first) > 100  # seats that rolled a crown in the set-up
    assert len(set(first.values())) == len(first)


def test_an_agent_cannot_touch_the_games() -> None:
    shown: list[Any] = []

    def wipe(answer: Any) -> Any:
        shown.pop()[...] = np.zeros((), STATE)
        return answer

    vandal = Spy(before=lambda states, _: shown.append(states), after=wipe)
    tables = np.zeros((20, 2), int)
    wanted = arena.play_games(tables, [RANDOM], Rules(), seed=3)
    assert same(wanted, arena.play_games(tables, [vandal], Rules(), seed=3))


@pytest.mark.parametrize("players", [2, 3, 4])
def test_shares_are_the_parts_of_the_win_that_the_returns_pay(players: int) -> None:
    rules = Rules(players=players, max_rounds=8)  # some games are cut off, so some payoffs are 0
    results = arena.play_games(np.zeros((300, players), int), [RANDOM], rules, seed=2)
    assert np.allclose(results.shares.sum(axis=1), 1)
    seats_of_a_team = players / rules.teams
    s = results.shares * seats_of_a_team
    assert np.allclose((rules.teams * s - 1) / (rules.teams - 1), results.returns)
    assert (results.returns[results.reasons == BY_MAX_ROUNDS] == 0).all()
    assert set(results.reasons.tolist()) >= {BY_CASTLES, BY_MAX_ROUNDS}


def test_progress_counts_up_to_all_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "SIDE_BY_SIDE", 10)
    told: list[int] = []
    rules = Rules(players=2)
    tables = arena.pairing_tables(rules, 36)
    arena.play_games(tables, [GREEDY, RANDOM], rules, seed=0, progress=told.append)
    assert told == sorted(set(told))
    assert told[-1] == 36


def test_no_games_give_empty_results() -> None:
    results = arena.play_games(np.zeros((0, 3), int), [RANDOM], Rules(players=3), seed=0)
    assert results.returns.shape == results.shares.shape == (0, 3)
    assert results.decisions.tolist() == [0]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (failing(KeyError("lost")), "failed with KeyError: 'lost'"),
        (failing(AssertionError()), "failed with AssertionError"),
        (failing(ValueError("agent 'spy' is for two players")), "is for two players$"),
        (Spy(after=lambda actions: actions[:-1]), r"one whole number a game, shape \(20,\), got"),
        (Spy(after=lambda actions: actions * 1.0), "whole number .* dtype float64"),
        (Spy(after=lambda actions: None), "whole number .* dtype object"),
        (Spy(after=lambda actions: actions * 0 + 94), "answered action 94 .* legal are"),
        (Spy(after=lambda actions: actions - 99), "answered action -9. "),
    ],
)
def test_an_agents_error_names_the_agent_and_the_reason(agent: bots.Agent, said: str) -> None:
    with pytest.raises(ArenaError, match=f"^agent 'spy' .*{said}") as caught:
        arena.play_games(np.zeros((20, 2), int), [agent], Rules(players=2), seed=0)
    assert str(caught.value).count("spy") == 1


def test_an_illegal_action_names_the_game_that_shows_it_again() -> None:
    """Seed, seat and phase lead back to the game."""
    calls = iter(range(10**9))
    late = Spy(after=lambda actions: np.r_[actions[:-1], 200] if next(calls) == 60 else actions)
    with pytest.raises(ArenaError) as caught:
        arena.play_games(np.ones((8, 2), int), [RANDOM, late], Rules(players=2), seed=1000)
    text = str(caught.value)
    assert "action 200" in text
    seed = int(text.split("seed ")[1].split(";")[0])
    assert 1000 <= seed < 1008
    assert "in phase " in text
    assert "as player " in text


def test_an_agent_from_a_file_is_checked_once_and_called_by_its_spec(tmp_path: Any) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def bad(states, generators):\n    return states['player'] * 0 + 90\n")
    spec = f"{path}:bad"
    with pytest.raises(ArenaError) as caught:
        arena.play_games([[0, 0]], [bots.make(spec)], Rules(players=2), seed=0)
    assert str(caught.value).count(spec) == 1


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([[0, 1, 0]], r"shape \(games, 2\), got shape \(1, 3\)"),
        ([0, 1], r"shape \(games, 2\), got shape \(2,\)"),
        ([[0.0, 1.0]], "dtype float64"),
        ([[0, 2]], "agents 0 to 1, got 0 to 2"),
        ([[-1, 0]], "agents 0 to 1, got -1 to 0"),
    ],
)
def test_impossible_tables_are_refused(tables: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        arena.play_games(tables, [GREEDY, RANDOM], Rules(players=2), seed=0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, None])
def test_an_impossible_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number from 0 to"):
        arena.play_games([[0, 0]], [RANDOM], Rules(players=2), seed=seed)


def test_the_largest_seed_plays() -> None:
    results = arena.play_games([[0, 0]] * 3, [RANDOM], Rules(players=2), seed=2**64 - 1)
    assert len(results.rounds) == 3


# ------------------------------------------------------------------------------------ seating


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (Rules(2), {(0, 1), (1, 0)}),
        (Rules(3), {(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}),
        (Rules(4), {(0, 1, 0, 1), (1, 0, 1, 0)}),
        (Rules(4, partners="adjacent"), {(0, 0, 1, 1), (1, 1, 0, 0)}),
    ],
)
def test_every_way_to_seat_two_agents_occurs_equally_often(rules: Rules, wanted: set[Any]) -> None:
    tables = arena.pairing_tables(rules, 100)
    seatings = Counter(map(tuple, tables.tolist()))
    assert set(seatings) == wanted
    assert len(set(seatings.values())) == 1
    assert 100 <= len(tables) < 100 + len(wanted)
    assert len(arena.pairing_tables(rules, 1)) == len(wanted)
    assert len(arena.pairing_tables(rules, 5 * len(wanted))) == 5 * len(wanted)
    assert arena.SIDE_BY_SIDE % len(wanted) == 0, "an interrupted pairing would not be balanced"


@pytest.mark.parametrize("games", [0, -3, 10**9, 2.5, "7"])
def test_an_impossible_number_of_games_is_refused(games: Any) -> None:
    with pytest.raises(ValueError, match="games must be a whole number from 1 to 100,000,000"):
        arena.pairing_tables(Rules(), games)


# ------------------------------------------------------------------------------------ win rates


@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_agent_that_always_wins_has_a_win_rate_of_one(players: int) -> None:
    rules = Rules(players=players)
    tables = arena.pairing_tables(rules, 60).tolist()
    # With two seats against one, both of the same agent may also tie: that is its win alone.
    winners = [
        sorted({rules.team(seat) for seat, agent in enumerate(table) if agent == 0})
        for table in tables
    ]
    result = arena.pairing_result(("a", "b"), games_won(tables, winners, players))
    assert result.win_rate == pytest.approx((1, 0))
    assert (result.wins, result.draws, result.games) == ((60, 0), 0, 60)
    assert result.ci95[0][1] == pytest.approx(1)
    assert result.ci95[1][0] == pytest.approx(0)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_equal_agents_have_a_win_rate_of_one_half(players: int) -> None:
    [result] = arena.round_robin([RANDOM, RANDOM], Rules(players=players), 3000, seed=8)
    assert result.win_rate[0] == pytest.approx(0.5, abs=4 * 0.5 / 3000**0.5)
    assert sum(result.win_rate) == pytest.approx(1)
    # The chance that a table of three is won says who sits there twice, not who is better.
    assert result.wins[0] / 3000 == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("table", "winners", "part", "wins", "draws"),
    [
        ([0, 1], [0], 1, (1, 0), 0),
        ([1, 0], [0], 0, (0, 1), 0),
        ([0, 1], [0, 1], 1 / 2, (0, 0), 1),
        ([0, 1], [], 1 / 2, (0, 0), 1),
        ([0, 1, 1], [0], 1, (1, 0), 0),
        ([0, 1, 1], [1, 2], 0, (0, 1), 0),
        ([0, 1, 1], [0, 2], 1 / 2, (0, 0), 1),
        ([0, 1, 0], [0, 1, 2], 2 / 3, (0, 0), 1),
        ([0, 1, 1], [], 1 / 3, (0, 0), 1),
        ([0, 0, 1], [], 2 / 3, (0, 0), 1),
        ([0, 1, 0, 1], [0], 1, (1, 0), 0),
        ([1, 0, 1, 0], [0], 0, (0, 1), 0),
        ([1, 0, 1, 0], [], 1 / 2, (0, 0), 1),
    ],
)
def test_part_of_the_win(
    table: list[int], winners: list[int], part: float, wins: tuple[int, int], draws: int
) -> None:
    result = arena.pairing_result(("a", "b"), games_won([table], [winners], len(table)))
    assert result.win_rate == pytest.approx((part, 1 - part))
    assert (result.wins, result.draws) == (wins, draws)


def test_games_that_are_cut_off_are_draws() -> None:
    for players in (2, 3, 4):
        [result] = arena.round_robin(
            [GREEDY, RANDOM], Rules(players=players, max_rounds=1), 60, seed=0
        )
        assert result.ends == {"max_rounds": 60}
        assert (result.wins, result.draws) == ((0, 0), 60)
        assert result.win_rate == pytest.approx((0.5, 0.5))
        assert result.mean_rounds == 1


def test_a_pairing_counts_castles_rounds_ends_and_time() -> None:
    tables = [[0, 1, 1], [1, 0, 0]]
    results = games_won(tables, [[2], []], 3)  # seat k's team has k castles
    result = arena.pairing_result(("a", "b"), results)
    assert result.mean_castles == pytest.approx(((0 + 1.5) / 2, (1.5 + 0) / 2))
    assert result.mean_rounds == 5
    assert result.ends == {"castles": 1, "max_rounds": 1}
    assert set(result.ends) < set(REASON_NAMES)
    assert result.decisions == (10, 20)
    assert result.seconds == (0.5, 1.5)
    assert result.to_dict()["agents"] == ("a", "b")


def test_a_pairing_without_games_cannot_be_counted() -> None:
    results = arena.play_games(np.zeros((0, 2), int), [RANDOM, RANDOM], Rules(), seed=0)
    with pytest.raises(ValueError, match="no game of 'a' and 'b'"):
        arena.pairing_result(("a", "b"), results)


# ------------------------------------------------------------------------------------ intervals


@pytest.mark.parametrize(
    ("won", "n", "low", "high"),
    # Wilson's interval as scipy.stats.binomtest(won, n).proportion_ci(method="wilson") has it.
    [
        (10, 10, 0.72247, 1),
        (0, 10, 0, 0.27753),
        (5, 10, 0.23659, 0.76341),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_the_interval_of_wins_and_losses_is_wilsons(
    won: int, n: int, low: float, high: float
) -> None:
    values = np.r_[np.ones(won), np.zeros(n - won)]
    assert arena.mean_interval(values) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("part", [0, 1 / 3, 1 / 2, 2 / 3, 1])
@pytest.mark.parametrize("n", [1, 2, 6, 1000])
def test_the_interval_holds_the_mean_and_stays_within_0_and_1(part: float, n: int) -> None:
    low, high = arena.mean_interval(np.full(n, part))
    assert 0 <= low <= part <= high <= 1
    assert high - low > 1 / (n + 10) / 4, "nothing is certain after so few games"
    assert arena.mean_interval(np.full(n, 1 - part)) == pytest.approx((1 - high, 1 - low))


def test_many_draws_make_the_interval_narrower() -> None:
    drawn = np.r_[np.zeros(5), np.ones(5), np.full(90, 0.5)]
    decided = np.r_[np.zeros(50), np.ones(50)]
    width = np.diff(arena.mean_interval(drawn)).item()
    assert width < 0.5 * np.diff(arena.mean_interval(decided)).item()


@pytest.mark.parametrize("n", [60, 1000])
@pytest.mark.parametrize(
    "chances",  # of 0, 1/3, 1/2, 2/3 and 1
    [
        (0.5, 0, 0, 0, 0.5),
        (0.1, 0, 0, 0, 0.9),
        (0.2, 0.05, 0.1, 0.05, 0.6),
        (0.05, 0, 0.85, 0, 0.1),
        (0.03, 0.5, 0, 0.4, 0.07),
    ],
)
def test_the_interval_covers_the_true_mean_in_95_of_100_runs(
    chances: tuple[float, ...], n: int
) -> None:
    values = np.array([0, 1 / 3, 1 / 2, 2 / 3, 1])
    runs = 2000
    samples = np.random.default_rng(3).choice(values, (runs, n), p=chances)
    true = float(values @ chances)
    intervals = np.array([arena.mean_interval(sample) for sample in samples])
    covered = ((intervals[:, 0] <= true) & (true <= intervals[:, 1])).mean()
    assert 0.93 <= covered <= 0.975


# ------------------------------------------------------------------------------------ round robin


def test_a_round_robin_plays_every_pair_and_no_pair_depends_on_the_others() -> None:
    rules = Rules(players=3)
    named = {name: Spy() for name in "abc"}
    for name, agent in named.items():
        agent.name = name
    told: list[int] = []
    agents = [named["a"], named["b"], named["c"], GREEDY]
    pairings = list(arena.round_robin(agents, rules, 20, seed=4, progress=told.append))
    pairs = [("a", "b"), ("a", "c"), ("a", "greedy"), ("b", "c"), ("b", "greedy"), ("c", "greedy")]
    assert [pairing.agents for pairing in pairings] == pairs
    assert told[-1] == 6 * 24
    assert told == sorted(told)
    [alone] = arena.round_robin([named["c"], GREEDY], rules, 20, seed=4)
    assert dataclasses.replace(alone, seconds=(0, 0)) == dataclasses.replace(
        pairings[-1], seconds=(0, 0)
    )


def test_loading_at_the_first_decision_is_not_counted_as_thinking() -> None:
    calls = iter(range(10**9))
    lazy = Spy(before=lambda *_: next(calls) == 0 and time.sleep(0.5))
    [result] = arena.round_robin([lazy, RANDOM], Rules(), 2, seed=0)
    assert 0 < result.seconds[0] < 0.5


def test_the_better_agent_wins_with_every_number_of_players() -> None:
    for players in (2, 3, 4):
        [result] = arena.round_robin([GREEDY, RANDOM], Rules(players=players), 300, seed=0)
        assert result.win_rate[0] > 0.97
        assert result.ci95[0][0] > 0.95
        assert result.mean_castles[0] > result.mean_castles[1]


def test_one_agent_is_no_pairing() -> None:
    with pytest.raises(ValueError, match="needs two agents, got 1"):
        next(arena.round_robin([GREEDY], Rules(), 10, seed=0))


def test_ctrl_c_keeps_only_games_played_side_by_side_to_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of games in play the short ones finish first: counting them would favour quick wins."""
    monkeypatch.setattr(arena, "SIDE_BY_SIDE", 6)
    rules = Rules(players=3)
    told: list[int] = []

    def stop(done: int) -> None:
        told.append(done)
        if done > 14:  # some of the third six are finished
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(Interrupted) as caught:
        for pairing in arena.round_robin([GREEDY, RANDOM], rules, 60, seed=1, progress=stop):
            seen.append(pairing)  # noqa: PERF402
    assert told[-1] > 14
    assert len(caught.value.results.tables) == 12
    [kept] = seen
    [wanted] = arena.round_robin([GREEDY, RANDOM], rules, 12, seed=1)
    assert dataclasses.replace(kept, seconds=(0, 0)) == dataclasses.replace(wanted, seconds=(0, 0))


def test_ctrl_c_before_any_game_counts_yields_nothing() -> None:
    stopper = failing(KeyboardInterrupt(), call=5)
    with pytest.raises(Interrupted) as caught:
        list(arena.round_robin([stopper, RANDOM], Rules(), 60, seed=1))
    assert len(caught.value.results.tables) == 0
