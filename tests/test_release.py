"""A release says the same of itself everywhere; its sdist and wheel are installed and used."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from integrations import Library, install
from test_docs import SNIPPETS

import carolus_env
from carolus_env.system.compiler import cache_folders

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


def test_an_older_python_is_refused_and_pull_requests_try_the_oldest():
    """In a clone; pip reads `requires-python`."""
    version = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1]
    code = f"import sys; sys.version_info = (3, {int(version) - 1}, 13); import carolus_env"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"ImportError: Carolus needs Python 3.{version} or newer; this is" in done.stderr
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


GYMNASIUM = """
import gymnasium
env = gymnasium.make('carolus_env:CarolusMagnus-v0', players=3)
_, info = env.reset(seed=1)
print(env.step(int(info['action_mask'].argmax()))[1])
"""
SCRIPTS = "import sys\nfor script in sys.argv[1:]: exec(script, {'__name__': '__main__'})"


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of the sdist, and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--outdir", folder, ROOT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode and "ConnectionError" in done.stdout + done.stderr:
        pytest.skip("no package registry can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel_and_sdist_hold_what_they_should_and_an_index_would_take_both(dist):
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    data = ("evaluation/ladder.json", "networks/models/value_2p.safetensors")
    for file in (*data, "py.typed", "play/static/index.html", "commands/train.py"):
        assert f"carolus_env/{file}" in names
    about = "-".join(wheel.name.split("-")[:2]) + ".dist-info"
    assert {name.partition("/")[0] for name in names} == {"carolus_env", about}
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"pyproject.toml", "train.py", "tests/test_release.py", "examples/ppo_torch.py"}
    assert names >= {*wanted, "agents/value_2p.toml"}
    assert not any(name.startswith(("runs/", ".venv/", ".ci/", ".git/")) for name in names)
    command = [sys.executable, "-m", "twine", "check", "--strict", wheel, sdist]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_extras_all_works_or_says_what_it_needs_before_it_begins(dist, tmp_path):
    [wheel] = dist.glob("*.whl")
    programs = install(tmp_path / "venv", wheel, Library("")).parent
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")  # modules are compiled once
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    if (kernels := cache_folders()[0]) is not None:  # they are of the same sources
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "carolus_env").symlink_to(kernels)
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    def run(program, *words, code=0):
        command = [programs / program, *words]
        given = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run(command, **given)
        assert done.returncode == code, done.stderr
        return done

    run("carolus", "dataset", "random", "--games", "10", "--out", "data")
    assert (tmp_path / "data" / "README.md").stat().st_size > 100
    for name in ("train", "evaluate"):
        assert f"rich is missing; {name} needs the extra" in run("carolus", name, code=1).stderr
    assert "carolus-env[play]" in run("carolus", "play", "--no-open", code=1).stderr
    snippets = [snippet for snippet in SNIPPETS if "sb3_contrib" not in snippet]
    assert run("python", "-c", SCRIPTS, GYMNASIUM, *snippets).stdout.startswith("0.0\n")
