"""Agents by spec string: ``greedy``, ``mcts:sims=400``, ``my_bot.py:MyBot``.

A spec is ``name`` or ``name:argument``. The argument usually holds typed options,
``key=value,key=value``, after the name of a model where the bot takes one. An
agent in your own Python file needs no registration.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeGuard

from carolus_env.bots import baselines, network, search
from carolus_env.bots.agent import Agent, AgentError, Checked, NoOptions, parse
from carolus_env.bots.compiled import CheckedCompiled, is_compiled
from carolus_env.engine.state import Ints, States
from carolus_env.networks.files import FOLDER, Kind
from carolus_env.system import machine, untrusted
from carolus_env.system.arrays import U64
from carolus_env.system.files import expanded
from carolus_env.system.options import instance
from carolus_env.system.untrusted import unknown

Function = Callable[[States, U64], Ints]
AgentLike = str | Agent | Function
"""What `make` takes: a spec string, an agent, or a function ``act(states, generators)``."""


_registry: dict[str, tuple[Callable[[str], Agent], str]] = {}  # with a description


class UnknownAgentError(ValueError):
    """A spec string that names no known agent; the text lists the known ones."""


def register(name: str, maker: Callable[[str], Agent], about: str) -> None:
    """Add a kind of agent: its name in specs, a plain word, and a description in one line.

    ``maker`` gets the rest of the spec after ``name:``, empty if there is none.
    """
    if not name.isidentifier():
        raise ValueError(f"an agent's name must be a plain word, got {name!r}")
    _registry[name] = maker, about


def known() -> dict[str, str]:
    """Return the registered names, each with its description."""
    return {name: about for name, (_, about) in _registry.items()}


def is_function(spec: object) -> TypeGuard[Function]:
    """Return whether something is a function that `make` takes; a class is none."""
    return callable(spec) and not isinstance(spec, type)


def make(spec: AgentLike) -> Agent:
    """Make the agent that a spec string names.

    Args:
        spec: ``name``, ``name:argument``, or ``path/to/file.py:Name``, where Name is an `Agent`
            (class or instance) or a function ``act(states, generators)``. The modules beside a file
            are loaded for it alone. An agent is returned unchanged; a function becomes an agent.

    Raises:
        UnknownAgentError: for an unknown name.
        AgentError: for a wrong argument, or a file that holds no such agent.
        ModelError: for a model that cannot be read or does not fit.
    """
    if isinstance(spec, Agent):
        return spec
    if is_function(spec):
        return Checked(FunctionAgent(spec))
    instance("spec", spec, str, "a spec string, an agent or a function")
    assert isinstance(spec, str)
    name, colon, argument = spec.partition(":")
    agent: Agent
    if name.endswith(".py"):
        own = _from_file(expanded(name), argument)
        with contextlib.suppress(AttributeError):  # its own errors name it, if its class permits
            own.name = spec
        agent = CheckedCompiled(own) if is_compiled(own) else Checked(own)
    elif colon and not argument and name in _registry:
        raise AgentError(spec, f"nothing follows the colon; without arguments it is {name!r}")
    elif name in _registry:
        agent = _registry[name][0](argument)
    else:
        known = f"{', '.join(_registry)} or FILE.py:NAME"
        raise UnknownAgentError(unknown("unknown agent", name, _registry, known))
    agent.name = spec
    return agent


def _from_file(path: Path, name: str) -> Agent:
    if not name:
        raise AgentError(str(path), f"name an agent in the file, as in {path}:MyBot")
    if not path.is_file():
        raise AgentError(str(path), "there is no such file")
    place = hashlib.sha256(bytes(path.resolve())).hexdigest()[:8]  # many bots are in bot.py
    module_name = f"_agent_file_{path.stem}_{place}"
    beside, loader = _Beside(path), SourceFileLoader(module_name, str(path.absolute()))
    module_spec = importlib.util.spec_from_loader(module_name, loader)
    assert module_spec is not None
    module = sys.modules[module_name] = importlib.util.module_from_spec(module_spec)
    failing = "the file"
    with _loading, beside.importing():
        arguments, sys.argv = sys.argv, [str(path)]  # none, as ``python my_bot.py`` has
        try:
            beside.execute(loader, module)
            result = getattr(module, name, None)
            if isinstance(result, type):
                failing = f"{name}()"
                result = result()
        except (Exception, SystemExit) as error:
            reason = f"{failing} fails with {untrusted.message(error)}"
            raise AgentError(str(path), reason) from error
        finally:
            sys.argv = arguments
    if isinstance(result, Agent):
        return result
    if callable(result):
        return FunctionAgent(result)
    if result is None:
        raise AgentError(str(path), f"the file has no {name!r}")
    kind = type(result).__name__
    raise AgentError(str(path), f"{name!r} must be an Agent or a function, got {kind}")


class _Beside:
    """The modules beside a file, which has them alone: another file may have others of that name.

    So they are in `sys.modules` only while they are imported.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.resolve().parent
        self._modules: dict[str, ModuleType] = {}
        self.builtins = {**vars(builtins), "__import__": self._import}
        """What import statements in the file, and in these modules, are carried out by."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module beside the file, as an entry of `sys.meta_path` does."""
        if path is None:
            path = [str(self._folder)]
        elif not _lies_in(self._folder, sys.modules[name.partition(".")[0]]):
            return None  # a part of another package
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(loader := spec.loader, SourceFileLoader):
            loader.exec_module = partial(self.execute, loader)  # type: ignore[method-assign]
        return spec

    def execute(self, loader: SourceFileLoader, module: ModuleType) -> None:
        """Carry a module out, whose import statements find these modules."""
        vars(module)["__builtins__"] = self.builtins
        SourceFileLoader.exec_module(loader, module)

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Let imports find these modules."""
        with _loading:
            if self in sys.meta_path:  # the module that is imported imports another one
                yield
                return
            before = set(sys.modules)
            hidden = {name: sys.modules[name] for name in self._modules if name in before}
            sys.modules.update(self._modules)
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)  # built-in ones go first
            try:
                yield
            finally:
                sys.meta_path.remove(self)
                new = set(sys.modules) - before
                own = {name for name in new if _lies_in(self._folder, sys.modules[name])}
                own |= self._modules.keys()
                for name in new | own:
                    if name.partition(".")[0] in own and name in sys.modules:
                        self._modules[name] = sys.modules.pop(name)
                sys.modules.update(hidden)

    def _import(self, name: str, *arguments: Any, **more: Any) -> Any:
        """Do what ``import`` does; the arguments are those of `__import__`."""
        first = name.partition(".")[0]
        if first in sys.modules and first not in self._modules:  # with no lock
            return __import__(name, *arguments, **more)
        with self.importing():
            return __import__(name, *arguments, **more)


_loading = threading.RLock()


def _lies_in(folder: Path, module: ModuleType) -> bool:
    """Return whether a module was found in a folder, as a file or as a package."""
    file = Path(getattr(module, "__file__", None) or "/")
    return folder == (file.parent.parent if file.name == "__init__.py" else file.parent)


class FunctionAgent(Agent):
    """A plain function ``act(states, generators)`` as an agent."""

    def __init__(self, function: Function) -> None:
        self.function, self.name = function, getattr(function, "__name__", "function")

    def act(self, states: States, generators: U64) -> Ints:
        return self.function(states, generators)


_BOTS: Final[dict[str, tuple[Callable[..., Agent], type, Kind | None, str]]] = {
    "random": (lambda _: baselines.RandomBot(), NoOptions, None,
        "every legal action equally likely"),
    "greedy": (baselines.GreedyBot, baselines.GreedyOptions, None,
        "takes the best immediate gain in castles, then in clans"),
    "planner": (baselines.PlannerBot, baselines.PlannerOptions, None,
        "plans whole turns by an evaluation with fitted weights"),
    "rollout_policy": (lambda _: network.RolloutPolicy(), NoOptions, None,
        "plays rollouts, by the value network"),
    "mcts": (search.MctsBot, search.MctsOptions, None,
        "tree search over whole turns and dice: mcts:sims=400, mcts:seconds=1"),
    "ppo": (network.PpoBot, network.PpoOptions, "ppo",
        "a trained policy: ppo, ppo:2p, ppo:PATH,temperature=1"),
    "value": (network.ValueBot, network.ValueOptions, "value",
        "a trained value network, after whole turns: value, value:2p, value:PATH"),
    "search": (search.SearchBot, search.SearchOptions, "value",
        "tree search with such a network: search:2p,sims=100"),
    "decisions": (lambda model, _: network.DecisionsBot(model), NoOptions, "decisions",
        "a trained policy over single decisions: decisions:2p, decisions:PATH"),
}  # fmt: skip
"""How each bot is made of options, their dataclass, the purpose of its models, a description."""
OPTIONS: Final = {name: options for name, (_, options, _, _) in _BOTS.items()}
"""The options of each bot in the package. Pages and results files may name no others."""


def _make(name: str, argument: str) -> Agent:
    """Make a bot with options; where it plays by a model, that comes first, by name or path."""
    bot, options, kind, _ = _BOTS[name]
    if kind is None:
        return bot(parse(name, options, argument))
    model, _, rest = argument.partition(",")
    key, equals, _ = model.partition("=")
    if equals and key.strip().isidentifier():  # an option: no model is named
        model, rest = "", argument
    return bot(network.find(kind, model) if model else None, parse(name, options, rest))


for _name, (*_, _about) in _BOTS.items():
    register(_name, partial(_make, _name), _about)
register(
    "exe",  # of a higher layer
    lambda spec: importlib.import_module("carolus_env.integrations.external").make_external(spec),
    "a program in any language: exe:./bot,seconds=1 (docs/write_a_bot.md)",
)


# ------------------------------------------------------------------------------------ fingerprints


def fingerprint(agent: Agent, players: int) -> dict[str, str]:
    """Return a hash of each thing that decides how an agent plays, by name.

    These are its Python file and the user's modules that it imports, the files that its spec names,
    and ``carolus_env``: the package's code behind it, and the networks for that many players. They
    do not cover what an agent holds in memory, nor installed packages.
    """
    own = agent.agent if isinstance(agent, Checked) else agent
    maker: Any = own.function if isinstance(own, FunctionAgent) else type(own)
    contents: dict[str, bytes] = {}
    package = "bots"
    file = agent.name.partition(":")[0]
    if is_file := file.endswith(".py") and Path(file).is_file():
        contents |= machine.user_sources("bot", file)
    for kind in getattr(maker, "__mro__", (maker,)):
        name = str(getattr(kind, "__module__", ""))
        if (room := machine.room_of(name)) is not None:
            package = package if room in machine.ROOMS else ""
        elif not is_file and (source := machine.loaded_file(name)) is not None:
            contents |= machine.user_sources(name, source)
    for path in machine.named_files(agent.name):
        if path.suffix != ".py" or not is_file:
            contents[path.as_posix()] = path.read_bytes()
    hashes = {
        name: machine.digest({name: content}).hex()[:16]
        for name, content in sorted(contents.items())
    }
    return {**hashes, machine.PACKAGE.name: _package_hash(package, players)}


@cache
def _package_hash(room: str, players: int) -> str:
    """Return the hash of a room, of those behind it, and of the models for that many players."""
    models = {path.name: path.read_bytes() for path in FOLDER.glob(f"*_{players}p.*")}
    return machine.digest(machine.room_sources(room) | models).hex()[:16]
