"""The structure of the package, counted: ``python docs/structure.py [FOLDER]``.

Read from the code's own text, nothing is run. An *entry* is a folder or a module at the top level
of ``carolus_env/``; an import between two of them counts once, however many files need it. An
entry's *layer* is one more than the highest layer that it imports. Doors (`DOORS`) are above all
layers and not counted: each only names what is somewhere else.

tests/test_structure.py holds the package to limits; CONTRIBUTING.md shows the table of layers.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = "carolus_env"
REPEATED = 6  # equal lines in a row that count as repeated

Imports = dict[str, set[str]]


# ------------------------------------------------------------------------------------ Python


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package by its dotted name, without ``carolus_env.``."""
    found = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(root: Path = ROOT) -> Imports:
    """What each module imports of the package, at any place."""
    known = modules(root)
    found: Imports = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                named = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for full in named:
                package, _, inner = full.partition(".")
                if package == PACKAGE:
                    found[name].add(_module_of(inner, known))
        found[name] -= {name, ""}
    return found


def _module_of(name: str, known: dict[str, Path]) -> str:
    """The module that ``name`` is, or that holds it."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


DOORS = "", "__main__", "carolus_magnus_v0", "replay"
"""Names for users, without code: ``import carolus_env``, ``python -m carolus_env`` and so on."""


def defined(text: str) -> list[str]:
    """The functions and classes of a module's text."""
    found = ast.walk(ast.parse(text))
    return [node.name for node in found if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def entry_of(module: str) -> str:
    """The top-level folder or module that it belongs to."""
    return module.partition(".")[0] or "__init__"


def between_entries(of_modules: Imports) -> Imports:
    """Imports between the entries of the top level; its doors (`DOORS`) are none of them."""
    found: Imports = {entry_of(name): set() for name in of_modules if name not in DOORS}
    for name, used in of_modules.items():
        if name not in DOORS:
            found[entry_of(name)] |= {entry_of(other) for other in used} - {entry_of(name)}
    return found


def layers(of_entries: Imports) -> dict[str, int]:
    """The layer of each entry, from 1 at the bottom; of those in a circle, 0."""
    found: dict[str, int] = {}
    waiting = dict(of_entries)
    while waiting:
        ready = [name for name, used in waiting.items() if used <= found.keys()]
        if not ready:
            return found | dict.fromkeys(waiting, 0)
        found |= {name: 1 + max((found[u] for u in waiting[name]), default=0) for name in ready}
        waiting = {name: used for name, used in waiting.items() if name not in ready}
    return found


def circles(edges: Imports) -> list[list[str]]:
    """Groups of two or more that import each other, each sorted."""

    @cache
    def reached(start: str) -> frozenset[str]:
        seen, waiting = set(), list(edges.get(start, ()))
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += edges.get(name, ())
        return frozenset(seen)

    groups = {
        tuple(sorted(other for other in reached(name) if name in reached(other)))
        for name in edges
        if name in reached(name)
    }
    return [list(group) for group in sorted(groups)]


# ------------------------------------------------------------------------------------ JavaScript


def scripts(root: Path = ROOT) -> dict[str, Path]:
    """The modules of the page by file name."""
    return {path.name: path for path in sorted((root / PACKAGE).rglob("*.js"))}


def script_imports(root: Path = ROOT) -> Imports:
    """What each of the page's modules imports of the others."""
    found = {}
    for name, path in scripts(root).items():
        used = re.findall(r"""(?:from|import)\s*\(?["']\./([\w.-]+\.js)["']""", path.read_text())
        found[name] = set(used) - {name}
    return found


# ------------------------------------------------------------------------------------ sites


def functions(root: Path = ROOT) -> Iterable[tuple[str, ast.FunctionDef]]:
    """Every function of the package with its module."""
    for name, path in modules(root).items():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef):
                yield name, node


_FIRSTS = {"FIRST_DISC", "FIRST_CROWN", "FIRST_MOVE", "FIRST_PLACE"}


def decoding_sites(root: Path = ROOT) -> list[str]:
    """Functions that take an action number apart: they subtract the first number of a group."""
    found = []
    for module, function in functions(root):
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                right = node.right
                if isinstance(right, ast.Attribute | ast.Name) and _name(right) in _FIRSTS:
                    found.append(f"{module}.{function.name}")
                    break
    return sorted(found)


