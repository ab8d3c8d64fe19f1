"""Changes of nested data, for tests of what readers refuse."""

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], None]


def put(*path: Any, to: Any) -> Change:
    """Return a change: ``data[path...]`` becomes ``to``, or ``to(old)``."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to(data[path[-1]]) if callable(to) else to

    return change


def without(*path: Any) -> Change:
    """Return a change: ``data[path...]`` is gone."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def both(*changes: Change) -> Change:
    """Return a change that is several, one after the other."""

    def change(data: Any) -> None:
        for one in changes:
            one(data)

    return change


def nested(depth: int) -> Any:
    """Return a list in a list in a list."""
    deep: Any = 0
    for _ in range(depth):
        deep = [deep]
    return deep
