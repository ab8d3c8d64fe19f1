"""The PettingZoo environment keeps PettingZoo's promises, and those of its own page."""

import copy
import importlib
import pickle
import random
import re
import warnings

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test

from carolus_env import carolus_magnus_v0, engine
from carolus_env.drawing.text import board_text
from carolus_env.engine import IllegalActionError, observation
from carolus_env.engine.rules import ACTIONS, REASON_NAMES, Rules
from carolus_env.records import position, replay
from carolus_env.records.position import PositionError

CONFIGS = {
    "two": {},
    "three": {"players": 3},
    "four": {"players": 4},
    "deferred": {"players": 3, "crown_choice": "deferred"},
    "adjacent": {"players": 4, "partners": "adjacent"},
    "scarce": {"players": 2, "paladins_per_clan": 6, "max_rounds": 12},
    "abundant": {"players": 3, "paladins_per_clan": 200, "max_rounds": None},
    "short": {"players": 4, "max_rounds": 2, "crown_choice": "deferred"},
    "forfeit": {"illegal": "forfeit"},
    "uint8": {"players": 3, "observation": "uint8"},
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
both_envs = pytest.mark.parametrize(
    "make", [carolus_magnus_v0.env, carolus_magnus_v0.raw_env], ids=["env", "raw_env"]
)


def started(seed=1, **config):
    env = carolus_magnus_v0.env(**config)
    env.reset(seed=seed)
    return env


def is_over(env):
    return any(env.terminations.values()) or any(env.truncations.values())


def random_action(env, generator):
    return int(generator.choice(np.flatnonzero(env.last()[0]["action_mask"])))


def play(env, generator, decisions=10**9):
    """Play at random up to the end (before the dead steps) or for so many decisions."""
    while not is_over(env) and decisions > 0:
        env.step(random_action(env, generator))
        decisions -= 1
    return env


def course(env, generator):
    """Play to the end at random; every state on the way, as bytes."""
    states = [env.games.tobytes()]
    while not is_over(env):
        states.append(play(env, generator, 1).games.tobytes())
    return states


def illegal_action(env):
    return int(np.flatnonzero(env.last()[0]["action_mask"] == 0)[0])


# Of observations that are dicts, of masks all zero, of an option of `reset` that nobody knows.
WARNINGS_OF_API_TEST = (
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or",
    "Action mask numpy array is all zeros (no legal actions).",
    "reset: the option 'options' is ignored",
)


@every_config
def test_pettingzoos_api_and_seed_tests_pass_and_warn_of_nothing_new(config, capsys):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(carolus_magnus_v0.env(**config), num_cycles=400)
    said = {str(warning.message) for warning in caught}
    assert [text for text in said if not any(known in text for known in WARNINGS_OF_API_TEST)] == []
    assert any("the option 'options' is ignored" in text for text in said)
    assert "Passed API test" in capsys.readouterr().out
    seed_test(lambda: carolus_magnus_v0.env(**config), num_cycles=100)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_pettingzoos_state_test_passes(players):
    state_test = importlib.import_module("pettingzoo.test.state_test")
    env = carolus_magnus_v0.env(players=players, illegal="forfeit")  # it plays unmasked actions
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state_test.test_state_space(env)
        for seed in range(10):
            state_test.test_state(env, num_cycles=10, seed=seed)


@every_config
def test_at_every_step_the_player_who_decides_has_the_legal_set_and_nobody_else_a_mask(config):
    env, generator = started(3, **config), np.random.default_rng(3)
    spaces = [(env.observation_space(a), env.action_space(a)) for a in env.possible_agents]
    dtype = config.get("observation", "float32")
    for _ in range(250):
        games, over = env.games, is_over(env)
        for seat, agent in enumerate(env.possible_agents):
            assert env.observation_space(agent) is spaces[seat][0]
            assert env.action_space(agent) is spaces[seat][1]
            obs = env.observe(agent)
            assert spaces[seat][0].contains(obs)
            assert obs["action_mask"].dtype == np.int8
            legal = engine.legal_masks(games)[0] * (agent == env.agent_selection)
            np.testing.assert_array_equal(obs["action_mask"], legal)
            there = observation.observe(games, [seat], dtype=dtype)[0]
            np.testing.assert_array_equal(obs["observation"], there)
        assert env.last()[0]["action_mask"].any() != over
        assert env.state_space.contains(env.state())
        np.testing.assert_array_equal(env.state(), env.observe("player_0")["observation"])
        if over:
            break
        assert env.agent_selection == f"player_{games['player'][0]}"
        assert set(env.rewards.values()) == set(env._cumulative_rewards.values()) == {0.0}
        env.step(random_action(env, generator))


def test_what_is_given_away_is_a_copy():
    env = started()
    before = env.games.tobytes()
    env.observe("player_0")["observation"][:] = env.state()[:] = 1
    env.last()[0]["action_mask"][:] = 0
    games = env.games
    engine.step(games, engine.legal_masks(games).argmax(axis=1))
    assert env.last()[0]["action_mask"].any() and not env.state().all()
    assert env.games.tobytes() == before


@pytest.mark.parametrize("config", [CONFIGS[c] for c in ("two", "three", "four", "adjacent")])
def test_last_gives_every_agent_the_payoff_and_the_loser_a_negative_one(config):
    env, generator = carolus_magnus_v0.env(**config), np.random.default_rng(5)
    payoffs_seen = set()
    for seed in range(8):
        env.reset(seed=seed)
        calls = []
        for agent in env.agent_iter():
            _, reward, terminated, truncated, info = env.last()
            assert not truncated and info == {} and (terminated or reward == 0)
            if terminated:
                calls.append((agent, reward))
            env.step(None if terminated else random_action(env, generator))
        # When the game ends every agent is selected once more, in order, and then nobody is left.
        payoffs = engine.returns(env.games)[0].tolist()
        assert calls == list(zip(env.possible_agents, payoffs, strict=True))
        assert sum(payoffs) == pytest.approx(0)
        assert env.agents == [] and env.rewards == {} and env.infos == {}
        payoffs_seen |= set(enumerate(payoffs))
    least = -0.5 if env.rules.players == 3 else -1.0
    for seat in range(env.rules.players):  # everybody has won, and everybody has lost
        assert {(seat, 1.0), (seat, least)} <= payoffs_seen


@pytest.mark.parametrize("rounds", [1, 2, 100])
def test_a_finished_agent_takes_no_action_but_none(rounds):
    """A game that reaches max_rounds is truncated and worth nothing."""
    env, cut_off = play(started(max_rounds=rounds), np.random.default_rng(1)), rounds < 100
    with pytest.raises(ValueError, match="None"):
        env.step(0)
    for left in (["player_0", "player_1"], ["player_1"]):
        assert env.agents == left
        _, reward, terminated, truncated, _ = env.last()
        assert (reward == 0, terminated, truncated) == (cut_off, not cut_off, cut_off)
        env.step(None)
    assert env.agents == [] and (not cut_off or env.games["round"][0] == rounds)


@both_envs
def test_an_illegal_action_is_refused_with_the_legal_ones_and_the_game_goes_on(make):
    env, other = make(players=3), make(players=3)
    env.reset(seed=4)
    other.reset(seed=4)
    generator = np.random.default_rng(4)
    for _ in range(60):
        wrong, legal = illegal_action(env), np.flatnonzero(env.last()[0]["action_mask"])
        with pytest.raises(IllegalActionError) as caught:
            env.step(wrong)
        assert (caught.value.action, caught.value.legal) == (wrong, legal.tolist())
        said = rf"player {env.agent_selection[-1]} .* {wrong} \(.* {legal[0]}\b"
        assert re.search(said, str(caught.value))
        assert env.games.tobytes() == other.games.tobytes()
        assert env.infos == other.infos and env.rewards == other.rewards
        action = int(generator.choice(legal))
        env.step(action)
        other.step(action)
    assert env.record() == other.record()


@pytest.mark.parametrize("illegal", ["raise", "forfeit"])
def test_what_is_no_whole_number_is_no_action(illegal):
    env = started(illegal=illegal)
    before = env.games.tobytes()
    for action in (None, float("nan"), 3.0, "3", np.array([5])):
        with pytest.raises(TypeError, match=r"player_\d"):
            env.step(action)
        assert env.games.tobytes() == before and not is_over(env)


@pytest.mark.parametrize("action", [-1, ACTIONS, -(2**63), 2**63, 10**30, np.uint64(2**64 - 1)])
@pytest.mark.parametrize("neighbour", [0, ACTIONS - 1])
def test_numbers_that_are_no_action_at_all_are_illegal(action, neighbour):
    env, generator = started(5), np.random.default_rng(5)
    while not env.last()[0]["action_mask"][neighbour]:  # the first disc, the last placement
        env.step(random_action(env, generator))
    before = env.games.copy()
    with pytest.raises(IllegalActionError) as caught:
        env.step(action)
    assert caught.value.action == int(action)
    assert env.games.tobytes() == before.tobytes()
    env = carolus_magnus_v0.env(illegal="forfeit")
    env.reset(options={"position": position.to_dict(before[0])})
    env.step(action)
    assert is_over(env)


def test_who_plays_illegally_forfeits_and_the_others_share_the_win():
    for config, lost, won in (
        ({"players": 2}, -1.0, 1.0),
        ({"players": 3}, -0.5, 0.25),
        ({"players": 4}, -1.0, 1.0),
        ({"players": 4, "partners": "adjacent"}, -1.0, 1.0),
    ):
        env, generator = (
            carolus_magnus_v0.env(**config, illegal="forfeit"),
            np.random.default_rng(0),
        )
        team = [Rules(**config).team(seat) for seat in range(config["players"])]
        for seed, decisions in enumerate((0, 7, 30, 55, 80)):  # games in a row, in many phases
            env.reset(seed=seed)
            play(env, generator, decisions)
            offender, played = env.agent_selection, env.record()
            env.step(illegal_action(env))
            assert env.record() == played
            assert set(env.terminations.values()) == {True}
            assert not any(env.truncations.values())
            for seat, agent in enumerate(env.possible_agents):
                assert env.agent_selection == agent
                _, reward, _, _, info = env.last()
                assert reward == (lost if team[seat] == team[int(offender[-1])] else won)
                assert info == ({"illegal": True} if agent == offender else {})
                env.step(None)
            assert env.agents == []
        env.reset(seed=7)
        env.step(illegal_action(env))
        env.reset(seed=9)  # without the dead steps
        play(env, generator)
        assert REASON_NAMES[env.games["reason"][0]] in ("castles", "regions")
        assert all(info == {} for info in env.infos.values())


def test_the_board_is_rendered_as_text_where_that_is_asked_for():
    env = started(render_mode="ansi")
    for _ in range(3):
        assert env.render() == board_text(env.games[0])
        play(env, np.random.default_rng(1), 20)
    assert carolus_magnus_v0.env().metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    with pytest.warns(UserWarning, match="render_mode='ansi'"):
        assert started().render() is None


def test_reset_takes_territories_and_a_first_player():
    env = carolus_magnus_v0.env(players=4)
    territories = [4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]
    for seat in range(4):
        env.reset(seed=seat, options={"territories": territories, "first_player": seat})
        assert env.games["region_paladins"][0, :, :15].argmax(axis=0).tolist() == territories
        assert env.games["order"][0].tolist() == [(seat + k) % 4 for k in range(4)]
        assert env.record()["setup"] == {"territories": territories, "first_player": seat}


@every_config
def test_reset_starts_from_any_position_and_goes_on_as_the_game_would(config):
    env, generator = started(6, **config), np.random.default_rng(6)
    for decisions in (0, 3, 40, 10**9):  # up to one that is over
        play(env, generator, decisions)
        there = carolus_magnus_v0.env(**config)
        there.reset(options={"position": position.to_dict(env.games[0])})
        assert there.games.tobytes() == env.games.tobytes()
        for name in ("agent_selection", "rewards", "terminations", "truncations", "infos"):
            assert getattr(there, name) == getattr(env, name)
        np.testing.assert_equal(there.last(), env.last())
        here = copy.deepcopy(env)
        assert course(there, np.random.default_rng(1)) == course(here, np.random.default_rng(1))


def test_a_positions_dice_are_its_own_a_seeds_or_the_environments():
    given = position.to_dict(play(started(1), np.random.default_rng(1), 30).games[0])
    without = {key: value for key, value in given.items() if key != "generator"}

    def future(start, seed=None, env=None):
        env = env or carolus_magnus_v0.env()
        env.reset(seed=seed, options={"position": start})
        return course(env, np.random.default_rng(8))[-1]

    assert future(given) == future(given)
    assert future(given, seed=1) == future(given, seed=1) == future(without, seed=1)
    assert len({future(given), future(given, seed=1), future(given, seed=2)}) == 3
    env = started(1)  # without either, dice must not be the same in every game
    assert future(without, env=env) != future(without, env=env)


def test_a_refused_reset_leaves_the_game_as_it_was():
    env = play(started(), np.random.default_rng(1), 30)
    before, record, given = env.games.tobytes(), env.record(), position.to_dict(env.games[0])
    three = position.to_dict(engine.new_games(Rules(players=3))[0])
    lacking = {key: value for key, value in given.items() if key != "courts"}
    for options, error, named in (
        ({"territories": [0] * 15}, ValueError, "territories"),
        ({"first_player": 2}, ValueError, "first_player .*2"),
        ({"position": None}, PositionError, "None"),
        ({"position": lacking}, PositionError, "courts"),
        ({"position": three}, ValueError, r"Rules\(players=3.*Rules\(players=2"),
        ({"position": given, "first_player": 0}, ValueError, "position .*first_player"),
    ):
        for seed in (77, None):
            with pytest.raises(error, match=named):
                env.reset(seed=seed, options=options)
            assert env.games.tobytes() == before and env.record() == record
    assert is_over(play(env, np.random.default_rng(2)))
    env.reset()
    other = started()
    other.reset()
    assert env.games.tobytes() == other.games.tobytes(), "nor are the games after it others"


COPIES = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)), lambda env: env.clone()]


