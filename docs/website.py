"""Hooks of MkDocs: the pages above docs/, and links to files that the site does not have."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages above docs/, and their names on the site."""
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.repo_url = project.get("urls", {}).get("Repository")
    config.site_url = project.get("urls", {}).get("Documentation")
    config.edit_uri = ""
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages above docs/."""
    for path, page in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ to the repository; without an address only their text is left."""
    is_above = page.file.src_uri in ABOVE.values()
    if is_above:
        markdown = re.sub(r'(\]\(|=")docs/', r"\1", markdown)
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]

    def target(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join("" if is_above else "docs", link))
        if path in ABOVE:
            return f"[{text}]({ABOVE[path]}{anchor})"
        if path.startswith("docs/") or not (ROOT / path).exists():
            return match[0]  # a page of the site, or wrong, which --strict refuses
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return LINK.sub(target, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links of notebooks, which MkDocs does not resolve, to the site's pages."""
    if page.file.src_uri.startswith("notebooks/"):
        html = re.sub(r'(href="[^":]+)\.md\b', r"\1.html", html)
    return html
