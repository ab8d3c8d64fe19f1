"""Relative links in the repository's pages, for readers who see the pages somewhere else.

The site (docs/website.py) and the package index (docs/long_description.py) show these pages without
the files around them. The repository's address is written once, in ``[project.urls]`` of
pyproject.toml as ``Repository``. With it such links lead there; without it only their text is left.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent

Target = Callable[[str, bool], str | None]
"""Where a relative link leads, and whether it is a picture; None: nowhere, only text is left."""

_PARTS = re.compile(
    r"(?P<fence>^(?P<marks>```+|~~~+).*?^(?P=marks)[ ]*$)"
    r"|(?P<image>!?)\[(?P<text>(?:!\[[^\]]*\]\([^)]*\)|[^\[\]]|\[[^\[\]]*\])*)\]"
    r"\((?P<link>[^)\s]+)(?P<title>\s+\"[^\"]*\")?\)"
    r"|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<attribute>\b(?:src|srcset|href)=)\"(?P<value>[^\"]+)\"",
    re.DOTALL | re.MULTILINE,
)


def addresses(root: Path = ROOT) -> dict[str, str]:
    """``[project.urls]`` of pyproject.toml; empty while the project has no public address."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return dict(project.get("urls", {}))


def is_relative(link: str) -> bool:
    """Whether a link leads to a file: no scheme, and not only an anchor."""
    return not re.match(r"[a-z][a-z0-9+.-]*:|//|/|#", link, re.IGNORECASE)


def resolved(page: str, link: str) -> tuple[str, str]:
    """The file in the repository that a page's link leads to, and the anchor with its ``#``."""
    path, hash_, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), hash_ + anchor


def relinked(text: str, target: Target) -> str:
    """The Markdown with every relative link, outside of code, led to its target."""

    def part(found: re.Match[str]) -> str:
        if found["link"] is not None:
            words, is_image = found["text"], bool(found["image"])
            if not is_image:
                words = relinked(words, target)  # a picture may be a link
            if not is_relative(found["link"]):
                return f"{found['image']}[{words}]({found['link']}{found['title'] or ''})"
            link = target(found["link"], is_image)
            if link is None:
                return words
            return f"{found['image']}[{words}]({link}{found['title'] or ''})"
        if found["attribute"] and is_relative(found["value"]):
            link = target(found["value"], found["attribute"] != "href=")
            return f'{found["attribute"]}"{link or ""}"'
        return found[0]

    return _PARTS.sub(part, text)


def in_repository(address: str | None, version: str, path: str, is_image: bool) -> str | None:
    """The address of a file at a tag or branch; None while the repository has no address."""
    if not address:
        return None
    return f"{address.rstrip('/')}/{'raw' if is_image else 'blob'}/{version}/{path}"


def away(text: str, page: str, address: str | None, version: str) -> str:
    """A page for readers who have no other file of the repository: all relative links lead there.

    Args:
        text: the page, Markdown.
        page: its path in the repository.
        address: the repository's; None leaves the text of links, and of pictures nothing.
        version: the tag or branch that links lead to.
    """

    def target(link: str, is_image: bool) -> str | None:
        path, anchor = resolved(page, link)
        found = in_repository(address, version, path, is_image)
        return found and found + anchor

    text = relinked(text, target)
    if not address:  # a frame of pictures without pictures
        text = re.sub(r"<picture>.*?</picture>\n*", "", text, flags=re.DOTALL)
    return text
