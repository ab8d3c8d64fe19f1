"""The navigation of the site holds every page; `make docs` builds it and follows its links."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_page_is_in_the_navigation_once_and_nothing_else():
    navigation = re.findall(
        r"^ +- [^:\n]+: (\S+\.(?:md|py))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in (*docs.glob("*.md"), *docs.glob("*/*.py"))}
    assert set(navigation) == pages | {"index.md", "contributing.md", "changelog.md"}
    assert len(navigation) == len(set(navigation))
