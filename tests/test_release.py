"""What a release says of itself is the same everywhere, and holds for readers without the clone."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import carolus_env

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, HATCH = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]
RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text()
README = (ROOT / "README.md").read_text()


def cited(key: str) -> str | None:
    """A top-level value of CITATION.cff."""
    result = re.search(rf"^{key}: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    return result and result[1].strip("\"'")


def test_version_and_address_are_the_same_everywhere():
    assert cited("repository-code") == PROJECT.get("urls", {}).get("Repository")
    version = carolus_env.__version__
    assert cited("version") == version
    assert re.findall(r'^  version: "(.*)"', RECIPE, re.MULTILINE) == [version]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest, date = re.search(r"^## (\S+) - (\S+)$", changelog, re.MULTILINE).groups()
    assert newest == version
    assert cited("date-released") == (None if date == "unreleased" else date)


def test_an_older_python_is_told_which_is_needed():
    """In a clone; pip reads `requires-python`."""
    version = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1]
    code = f"import sys; sys.version_info = (3, {int(version) - 1}, 13); import carolus_env"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: Carolus needs Python 3.{version} or newer; this is" in done.stderr


def test_the_matrix_of_pull_requests_begins_with_the_oldest_python():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    pythons = re.search(r"python: \[(.*)\]", workflow)[1].replace('"', "").split(", ")
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    supported = [f"Programming Language :: Python :: {python}" for python in pythons]
    assert set(supported) <= set(PROJECT["classifiers"])


def test_the_recipe_needs_what_the_package_needs():
    host, run = re.search(r"  host:\n(.*?)\n  run:\n(.*?)\n\n", RECIPE, re.DOTALL).groups()
    needed = [PROJECT["requires-python"], *PROJECT["dependencies"]]
    needed[0] = f"python{needed[0]}"
    assert [line.strip("- ").replace(" ", "") for line in run.splitlines()] == needed
    build = PYPROJECT["build-system"]["requires"]
    packages = [line.strip("- ").replace(" ", "") for line in host.splitlines()]
    assert packages == [needed[0], "pip", *build]
    for name, entry in PROJECT["scripts"].items():
        assert f"- {name} = {entry}\n" in RECIPE
    for file in PROJECT["license-files"]:
        assert f"- {file}\n" in RECIPE


def test_the_page_of_a_package_index_has_no_relative_links():
    text = README
    for part in HATCH["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(part["pattern"], part["replacement"], text)
    assert not re.findall(r"\]\((?!https?:|#)", text)
    assert "<picture>" not in text
    assert "see CITATION.cff and" in text
    assert text.count("```") == README.count("```"), "code stays as it is"
