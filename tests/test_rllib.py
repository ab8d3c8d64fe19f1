"""The environment and the agent for RLlib, with stand-ins for the few classes of Ray that they use.

`make integrations` runs them in RLlib itself.
"""

from itertools import pairwise
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import stand_in

from carolus_env import IllegalActionError, carolus_magnus_v0, engine, new_games
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import Rules

torch = pytest.importorskip("torch")

RAY = {
    "ray.rllib.core.columns": {"Columns": SimpleNamespace(OBS="obs", ACTION_DIST_INPUTS="logits")},
    "ray.rllib.core.rl_module.apis": {"ValueFunctionAPI": type("ValueFunctionAPI", (), {})},
    "ray.rllib.core.rl_module.rl_module": {"RLModule": type("RLModule", (), {})},
    "ray.rllib.core.rl_module.torch": {"TorchRLModule": torch.nn.Module},
    "ray.rllib.env.multi_agent_env": {"MultiAgentEnv": gymnasium.Env},
}
rllib = stand_in.load("carolus_env.integrations.rllib", RAY)


def play(env, seed):
    """One game of legal samples: who acted, and what each was paid."""
    movers, paid = [], dict.fromkeys(env.possible_agents, 0.0)
    obs, infos = env.reset(seed=seed)
    for space in env._samples.values():
        space.seed(seed)
    ends = {"__all__": False}
    while not ends["__all__"]:
        (mover,) = obs
        assert infos.keys() == {mover}
        assert env.observation_spaces[mover].contains(obs[mover])
        action = env.get_action_space(mover).sample()
        assert obs[mover]["action_mask"][action] == 1
        movers.append((mover, int(action)))
        obs, rewards, terminated, truncated, infos = env.step({mover: action})
        assert mover in rewards
        for agent, reward in rewards.items():
            paid[agent] += reward
        ends = {name: flag or truncated[name] for name, flag in terminated.items()}
    assert obs.keys() == rewards.keys() == infos.keys() == set(env.possible_agents)
    for agent, last in obs.items():
        assert env.observation_spaces[agent].contains(last)
        assert not last["action_mask"].any()
    return movers, paid


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("turns", [False, True])
def test_everyone_is_paid_and_players_decide_several_times_in_a_row(players, turns):
    env = rllib.CarolusMultiAgentEnv({"players": players, "turns": turns})
    movers, paid = play(env, 3)
    assert sum(paid.values()) == 0 and len(paid) == players and any(paid.values())
    in_a_row = [a[0] == b[0] for a, b in pairwise(movers)]
    assert any(in_a_row) and not all(in_a_row)
    assert play(env, 3) == (movers, paid)
    assert play(env, 4) != (movers, paid)


def test_games_are_those_of_pettingzoo():
    env, aec = rllib.CarolusMultiAgentEnv({"players": 3}), carolus_magnus_v0.env(players=3)
    obs, _ = env.reset(seed=5)
    aec.reset(seed=5)
    rewards: dict = {}
    for step in range(400):
        for agent, observed in obs.items():
            expected = aec.observe(agent)
            np.testing.assert_array_equal(observed["observations"], expected["observation"])
            np.testing.assert_array_equal(observed["action_mask"], expected["action_mask"])
        if aec.terminations[agent]:
            assert rewards == aec.rewards
            return
        assert obs.keys() == {aec.agent_selection}
        legal = np.flatnonzero(expected["action_mask"])
        action = int(legal[step % len(legal)])
        aec.step(action)
        obs, rewards, *_ = env.step({agent: action})
    pytest.fail("the game did not end")


