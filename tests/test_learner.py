"""One learner a game: it gets what its games pay, losses too, whoever makes the last move."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from strategies import Watcher, every_number

from carolus_env import bots, engine
from carolus_env.bots import CompiledAgent
from carolus_env.bots.compiled import Entries
from carolus_env.engine import IllegalActionError, observation
from carolus_env.engine.chance import new_streams
from carolus_env.engine.kernels import legal
from carolus_env.engine.rules import BY_FORFEIT, Rules
from carolus_env.envs import gym, sb3
from carolus_env.envs.learner import LearnerGames
from carolus_env.system.compiler import kernel

GREEDY = bots.make("greedy")


def learners(players=2, n=16, opponents="random", seed=1, **options):
    rules = options.pop("rules", Rules(players))
    return LearnerGames(rules, n, opponents, seed=seed, **options)


def go_on(games, actions):
    ended = games.step(actions)
    games.restart(ended.rows)
    return ended


class Plain(bots.Agent):
    """A bot asked for each decision, whatever else it can do."""

    def __init__(self, name):
        self.bot = bots.make(name)

    def act(self, states, generators):
        return self.bot.act(states, generators)


class RandomLearner:
    """Random decisions for a batch of learners, each game's from a stream of its own."""

    def __init__(self, n, seed=0):
        self.streams = new_streams(seed, n)

    def __call__(self, games):
        return engine.random_actions(games.states, self.streams)


@every_number
def test_a_game_waits_for_its_learner_whose_seat_goes_round_and_says_what_it_paid(players):
    seed, n = 11, 16
    games, learner = learners(players, n=n, seed=seed), RandomLearner(n)
    ended, ends = np.zeros(n, int), []
    while ended.min() < 2 * players:
        np.testing.assert_array_equal(games.seats, (seed + np.arange(n) + ended) % players)
        assert (games.states["player"] == games.seats).all()
        assert games.masks().any(axis=1).all()
        np.testing.assert_array_equal(games.masks(), engine.legal_masks(games.states))
        obs = games.observations(np.empty((n, observation.length(players)), np.float32))
        wanted = observation.observe(games.states, games.seats, dtype=np.float32)
        np.testing.assert_array_equal(obs, wanted)
        end = go_on(games, learner(games))
        assert engine.is_over(end.states).all() and (np.diff(end.rows) > 0).all()
        np.testing.assert_array_equal(end.seats, (seed + end.rows + ended[end.rows]) % players)
        np.testing.assert_array_equal(end.payoffs, engine.returns(end.states))
        own = [payoffs[seat] for payoffs, seat in zip(end.payoffs, end.seats, strict=True)]
        np.testing.assert_array_equal(end.learner_payoffs, own)
        ended[end.rows] += 1
        ends.append((end.states, end.states.tobytes()))
    for last, before in ends:
        assert last.tobytes() == before, "games that go on must not reach what is noted"


@every_number
def test_a_game_that_is_over_waits_for_its_restart(players):
    games, learner = learners(players), RandomLearner(16)
    while not len((end := games.step(learner(games))).rows):
        pass
    rows, seats, before = end.rows, games.seats.copy(), end.states.tobytes()
    assert games.states[rows].tobytes() == before
    with pytest.raises(ValueError, match="is over: no action can be played"):
        games.step(games.masks().argmax(axis=1))
    others = np.setdiff1d(np.arange(16), rows)[::-1]
    games.step(games.masks()[others].argmax(axis=1), rows=others)
    assert games.states[rows].tobytes() == before
    games.restart(rows)
    assert (games.states["round"][rows] <= 1).all()
    np.testing.assert_array_equal(games.seats[rows], (seats[rows] + 1) % players)
    assert (games.states["player"] == games.seats)[rows].all()
    before = games.states.tobytes()
    games.restart(rows[:0])
    assert games.states.tobytes() == before


@every_number
def test_opponents_sit_clockwise_from_the_learner(players):
    for seat in range(players):
        opponents, everywhere = [Watcher() for _ in range(players - 1)], Watcher()
        for given in (opponents, everywhere):
            games, learner = learners(players, 4, given, seat=seat), RandomLearner(4)
            for _ in range(30):
                go_on(games, learner(games))
        wanted = [{(seat + 1 + k) % players} for k in range(players - 1)]
        assert [set(opponent.shown("player")) for opponent in opponents] == wanted
        assert set(everywhere.shown("player")) == set(range(players)) - {seat}


