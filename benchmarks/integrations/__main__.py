"""Try the package with other libraries, each in a fresh virtual environment of its own.

    python -m benchmarks.integrations                  # all: an hour, mostly training
    python -m benchmarks.integrations torchrl skrl     # these
    python -m benchmarks.integrations --list

A library is a script ``check_NAME.py`` in this folder. It begins with two comments,

    # requires: torchrl==0.14.1 torch==2.13.0
    # example: torchrl_ppo.py

the requirements besides the package's wheel, and its files in examples/. The script runs once, with
the new environment's Python, in an empty folder outside the repository with copies of the examples:
``python check_NAME.py --example torchrl_ppo.py``. It runs the examples itself. It imports the
installed package, the library, and `checking` from this folder; and its last line is a JSON object
with ``library``, ``version``, ``checks`` (name to result), ``limits`` and ``lines``. It fails by a
non-zero exit code.

Results replace those of the same libraries in benchmarks/results/integrations.json; a library that
fails keeps its old result there. Compiled kernels are shared by libraries with the same Numba.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from carolus_env.system.files import check_writable, write_json

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parent.parent
RESULTS: Final = ROOT / "benchmarks" / "results" / "integrations.json"
LIMIT: Final = 45.0
"""Minutes that the check of one library may take, installing not included."""
KEYS: Final = {"library": str, "version": str, "checks": dict, "limits": str, "lines": int}
"""What a check script's last line must hold, and of what type."""


class CheckError(Exception):
    """A library could not be installed or checked; the text is one line."""


class Library(NamedTuple):
    """A check script and what its head says."""

    name: str
    script: Path
    requires: tuple[str, ...]
    examples: tuple[Path, ...]


def libraries(folder: Path = FOLDER, examples: Path = ROOT / "examples") -> dict[str, Library]:
    """All check scripts, by name.

    Raises:
        CheckError: for a script without requirements, or one whose example is missing.
    """
    found = {}
    for script in sorted(folder.glob("check_*.py")):
        heads: dict[str, list[str]] = {"requires": [], "example": []}
        for line in script.read_text().splitlines():
            key, _, rest = line.removeprefix("# ").partition(":")
            if line.startswith("# ") and key in heads:
                heads[key] += rest.split()
        if not heads["requires"]:
            raise CheckError(f"{script.name}: no line '# requires: NAME==VERSION ...'")
        files = tuple(examples / name for name in heads["example"])
        for file in files:
            if not file.is_file():
                raise CheckError(f"{script.name}: there is no example {file}")
        name = script.stem.removeprefix("check_")
        found[name] = Library(name, script, tuple(heads["requires"]), files)
    return found


# ------------------------------------------------------------------------------------ environments


def uv() -> list[str]:
    """The command of uv, or nothing where there is none."""
    if find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    return [found] if (found := shutil.which("uv")) else []


