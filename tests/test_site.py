"""The site: all pages are in its navigation, links lead somewhere, public names are explained.

`make docs` builds it; here is what needs none of its packages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import links  # noqa: E402
import names  # noqa: E402

SITE = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_navigation_once_and_nothing_else():
    navigation = re.findall(r"^ +- [^:\n]+: (\S+\.md)$", SITE, re.MULTILINE)
    pages = {path.name for path in ROOT.glob("docs/*.md")}
    notebooks = {f"notebooks/{path.stem}.md" for path in ROOT.glob("docs/notebooks/*.py")}
    made = {"index.md", "contributing.md", "changelog.md", "api/index.md"}
    assert set(navigation) == pages | notebooks | made
    assert len(navigation) == len(set(navigation))


def test_public_names_have_docstrings_but_those_that_wait():
    assert names.lacking() == sorted(names.WAITING), "see docs/names.py"


def test_a_name_without_a_docstring_is_seen(tmp_path):
    package = tmp_path / "carolus_env"
    (package / "a").mkdir(parents=True)
    (package / "__init__.py").write_text(
        '"""Door."""\nfrom carolus_env.a.x import B, SIZE\n__all__ = ["B", "SIZE"]\n'
    )
    (package / "a" / "__init__.py").write_text("")
    (package / "a" / "_private.py").write_text("def f(): pass\n")
    (package / "a" / "x.py").write_text(
        '"""X."""\nSIZE = 3\nOTHER = 4\n\n'
        'class A:\n    """A."""\n    def told(self):\n        """Told."""\n'
        "    def _own(self): pass\n\n"
        'class B(A):\n    """B."""\n    def told(self): pass\n    def new(self): pass\n'
    )
    inside = "carolus_env.a"
    assert names.lacking(tmp_path) == [inside, f"{inside}.x.B.new", f"{inside}.x.SIZE"]
    assert names.source_of("carolus_env", "B", tmp_path) == f"{inside}.x.B"


def test_links_are_led_elsewhere_but_not_in_code():
    text = (
        "[a `b`](c.md#d) ![p](e.png) [web](https://example.org) [here](#top)\n"
        '`[no](x.md)` <img src="f.svg"> [![p](g.png)](h.md)\n'
        "```\n[no](y.md)\n```\n[two\nlines](z.md)\n"
    )
    seen = []

    def target(link: str, is_image: bool) -> str | None:
        seen.append((link, is_image))
        return None if link == "z.md" else f"at/{link}"

    assert links.relinked(text, target) == (
        "[a `b`](at/c.md#d) ![p](at/e.png) [web](https://example.org) [here](#top)\n"
        '`[no](x.md)` <img src="at/f.svg"> [![p](at/g.png)](at/h.md)\n'
        "```\n[no](y.md)\n```\ntwo\nlines\n"
    )
    assert seen == [
        ("c.md#d", False),
        ("e.png", True),
        ("f.svg", True),
        ("g.png", True),
        ("h.md", False),
        ("z.md", False),
    ]
