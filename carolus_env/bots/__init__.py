"""Bots that need only NumPy and Numba, and the registry of all agents by spec string."""

from carolus_env.bots.agent import Agent, AgentError, Checked, Opinion, drawn, opinion, uniforms
from carolus_env.bots.compiled import CompiledAgent, Entries, is_compiled
from carolus_env.bots.greedy import GreedyBot, GreedyOptions
from carolus_env.bots.model_files import ModelError
from carolus_env.bots.planner.bot import PlannerBot, PlannerOptions
from carolus_env.bots.random import RandomBot
from carolus_env.bots.registry import UnknownAgentError, known, make, register
from carolus_env.bots.search.bot import Evaluator, SearchBot, SearchOptions
from carolus_env.bots.search.mcts import Choice, MctsBot, MctsOptions
from carolus_env.bots.turns.bot import TurnPolicy, TurnPolicyOptions
from carolus_env.bots.turns.model import TurnModel
from carolus_env.bots.value.bot import ValueBot, ValueOptions
from carolus_env.bots.value.model import ValueModel
from carolus_env.bots.value.timed import TimedValueBot

__all__ = [
    "Agent",
    "AgentError",
    "Checked",
    "Choice",
    "CompiledAgent",
    "Entries",
    "Evaluator",
    "GreedyBot",
    "GreedyOptions",
    "MctsBot",
    "MctsOptions",
    "ModelError",
    "Opinion",
    "PlannerBot",
    "PlannerOptions",
    "RandomBot",
    "SearchBot",
    "SearchOptions",
    "TimedValueBot",
    "TurnModel",
    "TurnPolicy",
    "TurnPolicyOptions",
    "UnknownAgentError",
    "ValueBot",
    "ValueModel",
    "ValueOptions",
    "drawn",
    "is_compiled",
    "known",
    "make",
    "opinion",
    "register",
    "uniforms",
]