@every_number
def test_a_game_is_that_of_its_seed_and_of_everybodys_decisions(players):
    """Row 0 played once more, with the engine alone."""
    games = learners(players, n=3, opponents="greedy", seed=20, seat=1)
    alone = engine.new_games(Rules(players), seed=20)
    bot, stream = bots.make("greedy"), new_streams(20, 1)
    for _ in range(2000):
        while alone["player"][0] != 1 or engine.is_over(alone)[0]:
            if engine.is_over(alone)[0]:
                alone = engine.next_games(alone)
            else:
                engine.step(alone, bot.act(alone, stream))
        assert games.states[:1].tobytes() == alone.tobytes()
        action = engine.legal_masks(alone).argmax(axis=1)
        engine.step(alone, action)
        go_on(games, games.masks().argmax(axis=1))


@every_number
@pytest.mark.parametrize("names", ["random", "greedy", "random greedy random"])
def test_compiled_opponents_play_as_they_do_when_each_decision_is_asked_for(
    players, names, monkeypatch
):
    """Bit for bit, also where they sit beside others that are not compiled."""
    asked = names.split()[: players - 1]
    tables = [asked, [Plain(name) for name in asked], [Plain(asked[0]), *asked[1:]]]
    every = [learners(players, opponents=opponents, seed=3) for opponents in tables]
    learner, ended = RandomLearner(16), 0
    for _ in range(250):
        actions = learner(every[0])
        ends = [games.step(actions) for games in every]
        for end in ends[1:]:
            np.testing.assert_array_equal(end.rows, ends[0].rows)
            assert end.states.tobytes() == ends[0].states.tobytes()
            np.testing.assert_array_equal(end.payoffs, ends[0].payoffs)
        for games in every:
            games.restart(ends[0].rows)
            assert games.states.tobytes() == every[0].states.tobytes()
            np.testing.assert_array_equal(games._generators, every[0]._generators)
        ended += len(ends[0].rows)
    assert ended > 20
    monkeypatch.setattr(CompiledAgent, "act", None)  # they are not asked for single decisions
    for _ in range(20):
        go_on(every[0], learner(every[0]))


@every_number
def test_games_and_rows_alone_may_start_anew_each_from_a_seed_of_its_own(players):
    games, learner = learners(players, n=6, seed=9), RandomLearner(6)
    first = games.states.tobytes()
    for _ in range(40):
        go_on(games, learner(games))
    before, rows = games.states.copy(), np.array([4, 1])
    games.reset(np.array([70, 71], np.uint64), rows)
    fresh = learners(players, n=2, seed=70)
    assert games.states[rows].tobytes() == fresh.states.tobytes()
    np.testing.assert_array_equal(games.seats[rows], fresh.seats)
    others = np.setdiff1d(np.arange(6), rows)
    assert games.states[others].tobytes() == before[others].tobytes()
    for _ in range(60):
        games.restart(games.step(games.masks().argmax(axis=1)[rows], rows).rows)
        go_on(fresh, fresh.masks().argmax(axis=1))
        assert games.states[rows].tobytes() == fresh.states.tobytes()
    games.reset(9)
    again = learners(players, n=6, seed=9)
    for _ in range(60):
        assert games.states.tobytes() == again.states.tobytes()
        for one in (games, again):
            go_on(one, one.masks().argmax(axis=1))
    games.reset(10)
    unseeded = (learners(players, n=6, seed=None).states.tobytes() for _ in range(2))
    assert len({first, games.states.tobytes(), *unseeded}) == 4


@every_number
def test_an_illegal_action_forfeits_where_it_is_asked_to(players):
    games, learner = learners(players, n=6), RandomLearner(6)
    for _ in range(20):
        go_on(games, learner(games))
    rows, actions = np.array([5, 4, 0, 3, 1]), learner(games)
    actions[4], actions[1] = 95, games.masks()[1].argmin()
    before = games.states.copy()
    with pytest.raises(IllegalActionError, match=r"^game 4: player") as caught:
        games.step(actions[rows], rows)
    assert caught.value.legal == np.flatnonzero(games.masks()[4]).tolist()
    with pytest.raises(TypeError, match="actions"):
        games.step(np.full(6, np.nan))
    with pytest.raises(ValueError, match="one a game"):
        games.step(actions[:5])
    assert games.states.tobytes() == before.tobytes()
    end = games.step(actions[rows], rows, forfeits=True)
    forfeited = end.states["reason"] == BY_FORFEIT
    assert end.rows[forfeited].tolist() == [1, 4]
    changed = [row for row in range(6) if games.states[row].tobytes() != before[row].tobytes()]
    assert changed == sorted(rows)
    assert (end.learner_payoffs[forfeited] == (-0.5 if players == 3 else -1)).all()
    assert np.allclose(end.payoffs.sum(axis=1), 0)