@both_envs
@pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle", "clone"])
@pytest.mark.parametrize("decisions", [0, 1, 45, 10**9])
def test_a_copy_has_the_same_future_and_is_independent(make, copied, decisions):
    env = make(players=3)
    env.reset(seed=8)
    twin = copied(play(env, np.random.default_rng(8), decisions))
    assert type(twin) is type(env)
    before = env.games.tobytes()
    assert twin.games.tobytes() == before
    future = course(twin, np.random.default_rng(1))
    assert env.games.tobytes() == before
    assert course(env, np.random.default_rng(1)) == future
    assert env.record() == twin.record()
    assert env.rewards == twin.rewards and env.infos == twin.infos
    env.reset()  # the games after this one are the same as well
    twin.reset()
    assert env.games.tobytes() == twin.games.tobytes()


@every_config
def test_a_seed_fixes_its_game_and_those_after_it_also_where_others_were_played(config):
    rules = Rules(**{k: v for k, v in config.items() if k not in ("illegal", "observation")})
    env, courses = started(42, **config), []
    for disturbance in range(2):
        random.seed(disturbance)
        np.random.seed(disturbance)  # noqa: NPY002 (what others may do)
        env.reset(seed=42)
        assert env.games.tobytes() == engine.new_games(rules, seed=42).tobytes()
        courses.append(course(env, np.random.default_rng(0)))
    assert courses[0] == courses[1]
    games = [[], []]
    for played in games:
        env = started(5, **config)
        for _ in range(6):
            played.append(env.games.tobytes())
            env.reset()
    assert games[0] == games[1] and len(set(games[0])) == 6


