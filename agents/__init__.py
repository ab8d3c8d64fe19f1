"""Agents that learn, and play through torch. Importing this registers them by spec string.

``ppo:PATH``, e.g. ``ppo:runs/first/best``, plays a saved policy (agents/policy.py). Torch is
imported when such an agent is made, not before.
"""

from __future__ import annotations

from carolus_env.bots import Agent, register


def _make_ppo(argument: str) -> Agent:
    import torch

    from agents.policy import load_agent

    torch.set_num_threads(1)  # small networks on small batches: threads cost more than they give
    return load_agent(argument)


register("ppo", _make_ppo, "a trained policy: ppo:runs/NAME/best[,temperature=T]")
