"""Self-play PPO with RLlib: one policy with action masks in every seat.

    python rllib_ppo.py                                      # whole turns, two players
    carolus evaluate rllib_ppo.py:Trained greedy             # plays what it learnt
    python rllib_ppo.py --decisions --players 3              # single decisions

Needs ``ray[rllib]`` and ``torch``. The checkpoint is the folder ``rllib_ppo``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from carolus_env.integrations.rllib import CandidateRLModule, CarolusMultiAgentEnv, RLlibAgent

FOLDER = Path("rllib_ppo")
POLICY = "shared"


class Trained(RLlibAgent):
    """The trained network as an agent."""

    def __init__(self) -> None:
        env_config = json.loads((FOLDER / "env_config.json").read_text())
        super().__init__(FOLDER, POLICY, env_config["players"], env_config["turns"])


def configuration(env_config: dict[str, Any], args: argparse.Namespace) -> PPOConfig:
    """Configure PPO with one policy for all seats."""
    if env_config["turns"]:
        module = RLModuleSpec(CandidateRLModule)
    else:
        model = {"fcnet_hiddens": [256, 256], "fcnet_activation": "relu", "head_fcnet_hiddens": []}
        module = RLModuleSpec(ActionMaskingTorchRLModule, model_config=model)
    return (
        PPOConfig()
        .environment(CarolusMultiAgentEnv, env_config=env_config)
        .env_runners(num_env_runners=args.runners, num_envs_per_env_runner=32)
        .multi_agent(policies={POLICY}, policy_mapping_fn=lambda agent, episode, **kwargs: POLICY)
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs={POLICY: module}))
        .training(
            train_batch_size_per_learner=args.batch,
            minibatch_size=1024,
            num_epochs=4,
            lr=1e-3,
            gamma=0.999,  # payoffs come at the end
            lambda_=0.95,
            entropy_coeff=0.01,
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .debugging(seed=args.seed)
    )


def main() -> None:
    """Train and save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--players", type=int, default=2, help="2, 3 or 4")
    parser.add_argument("--decisions", action="store_true", help="single decisions, no whole turns")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8192, help="decisions of an iteration")
    parser.add_argument("--runners", type=int, default=0, help="processes that play; 0: this one")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    ray.init(include_dashboard=False, logging_level="warning")
    env_config = {"players": args.players, "turns": not args.decisions}
    algorithm = configuration(env_config, args).build_algo()
    for iteration in range(args.iterations):
        result = algorithm.train()
        learner, played = result["learners"][POLICY], result["env_runners"]
        decisions = played["num_env_steps_sampled_lifetime"]
        print(
            f"iteration {iteration + 1}: {decisions:,.0f} decisions, "
            f"{played['episode_len_mean']:.0f} a game, entropy {learner['entropy']:.2f}, "
            f"{result['time_total_s']:.0f} s",
            flush=True,
        )
    algorithm.save_to_path(FOLDER.absolute())  # `Algorithm.from_checkpoint` continues from there
    (FOLDER / "env_config.json").write_text(json.dumps(env_config))
    algorithm.stop()


if __name__ == "__main__":
    main()