def event_loops(root: Path = ROOT) -> list[str]:
    """Functions that carry out an event of a record: a given roll, or else a decision."""
    found = []
    for module, function in functions(root):
        called = {
            _name(node.func)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)
        }
        if {"apply_roll", "step"} <= called:
            found.append(f"{module}.{function.name}")
    return sorted(found)


def _name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


# ------------------------------------------------------------------------------------ lines


def longest(files: Iterable[Path]) -> list[tuple[int, Path]]:
    """Files by length, the longest first."""
    return sorted(((len(path.read_text().splitlines()), path) for path in files), reverse=True)


def sources(root: Path = ROOT) -> list[Path]:
    """Python outside tests, and the page's scripts."""
    found = [
        path
        for pattern in (
            "*.py",
            "agents/**/*.py",
            "benchmarks/**/*.py",
            "docs/*.py",
            "examples/*.py",
        )
        for path in root.glob(pattern)
    ]
    return sorted([*found, *modules(root).values(), *scripts(root).values()])


def repeated(files: Iterable[Path]) -> list[tuple[str, str]]:
    """Pairs of places with six or more equal lines; blank lines, comments, imports do not count."""
    places: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    for path in files:
        lines = [
            (number, line.strip())
            for number, line in enumerate(_without_imports(path), 1)
            if len(line.strip()) > 3 and not line.strip().startswith(("#", "//"))
        ]
        for k in range(len(lines) - REPEATED + 1):
            run = tuple(text for _, text in lines[k : k + REPEATED])
            places[run].append((path, lines[k][0]))
    pairs = set()
    for found in places.values():
        first, *others = found
        for other in others:
            pairs.add((first, other))
    starts = []  # a long run also counts from each of its later lines
    for (a, i), (b, j) in sorted(pairs):
        if not any((((a, i - k), (b, j - k)) in pairs) for k in (1, 2, 3)):
            starts.append((f"{a.name}:{i}", f"{b.name}:{j}"))
    return starts


def _without_imports(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    if path.suffix == ".py":
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                    lines[number] = ""
    return lines


# ------------------------------------------------------------------------------------ report


def layers_table(root: Path = ROOT) -> str:
    """The layers as a Markdown table, the highest first (CONTRIBUTING.md holds it)."""
    by_layer: dict[int, list[str]] = defaultdict(list)
    known = modules(root)
    for entry, layer in layers(between_entries(imports(root))).items():
        if entry != "__init__":
            by_layer[layer].append(entry)
    lines = ["| layer | what | purpose |", "| ---: | --- | --- |"]
    for layer in sorted(by_layer, reverse=True):
        for entry in sorted(by_layer[layer]):
            is_folder = known[entry].name == "__init__.py"
            purpose = (ast.get_docstring(_tree(known[entry])) or "").partition("\n")[0]
            lines.append(f"| {layer} | `{entry}{'/' if is_folder else '.py'}` | {purpose} |")
    return "\n".join(lines) + "\n"


def report(root: Path) -> str:
    """All figures as text."""
    of_modules = imports(root)
    of_entries = between_entries(of_modules)
    heights = layers(of_entries)
    python = [path for path in sources(root) if path.suffix == ".py"]
    most, script = longest(python)[0], longest(scripts(root).values())[0]
    counts: dict[str, int] = defaultdict(int)
    for path in (root / PACKAGE).rglob("*"):
        if "__pycache__" in path.parts or not (path.suffix in (".py", ".js") or path.is_dir()):
            continue
        counts[str(path.parent.relative_to(root))] += 1
    lines = [
        f"entries at the top level   {len(of_entries)}",
        f"layers                     {max(heights.values())}",
        f"imports between entries    {sum(map(len, of_entries.values()))}",
        f"imports between modules    {sum(map(len, of_modules.values()))}",
        f"circles, Python            {circles(of_modules)}",
        f"circles, JavaScript        {circles(script_imports(root))}",
        f"longest Python file        {most[0]} {most[1].relative_to(root)}",
        f"longest JavaScript file    {script[0]} {script[1].relative_to(root)}",
        f"lines outside tests        {sum(count for count, _ in longest(sources(root)))}",
        f"repeated passages          {len(repeated(sources(root)))}",
        f"sites that decode actions  {len(decoding_sites(root))}: {decoding_sites(root)}",
        f"loops over events          {len(event_loops(root))}: {event_loops(root)}",
        "entries in each folder     "
        + ", ".join(f"{name} {n}" for name, n in sorted(counts.items()) if "static" not in name),
    ]
    return "\n".join(lines) + "\n\n" + layers_table(root)


if __name__ == "__main__":
    print(report(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
