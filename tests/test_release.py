"""What a release says of itself is the same everywhere, and holds for readers without the clone."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import carolus_env

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import links  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text()
README = (ROOT / "README.md").read_text()


def cited(key: str) -> str | None:
    """A top-level value of CITATION.cff."""
    found = re.search(rf"^{key}: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    return found and found[1].strip("\"'")


def test_the_version_is_the_same_everywhere():
    version = carolus_env.__version__
    assert cited("version") == version
    assert re.findall(r'^  version: "(.*)"', RECIPE, re.MULTILINE) == [version]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest, date = re.search(r"^## (\S+) - (\S+)$", changelog, re.MULTILINE).groups()
    assert newest == version
    assert cited("date-released") == (None if date == "unreleased" else date)


def test_the_recipe_needs_what_the_package_needs():
    host, run = re.search(r"  host:\n(.*?)\n  run:\n(.*?)\n\n", RECIPE, re.DOTALL).groups()
    needed = [PROJECT["requires-python"], *PROJECT["dependencies"]]
    needed[0] = f"python{needed[0]}"
    assert [line.strip("- ").replace(" ", "") for line in run.splitlines()] == needed
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    packages = [line.strip("- ").replace(" ", "") for line in host.splitlines()]
    assert packages == [needed[0], "pip", *build]
    for name, entry in PROJECT["scripts"].items():
        assert f"- {name} = {entry}\n" in RECIPE
    for file in PROJECT["license-files"]:
        assert f"- {file}\n" in RECIPE


def test_addresses_are_those_of_pyproject():
    addresses = links.addresses()
    assert cited("repository-code") == addresses.get("Repository")
    site = (ROOT / "mkdocs.yml").read_text()
    assert not re.search(r"^(repo_url|site_url)", site, re.MULTILINE)


def relative(text: str) -> list[str]:
    """The relative links and pictures of a page, outside of code."""
    found: list[str] = []
    links.relinked(text, lambda link, _: found.append(link))
    return found


def test_the_long_description_leads_to_the_repository_at_the_tag():
    assert "docs/images/play.png" in relative(README) and "CITATION.cff" in relative(README)
    text = links.away(README, "README.md", "https://example.org/me/it", "v9.9")
    assert relative(text) == []
    assert "](https://example.org/me/it/blob/v9.9/docs/rules.md)" in text
    assert "](https://example.org/me/it/raw/v9.9/docs/images/play.png)" in text
    assert 'src="https://example.org/me/it/raw/v9.9/docs/images/board_light.svg"' in text
    assert 'srcset="https://example.org/me/it/raw/v9.9/docs/images/board_dark.svg"' in text


def test_without_an_address_the_long_description_has_the_words_without_links():
    text = links.away(README, "README.md", None, "v9.9")
    assert relative(text) == []
    assert "picture>" not in text
    assert "See CITATION.cff." in text
    assert text.count("```") == README.count("```"), "code stays as it is"