class Wrong(bots.Agent):
    name = "wrong"

    def act(self, states, generators):
        return np.full(len(states), 94)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"opponents": "gredy"}, "'gredy'"),
        ({"players": 3, "seat": -1}, "seat .* from 0 to 2, got -1"),
        ({"players": 3, "seat": 3}, "seat .* from 0 to 2, got 3"),
        ({"n": 0}, "n, .*, got 0"),
        ({"n": -1}, "n, .*, got -1"),
        ({"opponents": []}, "must be one agent, got a list of 0"),
        ({"opponents": ["random"] * 2}, "must be one agent, got a list of 2"),
        ({"players": 3, "opponents": ["random"] * 3}, "or a list of 2.*, got a list of 3"),
        ({"players": 4, "opponents": ["random"] * 2}, "or a list of 3.*, got a list of 2"),
        ({"opponents": Wrong()}, "cannot|illegal|may"),
        ({"opponents": bots.Checked(Wrong())}, "agent 'wrong': answered action 94"),
    ],
)
def test_impossible_games_and_opponents_are_refused(options, named):
    with pytest.raises(ValueError, match=named):
        learners(**options)


@kernel
def _choose_illegally(s, rest, bits, context):
    return (94 if s["round"] > 0 else legal.random_action(legal.legal_set(s), bits)), 0, bits


class CompiledWrong(CompiledAgent):
    name = "compiled and wrong"
    entries = Entries.of(_choose_illegally)


@pytest.mark.parametrize("opponents", [CompiledWrong(), [CompiledWrong(), Plain("random")]])
def test_a_users_compiled_agent_that_plays_illegally_is_an_error_in_every_environment(opponents):
    several = isinstance(opponents, list)
    rules, options = Rules(3 if several else 2), {"opponents": opponents}
    with pytest.raises(bots.AgentError, match=r"compiled and wrong.*answered action 94"):
        games, learner = LearnerGames(rules, 4, **options, seed=1), RandomLearner(4)
        while True:
            go_on(games, learner(games))
    env = gym.CarolusEnv(rules.players, **options)
    with pytest.raises(bots.AgentError, match=r"compiled and wrong.*answered action 94"):
        env.reset(seed=1)
        while True:
            env.step(int(env.action_masks().argmax()))
    assert isinstance(LearnerGames(Rules(), 1, bots.make("greedy")).agents[0], type(GREEDY))


def vec_env(players=2, n=16, opponents="random", seed=1, **options):
    sb3 = pytest.importorskip("carolus_env.envs.sb3")
    return sb3.CarolusVecEnv(Rules(players), n, opponents, seed=seed, **options)


@every_number
def test_the_learner_is_paid_what_its_games_pay_wins_and_losses(players):
    """Counted anew from the last positions; equal players win equally often on every seat."""
    env, learner = vec_env(players, n=128), RandomLearner(128)
    env.reset()
    payoffs = [[] for _ in range(players)]
    while sum(map(len, payoffs)) < 1000:
        _, rewards, dones, _ = env.step(learner(env.games))
        assert (rewards[~dones] == 0).all()
        assert np.flatnonzero(dones).tolist() == env.ended.rows.tolist()
        ended = env.ended
        for row, state, seat in zip(ended.rows, ended.states, ended.seats, strict=True):
            payoffs[seat].append(engine.returns(state.reshape(1))[0, seat])
            assert rewards[row] == pytest.approx(payoffs[seat][-1])
    fair, least = (1 / 3, -0.5) if players == 3 else (1 / 2, -1.0)
    for mine in payoffs:
        assert set(mine) >= {1.0, least}
        assert np.mean(np.array(mine) == 1.0) == pytest.approx(fair, abs=0.13)


def test_masks_come_as_sb3_contrib_asks_for_them_and_nothing_given_changes_later():
    pytest.importorskip("sb3_contrib")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    env, learner = vec_env(3), RandomLearner(16)
    obs = env.reset()
    copies = []
    assert is_masking_supported(env)
    for _ in range(50):
        masks = get_action_masks(env)
        np.testing.assert_array_equal(masks, engine.legal_masks(env.games.states))
        np.testing.assert_array_equal(env.action_masks(), masks)
        copies += [(given, given.copy()) for given in (masks, obs)]
        obs, rewards, dones, _ = env.step(learner(env.games))
        assert all(env.observation_space.contains(row) for row in obs)
        assert rewards.dtype == np.float32 and dones.dtype == np.bool_
    for given, copied in copies:
        np.testing.assert_array_equal(given, copied)
    with pytest.raises(AttributeError, match="no method 'nonsense'"):
        env.env_method("nonsense")
    with pytest.raises(ValueError, match="the games share 'lengths'"):
        env.set_attr("lengths", np.zeros(16), indices=1)
    assert env.get_attr("num_envs", indices=[0, 2]) == [16, 16]
    now = engine.legal_masks(env.games.states)
    np.testing.assert_array_equal(np.stack(env.env_method("action_masks")), now)
    env.env_method("action_masks").clear()  # the list is the caller's
    for rows in (3, [2, 7], None):
        wanted = now if rows is None else now[rows if isinstance(rows, list) else [rows]]
        np.testing.assert_array_equal(env.env_method("action_masks", indices=rows), wanted)


