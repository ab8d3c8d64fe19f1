"""The public names of the package, and those without a docstring: ``python docs/names.py``.

Read from the code's own text, nothing is run. A module is public when no part of its name begins
with an underscore; of it, what its ``__all__`` lists, and every function and class, with their
methods and properties, that begins with no underscore. A method may have its docstring from a class
of the package that it overrides.

The site has a page for each module (docs/website.py), and is not built while a name lacks one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import structure

WAITING: frozenset[str] = frozenset()
"""Names that lack a docstring in files that make kernels, which such a change compiles again. They
get theirs with the next change of a kernel; tests/test_site.py says when one of them has it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def public_modules(root: Path = structure.ROOT) -> dict[str, ast.Module]:
    """Every public module by its full name, ``carolus_env`` first."""
    full = {
        f"{structure.PACKAGE}.{name}".rstrip("."): path
        for name, path in structure.modules(root).items()
    }
    return {
        name: ast.parse(path.read_text())
        for name, path in sorted(full.items())
        if not any(part.startswith("_") for part in name.split("."))
    }


def exported(tree: ast.Module) -> list[str] | None:
    """What the module's ``__all__`` lists; None where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


@cache
def _imported(module: str, root: Path) -> dict[str, tuple[str, str]]:
    """The names that a module imports from public modules: the module and the name there."""
    modules, found = public_modules(root), {}
    for node in ast.walk(modules[module]):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                found[alias.asname or alias.name] = node.module, alias.name
    return found


def source_of(module: str, name: str, root: Path = structure.ROOT) -> str:
    """The full name of ``name`` in the module that defines it, through all re-exports."""
    if name not in _imported(module, root):
        return f"{module}.{name}"
    other, there = _imported(module, root)[name]
    if f"{other}.{there}" in public_modules(root):
        return f"{other}.{there}"
    return source_of(other, there, root)


@cache
def docstrings(root: Path = structure.ROOT) -> dict[str, str]:
    """Every public module, class, function, method and documented attribute: its docstring."""
    found = {}
    for module, tree in public_modules(root).items():
        found[module] = ast.get_docstring(tree) or ""
        found |= dict(_of_body(tree.body, module))
    return found


def _of_body(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, str]]:
    for node, following in zip(body, [*body[1:], None][: len(body)], strict=True):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield f"{inside}.{node.name}", ast.get_docstring(node) or ""
                if isinstance(node, ast.ClassDef):
                    yield from _of_body(node.body, f"{inside}.{node.name}")
            case ast.Assign() | ast.AnnAssign():
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        first = node.targets[0] if isinstance(node, ast.Assign) else node.target
                        for name in ast.unparse(first).strip("()").split(", "):
                            yield f"{inside}.{name}", text
            case ast.If():
                yield from _of_body(node.body, inside)


def public_names(root: Path = structure.ROOT) -> Iterator[str]:
    """The full names of all that must have a docstring, where they are defined."""
    for module, tree in public_modules(root).items():
        yield module
        for name in exported(tree) or ():
            if not name.startswith("_"):
                yield source_of(module, name, root)
        yield from _definitions(tree.body, module)


def _definitions(body: list[ast.stmt], inside: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            if any("overload" in text or ".setter" in text for text in _decorators(node)):
                continue
            yield f"{inside}.{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, f"{inside}.{node.name}")


def _decorators(node: Function | ast.ClassDef) -> list[str]:
    return [ast.unparse(decorator) for decorator in node.decorator_list]


@cache
def _bases(root: Path) -> dict[str, list[str]]:
    """The classes of the package that each class names as a base, by full name."""
    found = {}
    for module, tree in public_modules(root).items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(base).partition("[")[0] for base in node.bases]
                found[f"{module}.{node.name}"] = [_resolved(module, name, root) for name in names]
    return found


def _resolved(module: str, name: str, root: Path) -> str:
    """The full name of a class that the module calls ``name`` or ``module.name``."""
    first, _, rest = name.partition(".")
    full = source_of(module, first, root)
    return source_of(full, rest, root) if rest and full in public_modules(root) else full


def _inherits(name: str, root: Path) -> bool:
    """Whether the class of a method has a base whose method of that name has a docstring."""
    owner, _, method = name.rpartition(".")
    return any(
        docstrings(root).get(f"{base}.{method}") or _inherits(f"{base}.{method}", root)
        for base in _bases(root).get(owner, ())
    )


def lacking(root: Path = structure.ROOT) -> list[str]:
    """The public names without a docstring, sorted; those that wait (`WAITING`) are among them."""
    known = docstrings(root)
    return sorted(
        {name for name in public_names(root) if not known.get(name) and not _inherits(name, root)}
    )


if __name__ == "__main__":
    missing = [name for name in lacking() if name not in WAITING]
    print("\n".join(missing) or f"{len(set(public_names()))} public names, each with a docstring")
    sys.exit(bool(missing))
