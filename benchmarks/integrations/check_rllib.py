# requires: ray[rllib]==2.60.0 torch==2.13.0
# example: rllib_ppo.py
"""RLlib, new API stack: what reaches its learner, and self-play PPO from training to an agent."""

from __future__ import annotations

import json
import os
import re
import shutil
from itertools import pairwise
from typing import Any

import numpy as np

os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine is slow to start it
import ray
from checking import Checks, examples, play, run
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from carolus_env.integrations.rllib import CandidateRLModule, CarolusMultiAgentEnv

KINDS = [(players, turns) for players in (2, 3, 4) for turns in (False, True)]


def runner(players: int, turns: bool, games: int = 3, **options: Any) -> MultiAgentEnvRunner:
    """What plays for RLlib's algorithms, with an untrained network."""
    module = RLModuleSpec(CandidateRLModule if turns else ActionMaskingTorchRLModule)
    env_config = {"players": players, "turns": turns, **options}
    config = (
        PPOConfig()
        .environment(CarolusMultiAgentEnv, env_config=env_config)  # RLlib's own check is on
        .env_runners(num_env_runners=0, num_envs_per_env_runner=games)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={"all": module}))
        .debugging(seed=7)
    )
    return MultiAgentEnvRunner(config=config)


def decisions(episode: MultiAgentEpisode) -> list[tuple[str, int, bool]]:
    """Who decided what, in order, and whether it was legal."""
    found = []
    for step in range(len(episode)):
        (agent, action), *others = episode.get_actions(step).items()
        assert not others, "two agents acted at once"
        mask = episode.get_observations(step)[agent]["action_mask"]
        found.append((agent, int(action), bool(mask[action])))
    return found


def main() -> None:
    """All checks."""
    checks, (example,) = Checks("RLlib", ray.__version__), examples()
    for players, turns in KINDS:
        for _ in range(20):
            check_multiagent_environments(
                CarolusMultiAgentEnv({"players": players, "turns": turns})
            )
    checks.passed("RLlib's check of environments")

    repeated, sums, unpaid, won, illegal = [], [], 0, 0, 0
    for players, turns in KINDS:
        playing = runner(players, turns)
        for how in ({"random_actions": True}, {"explore": True}, {"explore": False}):
            for episode in playing.sample(num_episodes=3, **how):
                paid = [one.get_return() for one in episode.agent_episodes.values()]
                sums.append(sum(paid))
                unpaid += len(paid) != players
                won += any(paid)  # nobody is paid where all teams share the win
                made = decisions(episode)
                illegal += sum(not legal for _, _, legal in made)
                movers = [agent for agent, _, _ in made]
                repeated.append(any(a == b for a, b in pairwise(movers)))
    holds = not unpaid and won > len(sums) / 2 and np.allclose(sums, 0)
    checks.passed("rewards sum to zero", holds, f"{unpaid} games, {won} of {len(sums)} won: {sums}")
    checks.passed("several decisions in a row", all(repeated), "a game without")
    checks.passed("masks reach the policy", not illegal, f"{illegal} illegal actions")

    # Training cuts games into pieces; a decision whose reward comes later must not lose it.
    cutting, pieces = runner(3, False), []
    for _ in range(60):
        pieces += cutting.sample(num_timesteps=50)
    paid: dict[str, dict[str, float]] = {}
    learnt = sum(len(one) for piece in pieces for one in piece.agent_episodes.values())
    for piece in pieces:
        for agent, one in piece.agent_episodes.items():
            of_game = paid.setdefault(piece.id_, {})
            of_game[agent] = of_game.get(agent, 0.0) + float(np.sum(one.get_rewards()))
    ended = [sorted(paid[piece.id_].values()) for piece in pieces if piece.is_terminated]
    checks.passed(
        "rewards of games in pieces",
        len(ended) > 5 and all(np.allclose(game, (-0.5, -0.5, 1)) for game in ended),
        f"got {ended}",
    )
    played = sum(len(piece) for piece in pieces)
    lost = played - learnt
    checks.passed("decisions in pieces", lost <= 9, f"{lost} of {played} are not learnt from")

    games = [
        [decisions(episode) for episode in runner(4, turns).sample(num_episodes=3, explore=True)]
        for turns in (False, False, True, True)
    ]
    checks.passed("seeds", games[0] == games[1] and games[2] == games[3], "another game")
    cut_off = runner(2, False, max_rounds=2).sample(num_episodes=3)
    truncated = all(game.is_truncated and not game.is_terminated for game in cut_off)
    checks.passed("games cut off are truncated", truncated, "terminated")
    checks.passed("players", result="2, 3, 4")

    for players in (3, 4):
        words = ["--players", players, "--iterations", 1, "--batch", 2048, "--games", 20]
        run(example, *words, "--out", f"of_{players}")
    told = []
    for name, words in (
        ("single decisions", ["--decisions", "--iterations", 5]),
        ("whole turns, untrained", ["--iterations", 0]),
        ("whole turns", ["--iterations", 5]),
    ):
        shutil.rmtree("rllib_ppo", ignore_errors=True)
        ran = run(example, *words)
        rates = dict(re.findall(r"against (\w+): ([\d.]+)%", ran.text))
        told.append((name, {opponent: float(rate) for opponent, rate in rates.items()}))
    (_, single), (_, untrained), (_, turns) = told
    holds = single["greedy"] > 80 and turns["planner"] > untrained["planner"] + 5
    checks.passed(
        "trains",
        holds,
        json.dumps(told),
        result=f"41k single decisions: {single['greedy']:.0f} % against greedy; "
        f"41k discs, crowns and turns: {turns['planner']:.0f} % against planner, "
        f"untrained {untrained['planner']:.0f} %",
    )
    rate = play(f"{example}:Trained", "greedy", 200)
    checks.passed("plays in evaluate", result=f"{rate} against greedy")
    checks.report(
        limits="slow: a few hundred decisions a second on a core, most of it in RLlib; "
        "checkpoints are pickles; its OpenSpielEnv has no masks",
        lines=12,
    )


if __name__ == "__main__":
    main()