@pytest.mark.parametrize("turns", [False, True])
def test_sb3_gets_pictures_of_all_games(turns):
    pytest.importorskip("resvg")
    make = partial(pytest.importorskip("carolus_env.envs.sb3").CarolusVecEnv, turns=turns)
    with pytest.raises(ValueError, match=r"render_mode must be .*, got 'human'"):
        make(Rules(), 2, render_mode="human")
    env = make(Rules(), 2, "greedy", seed=1, render_mode="rgb_array")
    env.reset()
    first = env.render()
    assert first.dtype == np.uint8 and first.ndim == 3
    env.step(env.action_masks().argmax(axis=1))
    assert not np.array_equal(first, env.render())
    assert [picture.shape[2] for picture in env.get_images()] == [3, 3]


@pytest.mark.parametrize("turns", [False, True])
@every_number
def test_sb3_plays_the_games_of_gymnasium_with_the_same_seed(players, turns):
    """Some end in the opponents' moves, some are cut off."""
    sb3 = pytest.importorskip("carolus_env.envs.sb3")
    n, rounds = 8, {2: 9, 3: 6, 4: 4}[players] if turns else 9
    ours = sb3.CarolusVecEnv(Rules(players, max_rounds=rounds), n, "greedy", turns=turns, seed=5)
    theirs = gym.CarolusVectorEnv(
        n, players, "greedy", turns=turns, max_rounds=rounds, autoreset_mode="SameStep"
    )
    for seed in (5, None, 9, None):
        if seed == 9:
            assert ours.seed(9) == [9 + i for i in range(n)]
        same = theirs.reset(seed=seed)[0]
        np.testing.assert_array_equal(ours.reset(), same)
    random, lengths, ends = np.random.default_rng(1), np.zeros(n, int), [0, 0]
    for _ in range(900 // (1 + 7 * turns)):
        masks = ours.action_masks()
        actions = np.array([random.choice(np.flatnonzero(mask)) for mask in masks])
        obs, rewards, dones, infos = ours.step(actions)
        same, paid, terminated, truncated, their_infos = theirs.step(actions)
        np.testing.assert_array_equal(obs, same)
        np.testing.assert_array_equal(rewards, paid)
        np.testing.assert_array_equal(dones, terminated | truncated)
        assert not rewards[truncated].any(), "a game cut off is worth nothing"
        assert len({*map(id, infos)}) == n
        lengths += 1
        for row, info in enumerate(infos):
            if not dones[row]:
                assert info == {}
                continue
            last = info.pop("terminal_observation")
            np.testing.assert_array_equal(last, their_infos["final_obs"][row])
            episode = info.pop("episode")
            assert (episode["r"], episode["l"]) == (pytest.approx(rewards[row]), lengths[row])
            assert info == {}, "what is cut off is worth nothing: not continued by a value"
            ends[int(truncated[row])] += 1
        lengths[dones] = 0
    assert min(ends) > 3
    ours.set_options({"first_player": 1})
    np.testing.assert_array_equal(ours.reset(), theirs.reset(options={"first_player": 1})[0])


class Failing(bots.Agent):
    """Takes the first legal action, and fails once when it has been told how."""

    error = None

    def act(self, states, generators):
        if error := self.error:
            self.error = None
            raise error("no idea")
        return engine.legal_masks(states).argmax(axis=1)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("turns", [False, True])
def test_a_game_whose_opponent_failed_waits_for_a_reset(turns, error):
    for make in (
        partial(gym.CarolusEnv, 2),
        partial(gym.CarolusVectorEnv, 2, 2),
        partial(sb3.CarolusVecEnv, Rules(), 2),
    ):
        opponent = Failing()
        env = make(opponent, turns=turns)
        env.reset()  # in which opponents may decide, too
        opponent.error = error
        with pytest.raises(error):
            while True:
                env.step(env.action_masks().argmax(axis=-1))
        with pytest.raises(gymnasium.error.ResetNeeded, match="an opponent failed in"):
            env.step(env.action_masks().argmax(axis=-1))
        env.reset()
        env.step(env.action_masks().argmax(axis=-1))