def test_an_illegal_action_is_an_error_and_a_game_that_is_cut_off_is_truncated():
    env = rllib.CarolusMultiAgentEnv({"max_rounds": 1})
    obs, truncated = env.reset(seed=1)[0], {"__all__": False}
    while not truncated["__all__"]:
        ((mover, observed),) = obs.items()
        with pytest.raises(IllegalActionError):
            env.step({mover: int(np.argmin(observed["action_mask"]))})
        action = env.get_action_space(mover).sample()
        obs, rewards, terminated, truncated, _ = env.step({mover: action})
    assert (terminated, truncated) == ({"__all__": False}, {"__all__": True})
    assert set(rewards.values()) == {0}
    with pytest.raises(ValueError, match="over, reset it"):
        env.step({"player_0": 0})


def test_games_start_where_options_say_and_what_is_impossible_is_refused():
    env, aec = rllib.CarolusMultiAgentEnv({"players": 3}), carolus_magnus_v0.raw_env(players=3)
    for first in range(3):
        options = {"first_player": first}
        env.reset(seed=8, options=options)
        aec.reset(seed=8, options=options)
        assert env.aec.games.tobytes() == aec.games.tobytes()
        env.reset(options=options)
        assert env.aec.games.tobytes() != aec.games.tobytes(), "the stream goes on"
    with pytest.raises(ValueError, match=r"unknown .*'first'"):
        env.reset(options={"first": 1})
    for config, text in (
        ({"player": 2}, "env_config: unknown .*'player'"),
        ({"turns": {"candidates": 3}}, "candidates must be"),
        ({"players": 5}, "players"),
    ):
        with pytest.raises(ValueError, match=text):
            rllib.CarolusMultiAgentEnv(config)
    env = rllib.CarolusMultiAgentEnv({"players": 3})
    (mover,) = env.reset(seed=1)[0]
    [other, _] = [agent for agent in env.agents if agent != mover]
    with pytest.raises(ValueError, match=f"{mover} alone is to move, got actions of"):
        env.step({other: 0})
    with pytest.raises(ValueError, match="no checkpoint of RLlib with a policy 'p'"):
        rllib.RLlibAgent("nowhere", "p")


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_an_agent_plays_the_likeliest_action_of_its_module(turns, players, tmp_path, monkeypatch):
    class Module:
        def forward_inference(self, batch):  # prefers high numbers, masks what is illegal
            mask = batch["obs"]["action_mask"]
            return {"logits": torch.arange(mask.shape[1]) * mask - (1 - mask)}

    folder = tmp_path / "learner_group/learner/rl_module/shared"
    folder.mkdir(parents=True)
    read = {folder: Module()}
    monkeypatch.setattr(rllib.RLModule, "from_checkpoint", read.__getitem__, raising=False)
    agent = rllib.RLlibAgent(tmp_path, "shared", players, turns)
    states = new_games(Rules(players), 5, seed=1)
    for _ in range(30):
        actions = agent.act(states, new_streams(1, len(states)))
        assert engine.are_legal(states, actions).all()
        if not turns:
            masks = engine.legal_masks(states)
            np.testing.assert_array_equal(actions, 94 - masks[:, ::-1].argmax(axis=1))
        engine.step(states, actions)
        states = states[~engine.is_over(states)]


def test_the_network_for_turns_scores_candidates_alike_and_no_others():
    env = rllib.CarolusMultiAgentEnv({"turns": True})
    module = rllib.CandidateRLModule()
    module.observation_space, module.model_config = env.observation_spaces["player_0"], {}
    module.setup()
    rows, mask = torch.randn(4, 16, 113), torch.zeros(4, 16)
    mask[:, :6] = 1
    batch = {"obs": {"observations": rows, "action_mask": mask}}
    logits, values = module._forward(batch)["logits"], module.compute_values(batch)
    assert (logits[:, 6:] == rllib.LOWEST).all() and values.shape == (4,)
    order = torch.tensor([3, 1, 0, 5, 2, 4, *range(6, 16)])
    batch["obs"]["observations"] = rows[:, order]
    torch.testing.assert_close(module._forward(batch)["logits"], logits[:, order])
    torch.testing.assert_close(module.compute_values(batch), values)
