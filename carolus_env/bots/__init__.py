"""Bots that need only NumPy and Numba, and the registry of all agents by spec string."""

from carolus_env.bots.agent import Agent, AgentError, Checked, Opinion, drawn, opinion, uniforms
from carolus_env.bots.baselines import (
    GreedyBot,
    GreedyOptions,
    PlannerBot,
    PlannerOptions,
    RandomBot,
)
from carolus_env.bots.compiled import CompiledAgent, Entries, is_compiled
from carolus_env.bots.network import PpoBot, PpoOptions, ValueBot, ValueOptions
from carolus_env.bots.registry import AgentLike, UnknownAgentError, known, make, register
from carolus_env.bots.search import (
    Choice,
    Evaluator,
    MctsBot,
    MctsOptions,
    SearchBot,
    SearchOptions,
)
from carolus_env.networks.files import ModelError
from carolus_env.networks.network import NetworkModel

__all__ = [
    "Agent",
    "AgentError",
    "AgentLike",
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
    "NetworkModel",
    "Opinion",
    "PlannerBot",
    "PlannerOptions",
    "PpoBot",
    "PpoOptions",
    "RandomBot",
    "SearchBot",
    "SearchOptions",
    "UnknownAgentError",
    "ValueBot",
    "ValueOptions",
    "drawn",
    "is_compiled",
    "known",
    "make",
    "opinion",
    "register",
    "uniforms",
]