@every_config
def test_a_game_has_a_record_that_replays_to_its_end_but_none_from_a_position(config):
    env, generator = started(11, **config), np.random.default_rng(11)
    env.reset(options={"position": position.to_dict(env.games[0])})
    with pytest.raises(ValueError, match="from a position has no record"):
        env.record()
    env.reset(seed=11)
    for decisions in (0, 25, 10**9):
        play(env, generator, decisions)
        record = env.record()
        assert replay(record) == []
        assert (record["result"] is not None) == is_over(env)
        assert any("action" in event for event in record["events"]) == (decisions > 0)
    assert record["result"]["returns"] == list(env.rewards.values())


def test_nothing_can_be_done_before_the_first_reset():
    env = carolus_magnus_v0.env()
    for call in (lambda: env.step(5), lambda: env.observe("player_0"), env.state, env.last):
        with pytest.raises((AssertionError, AttributeError), match=r"before"):
            call()
    env = carolus_magnus_v0.raw_env(render_mode="ansi")
    parallel = carolus_magnus_v0.parallel_env()
    calls = (env.state, env.render, env.record, lambda: env.games, lambda: env.observe("player_0"))
    more = (env.last, lambda: env.step(5), lambda: parallel.step({"player_0": 0}))
    for call in (*calls, *more):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset first"):
            call()
    assert env._repr_svg_() is None
