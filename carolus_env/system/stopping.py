"""Long work that can be stopped: it looks at a flag now and then, and ends by raising `Stopped`.

    stop = Stop()
    with stop.watched():           # in the thread that works
        agent.act(states, streams)     # raises Stopped soon after ...
    stop.set()                     # ... another thread has said so

What is watched belongs to the code in the ``with`` block, not to its thread: several can work for
one `Stop`, and a block inside another watches the inner one only. Work that starts threads of its
own hands the `Stop` on (`current`). No thread is ended from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import numpy as np
import numpy.typing as npt


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """The work was stopped, and has no result."""


class Stop:
    """A flag by which work is told to end.

    Attributes:
        flag: ``(1,)`` uint8, not 0 once the work is to end; for kernels, which take an array.
    """

    def __init__(self) -> None:
        self.flag: npt.NDArray[np.uint8] = np.zeros(1, np.uint8)

    def set(self) -> None:
        """Tell the work to end; from any thread, and as often as one likes."""
        self.flag[0] = 1

    @property
    def is_set(self) -> bool:
        """Whether the work was told to end."""
        return bool(self.flag[0])

    def check(self) -> None:
        """Do nothing, or end the work.

        Raises:
            Stopped: when it was told to end.
        """
        if self.flag[0]:
            raise Stopped("the work was stopped")

    @contextmanager
    def watched(self) -> Iterator[Stop]:
        """Work in the ``with`` block ends when this is set."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)


_NEVER: Final = Stop()
_current: Final[ContextVar[Stop]] = ContextVar("carolus_stop", default=_NEVER)


def current() -> Stop:
    """What the work here is to watch; one that is never set, where nobody may stop it."""
    return _current.get()


def portions(rows: int, most: int = 4) -> Iterator[slice]:
    """``range(rows)`` in runs, with a look at the flag before and after each.

    Where nobody may stop the work it is one run of all rows.

    Args:
        rows: how many there are.
        most: of a run.

    Raises:
        Stopped: when the work is to end.
    """
    stop = _current.get()
    longest = max(rows, 1) if stop is _NEVER else most
    for first in range(0, rows, longest):
        stop.check()
        yield slice(first, min(first + longest, rows))
    stop.check()
