"""Carolus Magnus for reinforcement learning: exact rules, masks, chance, batches, agents.

The batched engine is at the top level (`Rules`, `new_games`, `legal_masks`, `step`, `observe`,
`returns`, ...); environments are modules of their own: `carolus_env.carolus_magnus_v0`
(PettingZoo) and `carolus_env.envs.sb3` (Stable-Baselines3, extra ``train``).
"""

from carolus_env._version import __version__
from carolus_env.bots import Agent, make
from carolus_env.engine import (
    IllegalActionError,
    Outcomes,
    apply_roll,
    chance_outcomes,
    draw_faces,
    is_over,
    legal_actions,
    legal_masks,
    new_games,
    random_actions,
    returns,
    roll,
    roll_due,
    rules_of,
    step,
    streams,
)
from carolus_env.observation import observe
from carolus_env.position import PositionError
from carolus_env.rules import ACTIONS, Rules, action_text
from carolus_env.state import STATE, from_bytes, to_bytes

__all__ = [
    "ACTIONS",
    "STATE",
    "Agent",
    "IllegalActionError",
    "Outcomes",
    "PositionError",
    "Rules",
    "__version__",
    "action_text",
    "apply_roll",
    "chance_outcomes",
    "draw_faces",
    "from_bytes",
    "is_over",
    "legal_actions",
    "legal_masks",
    "make",
    "new_games",
    "observe",
    "random_actions",
    "returns",
    "roll",
    "roll_due",
    "rules_of",
    "step",
    "streams",
    "to_bytes",
]
