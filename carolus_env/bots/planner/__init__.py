"""``planner``: a fitted evaluation, the plans of a turn, and the bot that uses them."""

from carolus_env.bots.planner.bot import PlannerBot, PlannerOptions

__all__ = ["PlannerBot", "PlannerOptions"]
