"""What the server holds for its pages, under random keys: games in play, and files."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from carolus_env.play.requests import RequestError

MAX_ITEMS: Final = 128
"""Maximum number of items of a store, those that are kept for good not counted."""
MAX_BYTES: Final = 256 * 2**20
"""Bytes of memory for them, about; a single item may take more."""

T = TypeVar("T")


class Store(Generic[T]):
    """A store that drops what was not used for longest when it is full.

    Args:
        what: the kind of items, for errors.
        size: a function that returns the bytes of memory that an item takes now, about.
    """

    def __init__(self, what: str, size: Callable[[T], int]) -> None:
        self._what, self._size = what, size
        self._kept: dict[str, T] = {}
        self._items: OrderedDict[str, T] = OrderedDict()

    def add(self, item: T, *, keep: bool = False) -> str:
        """Store an item; returns its key.

        Args:
            item: the item.
            keep: True: it is never dropped.
        """
        key = secrets.token_urlsafe(9)
        if keep:
            self._kept[key] = item
        else:
            self._items[key] = item
            self._make_room()
        return key

    def find(self, key: str) -> T:
        """Return the item under a key.

        Raises:
            RequestError: when it is not held.
        """
        if key in self._kept:
            return self._kept[key]
        if key not in self._items:
            raise RequestError(404, f"The server does not hold this {self._what} any more.")
        self._items.move_to_end(key)
        return self._items[key]

    def _make_room(self) -> None:
        """Drop items, but never the newest."""
        sizes = [self._size(item) for item in self._items.values()]
        total = sum(sizes)
        for size in sizes[:-1]:
            if len(self._items) <= MAX_ITEMS and total <= MAX_BYTES:
                return
            self._items.popitem(last=False)
            total -= size
