"""Games as objects: `Game`, a board to play on, and `GameBatch`, thousands in lockstep."""

from carolus_env.games.batch import GameBatch, Rollout, Turn
from carolus_env.games.game import Game

__all__ = ["Game", "GameBatch", "Rollout", "Turn"]
