"""Carolus Magnus for reinforcement learning: exact rules, masks, chance, batches, agents.

The batched engine is at the top level (`Rules`, `new_games`, `legal_masks`, `step`, `observe`,
`returns`, ...); environments are modules of their own: `carolus_env.carolus_magnus_v0`
(PettingZoo), `carolus_env.envs.gym` (Gymnasium's ``CarolusMagnus-v0``, and of whole turns
``CarolusMagnusTurns-v0``) and `carolus_env.envs.sb3` (Stable-Baselines3, extra ``sb3``).
"""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 (pip says it too, but a clone runs without pip)
    raise ImportError(
        f"Carolus needs Python 3.11 or newer; this is Python {sys.version.split()[0]}"
    )
if sys.platform == "win32":
    raise ImportError("Carolus needs Linux or macOS; on Windows it runs in WSL")
if not Path(__file__).parent.is_dir():
    raise ImportError(f"Carolus must be installed, not imported from an archive: {__file__}")

import gymnasium
import pettingzoo

from carolus_env.bots import Agent, make
from carolus_env.engine import (
    IllegalActionError,
    copy,
    is_over,
    legal_actions,
    legal_masks,
    new_games,
    pick,
    random_actions,
    returns,
    rules_of,
    step,
)
from carolus_env.engine.chance import (
    Outcomes,
    apply_roll,
    chance_outcomes,
    draw_faces,
    new_streams,
    roll,
    roll_due,
)
from carolus_env.engine.observation import observe
from carolus_env.engine.play import Playouts, playout
from carolus_env.engine.rules import ACTIONS, Rules, action_text
from carolus_env.engine.state import STATE, to_bytes
from carolus_env.games.batch import GameBatch, Rollout, Turn
from carolus_env.games.game import Game
from carolus_env.records.position import PositionError, from_bytes
from carolus_env.system.machine import __version__

__all__ = [
    "ACTIONS",
    "STATE",
    "Agent",
    "Game",
    "GameBatch",
    "IllegalActionError",
    "Outcomes",
    "Playouts",
    "PositionError",
    "Rollout",
    "Rules",
    "Turn",
    "__version__",
    "action_text",
    "apply_roll",
    "chance_outcomes",
    "copy",
    "draw_faces",
    "from_bytes",
    "is_over",
    "legal_actions",
    "legal_masks",
    "make",
    "new_games",
    "new_streams",
    "observe",
    "pick",
    "playout",
    "random_actions",
    "returns",
    "roll",
    "roll_due",
    "rules_of",
    "step",
    "to_bytes",
]

for _name, _options in (("CarolusMagnus-v0", {}), ("CarolusMagnusTurns-v0", {"turns": True})):
    gymnasium.register(
        _name,
        entry_point="carolus_env.envs.gym:CarolusEnv",
        vector_entry_point="carolus_env.envs.gym:CarolusVectorEnv",
        kwargs=_options,
    )
if hasattr(pettingzoo, "register"):  # since 1.27
    pettingzoo.register("aec", "carolus/CarolusMagnus-v0", "carolus_env.carolus_magnus_v0:env")
    pettingzoo.register(
        "parallel", "carolus/CarolusMagnus-v0", "carolus_env.carolus_magnus_v0:parallel_env"
    )