def build_wheel(folder: Path) -> Path:
    """The package's wheel, made in ``folder``.

    Raises:
        CheckError: when it cannot be made.
    """
    if command := uv():
        words = [*command, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    else:
        words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        words += ["--wheel-dir", str(folder), str(ROOT)]
    _call(words, "building the wheel")
    return next(folder.glob("carolus_env-*.whl"))


def make_environment(folder: Path, wheel: Path, requires: Sequence[str]) -> Path:
    """A virtual environment with the wheel and ``requires``; returns its Python.

    Raises:
        CheckError: when something cannot be installed.
    """
    python = folder / "bin" / "python"
    # With exactly this torch, a folder of wheels (PIP_FIND_LINKS) can offer a CPU build.
    wanted = ["--constraint", str(ROOT / "constraints.txt"), str(wheel), *requires]
    if command := uv():
        _call([*command, "venv", "--quiet", "--python", sys.executable, str(folder)], "making it")
        install = [*command, "pip", "install", "--quiet", "--python", str(python)]
    else:
        _call([sys.executable, "-m", "venv", str(folder)], "making the environment")
        install = [str(python), "-m", "pip", "install", "--quiet"]
    _call([*install, *wanted], f"installing {' '.join(requires)}")
    return python


def _call(words: Sequence[str], what: str) -> None:
    links = os.environ.get("PIP_FIND_LINKS")
    env = {**os.environ, **({"UV_FIND_LINKS": links} if links else {})}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"{what} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


# ------------------------------------------------------------------------------------ running


def surroundings(home: Path, cache: Path) -> dict[str, str]:
    """The environment variables of a check: nothing of this clone, and a home of its own."""
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {
        **kept,
        "HOME": str(home),
        "NUMBA_CACHE_DIR": str(cache),
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait slow few cores down
        "PYTHONUNBUFFERED": "1",
    }


def run_check(
    python: Path, library: Library, folder: Path, env: Mapping[str, str], limit: float
) -> dict[str, Any]:
    """Run a check script in ``folder`` and return the object of its last line.

    What it writes is passed on, and kept in ``folder/output.txt``.

    Args:
        python: the interpreter.
        library: what is checked.
        folder: where it runs; copies of the script and of its examples are placed there.
        env: its environment variables.
        limit: seconds until it is killed, with all that it started.

    Raises:
        CheckError: when it fails, takes longer, or prints no result at the end.
    """
    files = [library.script, *sorted(FOLDER.glob("checking.py")), *library.examples]
    for file in files:
        shutil.copy(file, folder)
    words = [str(python), str(folder / library.script.name)]
    for example in library.examples:
        words += ["--example", str(folder / example.name)]
    lines: list[str] = []
    with (
        (folder / "output.txt").open("w") as kept,
        _killed_after(words, limit, cwd=folder, env=env) as (process, late),
    ):
        for line in process.stdout:
            lines.append(line)
            kept.write(line)
            print(f"  {line}", end="", flush=True)
        code = process.wait()
    if late.is_set():
        raise CheckError(f"took longer than {limit / 60:.0f} minutes")
    if code:
        raise CheckError(f"failed with exit code {code}; what it wrote is above")
    return parsed(lines)


@contextmanager
def _killed_after(words: Sequence[str], limit: float, **options: Any) -> Iterator[Any]:
    """A process in a session of its own, which nothing of outlives the block or the limit."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    late = threading.Event()

    def kill() -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    timer = threading.Timer(limit, lambda: (late.set(), kill()))
    timer.start()
    try:
        yield process, late
    finally:
        timer.cancel()
        kill()
        process.wait()


def parsed(lines: Sequence[str]) -> dict[str, Any]:
    """The result in the last line that is one.

    Raises:
        CheckError: when there is none, or it lacks something.
    """
    for line in reversed(lines):  # a library may write something when it is left
        if line.startswith("{"):
            break
    else:
        raise CheckError("printed no result: the last line must be a JSON object")
    try:
        result: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise CheckError(f"printed no result: {error}") from None
    for key, kind in KEYS.items():
        if not isinstance(result.get(key), kind):
            raise CheckError(f"{key!r} must be a {kind.__name__}, got {result.get(key)!r}")
    if not result["checks"]:
        raise CheckError("made no checks")
    return result


def about(python: Path, folder: Path, env: Mapping[str, str]) -> str:
    """The line of benchmarks/machine.py, with the versions of the library's environment."""
    shutil.copy(FOLDER.parent / "machine.py", folder)
    done = subprocess.run(
        [python, "-c", "from machine import line; print(line())"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def check(library: Library, wheel: Path, base: Path, limit: float) -> dict[str, Any]:
    """Install and check one library; returns its row of the results.

    Raises:
        CheckError: when that fails.
    """
    begun = time.perf_counter()
    folder = base / library.name
    work = folder / "work"
    work.mkdir(parents=True)
    python = make_environment(folder / "venv", wheel, library.requires)
    installed = time.perf_counter()
    code = "import numba; print(numba.__version__)"
    version = subprocess.check_output([python, "-c", code], cwd=work, text=True).strip()
    # A cache holds kernels of one Numba: another would replace them.
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or base / "kernels")
    if version != metadata.version("numba"):
        cache /= f"numba-{version}"
    env = surroundings(work, cache)
    print(f"{library.name}: installed in {installed - begun:.0f} s, Numba {version}", flush=True)
    result = run_check(python, library, work, env, limit)
    return {
        "name": library.name,
        **{key: result[key] for key in KEYS},
        "requires": list(library.requires),
        "examples": [example.name for example in library.examples],
        "seconds": round(time.perf_counter() - installed, 1),
        "machine": about(python, work, env),
    }


def merged(old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of both by name, the new ones instead of old ones."""
    rows = {row["name"]: row for row in (*old, *new)}
    return [rows[name] for name in sorted(rows)]


# ------------------------------------------------------------------------------------ command


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the libraries; returns 0 when all of them passed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.integrations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="default: all")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help=f"minutes a library (default: {LIMIT:g})"
    )
    parser.add_argument("--json", type=Path, default=RESULTS, help="where results are merged into")
    options = parser.parse_args(arguments)
    try:
        known = libraries()
        check_writable(options.json)
    except (CheckError, OSError) as error:
        parser.error(str(error))
    if unknown := sorted(set(options.libraries) - set(known)):
        parser.error(f"unknown library {unknown[0]!r}; known are {', '.join(known)}")
    if not 0 < options.limit < 1e6:
        parser.error(f"--limit must be above 0, got {options.limit:g}")
    if options.list:
        for library in known.values():
            print(f"{library.name:12} {' '.join(library.requires)}")
        return 0
    chosen = [known[name] for name in dict.fromkeys(options.libraries)] or list(known.values())
    base = Path(tempfile.mkdtemp(prefix="carolus-integrations-"))
    try:
        return run(chosen, base, options.json, 60 * options.limit, options.keep)
    except CheckError as error:  # no wheel
        print(error, file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"kept: {base}")
        else:
            shutil.rmtree(base, ignore_errors=True)


def run(chosen: Sequence[Library], base: Path, file: Path, limit: float, keep: bool) -> int:
    """Check libraries one after another; the results are written after each.

    Raises:
        CheckError: when the wheel cannot be made.
    """
    wheel = build_wheel(base)
    failed = []
    for library in chosen:
        try:
            row = check(library, wheel, base, limit)
        except CheckError as error:
            print(f"{library.name}: {error}", file=sys.stderr, flush=True)
            failed.append(library.name)
        else:
            old = json.loads(file.read_text()) if file.exists() else []
            write_json(file, merged(old, [row]))
            print(f"{library.name}: passed in {row['seconds']:.0f} s", flush=True)
        if not keep:
            shutil.rmtree(base / library.name, ignore_errors=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
