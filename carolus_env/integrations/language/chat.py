"""A client of an OpenAI-compatible chat endpoint: one prompt, one answer, standard library alone.

Requests go to the URL that was named and nowhere else: no redirect is followed, no proxy used. The
key is read from the environment for each request and put into its header; it is kept nowhere, and
taken out of every text that comes back.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from carolus_env.system.untrusted import DataError, cut, parse_json

_LARGEST: Final = 4 << 20  # bytes of an answer
_SHORTEST_SECRET: Final = (
    8  # characters; shorter keys are no secrets, and occur in answers by chance
)
_TEMPORARY: Final = (408, 409, 425, 429)  # and those from 500 on


class ChatError(RuntimeError):
    """A request that got no answer.

    Attributes:
        again: True: the same request may succeed later.
    """

    def __init__(self, text: str, again: bool = True) -> None:
        super().__init__(text)
        self.again = again


@dataclass(frozen=True)
class Chat:
    """An endpoint and a model. Requests may be made from several threads.

    Args:
        url: the endpoint's URL without ``/chat/completions``: ``http://localhost:8000/v1``.
        model: the model's name there.
        key: name of the environment variable that holds the key; empty: no key is sent.
        temperature: temperature of the samples; None: the endpoint's own.
        max_tokens: maximum length of an answer; None: the endpoint's own.
        timeout: seconds allowed for a request.

    Raises:
        ValueError: for a URL that is none or holds a password or a query, no model, or a ``key``
            that is not the name of a variable with a key. The text repeats neither.
    """

    url: str
    model: str
    key: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 120.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname)
            good = good and (parts.port is None or parts.port > 0)
            good = good and self.url.isascii() and self.url.isprintable() and " " not in self.url
        except ValueError:
            good = False
        if not good:
            raise ValueError("url must be that of an endpoint, such as http://localhost:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(
                "url must hold no user, password, query or fragment: it is written into results; "
                "the option key names an environment variable for the key"
            )
        if not self.model.strip():
            raise ValueError("model must be the name of a model at the endpoint")
        if self.key:
            self._secret()

    def _secret(self) -> str:
        """Return the key, never shown."""
        if not self.key:
            return ""
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,99}", self.key):
            raise ValueError(
                "key must be the name of an environment variable, in capital letters, such as "
                "OPENAI_API_KEY; it is not the key itself"
            )
        secret = os.environ.get(self.key, "").strip()
        if not secret:
            raise ValueError("the environment variable that key names is empty or not set")
        if not secret.isascii() or not secret.isprintable() or " " in secret:
            raise ValueError(
                "the environment variable that key names holds characters that no key has"
            )
        return secret

    def ask(self, prompt: str) -> str:
        """Ask the model for its answer to a prompt; empty if it has none.

        Raises:
            ChatError: when none came in time, or the endpoint refuses, or does not answer as such
                endpoints do.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
        }
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        try:
            secret = self._secret()
        except ValueError as error:
            raise ChatError(str(error), again=False) from None
        status, reason, data = self._exchange(json.dumps(body).encode(), secret)
        try:
            result = parse_json(data)
        except DataError as error:
            result = None
            trouble = str(error)
        if status != 200:
            said = _of(result, "error", "message") or data[:1000].decode(errors="replace")
            text = cut(f"HTTP {status} {reason}: {said}".replace(secret or "\0", "[key]"))
            if 300 <= status < 400:
                text = f"HTTP {status}: redirects are not followed"
            raise ChatError(text, again=status in _TEMPORARY or status >= 500)
        if result is None:
            raise ChatError(f"the endpoint's answer is {cut(trouble)}".replace(secret or "\0", ""))
        choice = _of(result, "choices", 0, "message")
        if not isinstance(choice, dict):
            raise ChatError("the endpoint's answer has no choices[0].message")
        content = choice.get("content") or ""
        if isinstance(content, list):  # a list of parts
            content = "".join(_of(part, "text") or "" for part in content)
        if not isinstance(content, str):
            raise ChatError("the endpoint's answer has no text in choices[0].message.content")
        return content.replace(secret, "[key]") if len(secret) >= _SHORTEST_SECRET else content

    def _exchange(self, body: bytes, secret: str) -> tuple[int, str, bytes]:
        """Send a request; status, its reason, and the body of the answer."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        request = Request(f"{self.url.rstrip('/')}/chat/completions", body, headers)
        end, data = time.monotonic() + self.timeout, b""
        try:
            try:
                answer = _OPENER.open(request, timeout=self.timeout)
            except HTTPError as refusal:
                answer = refusal
            with answer:
                while len(data) <= _LARGEST and (more := answer.read1(_LARGEST)):
                    data += more
                    if time.monotonic() > end:  # the timeout is for each read
                        raise TimeoutError
        except (OSError, HTTPException, ValueError) as error:
            cause = getattr(error, "reason", error)
            if isinstance(cause, TimeoutError):
                raise ChatError(f"no answer within {self.timeout:g} s") from None
            text = f"{type(cause).__name__}: {cause}".replace(secret or "\0", "[key]")
            raise ChatError(f"no answer from the endpoint ({cut(text)})") from None
        if len(data) > _LARGEST:
            raise ChatError(f"the endpoint's answer is longer than {_LARGEST:,} bytes")
        return answer.status, answer.reason, data


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        """Follow none."""


_OPENER: Final = build_opener(ProxyHandler({}), _NoRedirect)


def _of(data: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and indices in a JSON value; None if there is none."""
    for step in path:
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and len(data) > step else None
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data
