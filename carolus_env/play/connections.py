"""Connections with time limits: a client that sends or reads too slowly holds no place for long.

The server has `MOST` places. When a client asks for one more, the connection that has kept the
server waiting longest, for the rest of a request or for the next one, is closed.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST: Final = 200
"""Connections at the same time, besides those whose requests are being answered."""
HEAD_SECONDS: Final = 10.0
"""From the connection, or from the first byte of a further request, to the end of its headers."""
BODY_SECONDS: Final = 60.0
"""From there to the end of the request, and for which an answer may wait to be read."""


class Connection(H11Protocol):
    """A connection to one client."""

    _timer: asyncio.TimerHandle | None = None
    _limit = ""  # what the timer is for
    _since = 0.0  # when the server began to wait
    _closed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there; the one that waits longest for its own goes where it is too many."""
        super().connection_made(transport)
        self._wait_for("head")
        waiting = [other for other in self._others() if other._limit or other._is_idle]
        if len(waiting) > MOST:
            min(waiting, key=lambda other: (other._limit == "", other._since)).close()

    def _others(self) -> list[Connection]:
        known: Any = self.connections
        return [other for other in known if isinstance(other, Connection) and not other._closed]

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._closed = True
        self._wait_for("")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of a request came."""
        was_idle = self._is_idle
        super().data_received(data)
        if not self._is_idle:
            self._wait_for("body" if self.cycle.more_body else "")
        elif was_idle and not self._limit:  # the first bytes of another request
            self._wait_for("head")

    def on_response_complete(self) -> None:
        """The request is answered."""
        super().on_response_complete()
        if self._is_idle and self._limit != "reader":
            self._wait_for("")

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        super().pause_writing()
        self._wait_for("reader")

    def resume_writing(self) -> None:
        """The client has read what waited."""
        super().resume_writing()
        self._wait_for("body" if not self._is_idle and self.cycle.more_body else "")

    @property
    def _is_idle(self) -> bool:
        """Whether there is no request, or not yet the headers of one."""
        return self.cycle is None or self.cycle.response_complete

    def _wait_for(self, what: str) -> None:
        """Begin to wait for the client, or go on; empty: for nothing any more."""
        if what == self._limit and what:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._limit, self._since = what, time.monotonic()
        if what:
            seconds = HEAD_SECONDS if what == "head" else BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self.close)

    def close(self) -> None:
        """End the connection now; what is unsent is lost."""
        self._closed = True
        self.transport.abort()
