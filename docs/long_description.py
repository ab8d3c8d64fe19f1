"""The page of the package on an index: README.md, whose relative links would lead nowhere there.

A metadata hook of hatch (pyproject.toml names it): it runs when a wheel or an sdist is built.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import links


class LongDescription(MetadataHookInterface):
    """Sets the field ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Lead links to the tag of this version, where ``[project.urls]`` has the repository."""
        address = metadata.get("urls", {}).get("Repository")
        text = (Path(self.root) / "README.md").read_text()
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": links.away(text, "README.md", address, f"v{metadata['version']}"),
        }
