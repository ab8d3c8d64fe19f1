"""Cooperative cancellation: work ``with stop.watched()`` ends soon after ``stop.set()``.

Long work polls its `Stop` between portions, and raises `Stopped`. A block inside another watches
the inner one only. Work that starts threads passes the `Stop` on (`current`). Kernels do not poll.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """The work was stopped, and has no result."""


class Stop(threading.Event):
    """A signal that tells work to end: ``set()``, from any thread, any number of times."""

    def check(self) -> None:
        """Do nothing, or end the work."""
        if self.is_set():
            raise Stopped("the work was stopped")

    @contextmanager
    def watched(self) -> Iterator[Stop]:
        """Let work in the ``with`` block end when this is set."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


_NEVER: Final = Stop()
_current: Final[ContextVar[Stop]] = ContextVar("carolus_stop", default=_NEVER)


def current() -> Stop:
    """Return the flag that the work here polls; one that is never set, where nobody may stop it."""
    return _current.get()


def stoppable() -> bool:
    """Return whether somebody may stop the work here."""
    return _current.get() is not _NEVER


_PORTION: Final = 0.1
"""Seconds that a portion takes at most, about; one row may take longer."""


def portions(rows: int) -> Iterator[slice]:
    """Yield ``range(rows)`` in portions, with polls; one portion where nobody may stop the work."""
    if not stoppable():
        if rows:
            yield slice(0, rows)
        return
    stop, first, longest = _current.get(), 0, 1
    while first < rows:
        stop.check()
        begun = time.monotonic()
        yield slice(first, min(first + longest, rows))
        first += longest
        seconds = time.monotonic() - begun
        if seconds < _PORTION / 2:
            longest *= 2
        elif seconds > _PORTION:
            longest = max(longest // 2, 1)
    stop.check()
