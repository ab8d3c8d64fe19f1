"""``ppo``: trained networks, their files, and the bot that plays what they say."""

from carolus_env.bots.neural.model import Model, ModelError
from carolus_env.bots.neural.policy import PolicyAgent, PolicyOptions

__all__ = ["Model", "ModelError", "PolicyAgent", "PolicyOptions"]
