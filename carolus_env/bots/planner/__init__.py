"""``planner``: a fitted evaluation, the plans of a turn, and the bot that uses both."""

from carolus_env.bots.planner.bot import PlannerBot, PlannerOptions

__all__ = ["PlannerBot", "PlannerOptions"]
