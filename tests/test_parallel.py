"""PettingZoo's parallel interface and registry."""

import warnings

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import carolus_env as ce
from carolus_env import carolus_magnus_v0


@pytest.mark.parametrize("players", [2, 3, 4])
def test_pettingzoos_tests_pass(players, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*the option 'options' is ignored")
        parallel_api_test(carolus_magnus_v0.parallel_env(players=players))
        parallel_seed_test(  # which samples without masks
            lambda: carolus_magnus_v0.parallel_env(players=players, illegal="forfeit")
        )


@pytest.mark.parametrize("players", [2, 3, 4])
def test_it_plays_the_games_of_the_aec_environment(players):
    there = carolus_magnus_v0.env(players=players)
    here = carolus_magnus_v0.parallel_env(players=players)
    assert here.action_spaces == {name: here.action_space(name) for name in here.possible_agents}
    assert set(here.observation_spaces) == set(here.possible_agents)
    there.reset(seed=5)
    obs, infos = here.reset(seed=5)
    random, nonsense = np.random.default_rng(5), 10_000
    while here.agents:
        mover = there.agent_selection
        assert {info["active_agent"] for info in infos.values()} == {mover}
        for agent in here.agents:
            for key, array in there.observe(agent).items():
                np.testing.assert_array_equal(obs[agent][key], array)
        action = int(random.choice(np.flatnonzero(obs[mover]["action_mask"])))
        there.step(action)
        actions = dict.fromkeys(here.agents, nonsense) | {mover: action}
        obs, *results, infos = here.step(actions)
        assert results == [there.rewards, there.terminations, there.truncations]
    assert sum(results[0].values()) == 0 and any(results[0].values())
    assert here.step({}) == ({}, {}, {}, {}, {})


def test_the_player_to_move_must_act_legally():
    env = carolus_magnus_v0.parallel_env()
    obs, infos = env.reset(seed=1)
    mover = infos["player_0"]["active_agent"]
    [other] = set(env.agents) - {mover}
    with pytest.raises(KeyError, match=rf"lack {mover}.* got those of \['{other}'\]"):
        env.step({other: 0})
    illegal = int(obs[mover]["action_mask"].argmin())
    with pytest.raises(ce.IllegalActionError):
        env.step({mover: illegal})
    env = carolus_magnus_v0.parallel_env(illegal="forfeit")
    env.reset(seed=1)
    _, rewards, _, _, infos = env.step({mover: illegal})
    assert rewards[mover] == -1 and infos[mover]["illegal"] and not env.agents


@pytest.mark.skipif(not hasattr(pettingzoo, "register"), reason="PettingZoo 1.26 has no registry")
def test_pettingzoo_finds_it_by_name():
    for kind, players in (("aec", 3), ("parallel", 4)):
        env = pettingzoo.make(kind, "carolus/CarolusMagnus-v0", players=players)
        env.reset(seed=1)
        assert env.possible_agents == [f"player_{seat}" for seat in range(players)]
