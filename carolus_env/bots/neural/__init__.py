"""``ppo``: trained networks, their files, and the bot that plays by them."""

from carolus_env.bots.model_files import ModelError
from carolus_env.bots.neural.model import Model
from carolus_env.bots.neural.policy import PolicyAgent, PolicyOptions

__all__ = ["Model", "ModelError", "PolicyAgent", "PolicyOptions"]
