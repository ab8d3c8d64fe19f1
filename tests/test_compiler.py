"""The cache of compiled kernels: never stale, never in the way, silent when warm; strange Numbas.

Processes on a copy of the package work out a payoff, which compiles in a second.
"""

import collections
import contextlib
import importlib
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, NamedTuple

import numba
import numpy as np
import pytest

from carolus_env.system import arrays, compiler, machine

PACKAGE = Path(__file__).parent.parent / "carolus_env"
PAYOFFS = """
import numpy as np
from carolus_env import engine
from carolus_env.engine import state
states = np.zeros(1, state.STATE)
states["players"], states["teams"], states["winners"], states["team"][0, 1] = 2, 2, 1, 1
print(engine.returns(states).tolist())
"""
RIGHT, CHANGED = "[[1.0, -1.0]]\n", "[[0.0, -2.0]]\n"
NOTICE = f"{compiler.notice.TEXT}\n"


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def stamp(module, file):
    """The stamp of a function of a module."""
    code = SimpleNamespace(co_filename=str(file))
    return compiler.sources_stamp(SimpleNamespace(__module__=module, __code__=code))


@pytest.fixture
def package(tmp_path):
    """A copy of the package to be changed at will: with Python's bytecode, without kernels."""
    without = shutil.ignore_patterns("*.nbc", "*.pyc.*", ".*")
    shutil.copytree(PACKAGE, tmp_path / "carolus_env", ignore=without)
    (tmp_path / "temporary").mkdir()
    return tmp_path / "carolus_env"


def process(package, before="", after="", pass_fds=(), **environment):
    """Start a process that prints the payoffs; without a home, a cache folder of its own only."""
    away, parent = re.compile("HOME$|XDG_CACHE_HOME$|NUMBA_"), package.parent
    variables = {name: value for name, value in os.environ.items() if not away.match(name)}
    variables |= {"PYTHONPATH": str(parent), "TMPDIR": str(parent / "temporary")}
    return subprocess.Popen(
        [sys.executable, "-c", before + PAYOFFS + after],
        env={**variables, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd=parent,
        pass_fds=pass_fds,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(package, before="", after="", **environment):
    """What the process says on stdout and stderr."""
    return process(package, before, after, **environment).communicate(timeout=300)


def test_a_change_in_a_kernels_file_is_compiled_by_the_next_process(package):
    """Numba itself looks at the entry's file alone, which stays as it is."""
    assert run(package) == (RIGHT, NOTICE)  # one line
    assert run(package) == (RIGHT, "")  # and only when it compiles
    source = package / "engine" / "kernels" / "turns.py"
    share, text = "teams * wins - ", source.read_text()
    assert text.count(f"{share}sharing") == 1
    source.write_text(text.replace(f"{share}sharing", f"{share}2 * sharing"))
    assert run(package) == (CHANGED, NOTICE)
    assert run(package) == (CHANGED, "")
    assert list((package / "__pycache__" / "kernels").glob("*.nbc"))


def test_a_terminal_shows_what_is_compiled(package):
    main, side = pty.openpty()
    code = f"import sys; sys.stderr = open({side}, 'w', buffering=1)\n"
    compiling = process(package, code, pass_fds=[side])
    out, _ = compiling.communicate(timeout=300)
    os.close(side)
    output = b""
    with contextlib.suppress(OSError):  # the end of what a terminal was told
        while part := os.read(main, 65536):
            output += part
    assert out == RIGHT
    first, *rest = output.decode().replace("\r\n", "\n").splitlines()
    assert first == NOTICE.strip()
    assert "_write_returns of engine.play (number 1, " in "".join(rest)
    assert output.endswith(b"\x1b[2K"), "and nothing stays behind"


def test_with_the_compiler_off_nothing_is_compiled_or_saved(package):
    assert run(package, NUMBA_DISABLE_JIT="1") == (RIGHT, "")
    assert not list(package.rglob("*.nbc"))


MAKERS = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if re.search("^@(kernel|entry|separate|inlined)$", path.read_text(), re.M)
)


def test_an_entry_hashes_every_room_that_its_kernels_can_come_from_and_no_other():
    """Else an edit of the page, or of a bot, would compile the engine anew."""
    assert len(MAKERS) > 15
    for maker in MAKERS:
        own = machine.room_of(maker)
        rooms = {name.partition("/")[0] for name in machine.room_sources(own)}
        below = machine.ROOMS[: machine.ROOMS.index(own)] if own in machine.ROOMS else machine.ROOMS
        assert rooms == {own, *below}
        path = PACKAGE.parent / f"{maker.replace('.', '/')}.py"
        for used in machine._imports(path.read_bytes(), maker, is_package=False):
            assert machine.room_of(used) in {None, *rooms}, f"{maker} uses {used}"


def test_a_change_in_any_hashed_file_changes_the_stamp_a_users_own_file_among_them(
    package, monkeypatch, tmp_path
):
    monkeypatch.setattr(machine, "PACKAGE", package)
    own = tmp_path / "my_bot.py"
    own.write_text("DEPTH = 1\n")
    files = [package / name for name in machine.room_sources("envs") if name.endswith(".py")]
    assert package / "engine" / "rules.py" in files
    cases = [("carolus_env.envs.turns", "", path) for path in files]
    cases += [("my_bot", str(own), path) for path in (own, package / "bots" / "baselines.py")]
    monkeypatch.setattr(compiler, "_package_stamp", compiler._package_stamp.__wrapped__)
    constants = 0
    for maker, file, path in cases:
        text, before = path.read_text(), stamp(maker, file)
        constant = re.compile(r"^([A-Z_]+(?:: Final)? = )(\d+)$", re.M)
        changed = constant.sub(r"\g<1>\g<2>0", text, count=1)
        constants += changed != text
        path.write_text(changed if changed != text else text + "NEW = 1\n")
        assert stamp(maker, file) != before, path
    assert constants >= 5


USERS = {
    "v1/bot.py": "import helper, sys\nfrom part import (  # a comment\n    deep,\n)\n",
    "v1/helper.py": "def f():\n    from \\\n        other import SIZE\n",
    "v1/other.py": "SIZE = 3\n",
    "v1/part/__init__.py": "from .near import x\n",
    "v1/part/near.py": "from . import deep\nx = 1\n",
    "v1/part/deep.py": "import library.kernels as k\n",
    "lib/library/__init__.py": "",
    "lib/library/kernels.py": "def f():\n    import numpy, no_such\n",
}


def test_a_users_module_is_hashed_with_every_module_of_theirs_that_it_imports(
    tmp_path, monkeypatch
):
    """Beside it or loaded from elsewhere, whole packages, and what these import in turn."""
    for name, source in {**USERS, "v1/unused.py": "", "v1/x/helper.py": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    importlib.import_module("library.kernels")
    bot, other = tmp_path / "v1" / "bot.py", tmp_path / "v2" / "bot.py"
    hashed = machine.user_sources("bot", bot)
    assert {name.removeprefix(f"{tmp_path}/lib/") for name in hashed} == {
        re.sub("^(v1|lib)/", "", name) for name in USERS
    }
    for name in USERS:
        before = stamp("bot", bot)
        (tmp_path / name).write_text((tmp_path / name).read_text() + "# more\n")
        assert stamp("bot", bot) != before, name
    shutil.copytree(tmp_path / "v1", tmp_path / "v2")

    def entry_file(path):
        names = {"__name__": "bot"}
        exec(compile("def choose(): pass", str(path), "exec"), names)
        cache = compiler._EntryCache((names["choose"],))
        return cache._name((), numba.njit(lambda: None).targetctx.codegen())

    assert entry_file(bot) == entry_file(bot) != entry_file(other), "two bots, two files"


def test_tuples_with_other_fields_are_other_code():
    here = collections.namedtuple("InProcess", "width depth")
    swapped = collections.namedtuple("InProcess", "depth width")
    described = [compiler._with_fields(numba.typeof((kind(1, 2), 3))) for kind in (here, swapped)]
    assert "('width', 'depth')" in described[0] and "('depth', 'width')" in described[1]
    assert compiler._with_fields(numba.int64) == "int64"


class Memory(NamedTuple):
    table: Annotated[arrays.I16, 3, "width"]
    other: Annotated[list[np.int16], "width"]


def test_memory_has_the_types_of_its_annotations_which_numpy_spells_in_two_ways():
    """From 2.5 on `NDArray[np.int16]` is an alias whose one argument is the scalar, as a list's."""
    table, other = arrays.allocate(Memory, width=2)
    assert (table.shape, other.shape) == ((3, 2), (2,))
    assert table.dtype == other.dtype == np.int16


FROM_PYTHON = """
from carolus_env.engine.kernels import turns
print(turns.team_win_share(states[0], 0), turns.team_win_share(states[0], 1))
import sys
linking = sys.modules.get("carolus_env.system.linking")
print(linking is not None and linking.linking_works())
"""


@pytest.mark.parametrize(
    ("change", "links", "said"),
    [
        ("", True, ""),  # where it is False, all is well but slow: then `linking` is to be mended
        slow("del codegen.JITCodeLibrary", False, ""),
        slow("compiler.CompileResult._replace = None", False, ""),
        slow("del next(c for c in cpu.CPUTargetOptions.mro() if '_nrt' in vars(c))._nrt", True, ""),
        slow("caching.NullCache = None", None, "code cannot be kept with Numba"),
        slow(
            "caching.NullCache = type('', (), dict(load_overload=lambda self: 0))",
            *(None, "load_overload takes other arguments"),
        ),
        ("compiler.CompileResult._reduce = None", None, "compiled code could not be kept in"),
        slow("compiler.CompileResult._rebuild = None", None, "ignoring the kernel cache"),
    ],
)
def test_a_strange_version_of_numba_compiles_plainly_or_in_every_process(
    package, change, links, said
):
    before = f"from numba.core import caching, codegen, compiler, cpu\n{change}\n"
    if not said:
        result = run(package, before, FROM_PYTHON)
        assert result == (f"{RIGHT}1.0 0.0\n{links}\n", NOTICE)
        assert run(package, before) == (RIGHT, "")
        return
    if "_rebuild" in change:  # there must be something to read
        run(package)
    out, err = run(package, before)
    assert out == RIGHT and said in err


OWN = "package/__pycache__/kernels"


@pytest.mark.parametrize(
    ("own", "environment", "kept_in"),
    [
        ("free", {}, OWN),
        ("free", {"HOME": "home"}, OWN),
        ("free", {"NUMBA": "n"}, "n/carolus_env"),
        ("taken", {"HOME": "h"}, "h/.cache/carolus_env"),
        ("taken", {"HOME": "h", "XDG_CACHE_HOME": "x"}, "x/carolus_env"),
        ("taken", {"TEMP": "t"}, f"t/carolus_env-{os.getuid()}"),
        ("open", {"TEMP": "t"}, f"t/carolus_env-{os.getuid()}"),  # others can write, code is run
        ("taken", {}, None),
    ],
)
def test_compiled_code_is_saved_in_the_first_folder_of_ones_own(
    tmp_path, monkeypatch, own, environment, kept_in
):
    folder = tmp_path / OWN
    folder.parent.mkdir(parents=True)
    if own == "taken":
        folder.write_text("in the way, for a user whom permissions do not stop")
    if own == "open":
        folder.mkdir()
        folder.chmod(0o777)
    given = {name: str(tmp_path / value) for name, value in environment.items()}
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, given.get(name, ""))
    monkeypatch.setattr(machine, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(numba.config, "CACHE_DIR", given.get("NUMBA", ""))
    (tmp_path / "t").mkdir()

    def temporary():
        if "TEMP" not in given:
            raise FileNotFoundError("no usable temporary directory")
        return given["TEMP"]

    monkeypatch.setattr(compiler.tempfile, "gettempdir", temporary)
    assert compiler.cache_folders.__wrapped__()[0] == (kept_in and tmp_path / kept_in)


def test_code_of_root_or_the_packages_owner_is_read_by_users_who_cannot_write_there(package):
    """As in a container that was warmed up when it was built; it must not be anybody's code."""
    folder, another_user = package / "__pycache__" / "kernels", "import os; os.getuid = lambda: 7\n"
    assert run(package) == (RIGHT, NOTICE)
    modes = {path.stat().st_mode & 0o777 for path in (folder, *folder.glob("*.nbc"))}
    assert modes <= {0o755, 0o644}, "others can read it"
    assert run(package, another_user) == (RIGHT, "")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    folder.chmod(0o777)
    assert run(package, another_user) == (RIGHT, NOTICE)
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o646])
@pytest.mark.parametrize("owner", ["user", "root", "package", "stranger"])
def test_files_are_trusted_that_only_those_can_write_whose_code_runs_anyway(
    tmp_path, monkeypatch, mode, owner
):
    file = tmp_path / "code"
    file.write_bytes(b"code")
    file.chmod(mode)
    status = file.stat()
    owners = {"user": 1000, "root": 0, "package": 2000, "stranger": 3000, "unnamed": 4000}

    def stat(path, *_, **__):
        name = "package" if path == machine.PACKAGE else owner
        return os.stat_result((*status[:4], owners[name], *status[5:]))

    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "stat", stat)
    trusted = owner != "stranger" and mode == 0o644
    assert compiler._read_trusted(file) == (b"code" if trusted else b"")


BOT = """
import numpy as np
from pathlib import Path
import helper
from carolus_env.system.compiler import entry, kernel

TABLE = np.fromfile("table", np.int64)
NUMBER, TEXT = int(Path("number").read_text()), Path("text").read_text()
BOTH = (TABLE[0], (NUMBER, TEXT))

def make():
    number = int(Path("closure").read_text())

    @kernel
    def closed(index):
        return number + index

    return closed

CLOSED = make()

if Path("chosen").read_text() == "1":
    def chosen(index): return index + 1
else:
    def chosen(index): return index + 2
CHOSEN = kernel(chosen)

@kernel
def inner(index, weight=int(Path("default").read_text())):
    return TABLE[index] + weight

@entry
def answer(index):
    return inner(index) + NUMBER + len(TEXT) + BOTH[0] + helper.SIZE + CLOSED(index) + CHOSEN(index)
"""
FILES = ("table", "number", "text", "size", "closure", "default", "chosen")
"""Files that constants of the bot's kernels are read from, or that choose a kernel."""


@pytest.fixture
def bot(tmp_path):
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "helper.py").write_text("SIZE = int(open('size').read())\n")
    for name in FILES:
        (tmp_path / name).write_bytes(bytes(8) if name == "table" else b"1")
    return tmp_path / "bot.py"


@pytest.mark.parametrize("changed", FILES)
def test_code_follows_the_values_that_a_users_kernels_take_from_files(bot, monkeypatch, changed):
    monkeypatch.chdir(bot.parent)
    monkeypatch.syspath_prepend(bot.parent)

    def constants():
        monkeypatch.delitem(sys.modules, "helper", raising=False)
        names = {"__name__": "bot"}
        exec(compile(bot.read_text(), str(bot), "exec"), names)
        return [*compiler._constants((names["answer"].py_func,), frozenset(), set())]

    before = constants()
    assert constants() == before
    bot.with_name(changed).write_bytes(b"2" * 8)
    assert constants() != before


def test_a_bot_whose_table_changed_is_compiled_anew(bot):
    code = "import bot; print(bot.answer(0))"
    where = {"PYTHONPATH": f"{bot.parent}:{PACKAGE.parent}", "NUMBA_CACHE_DIR": str(bot.parent)}

    def answer():
        command, environment = [sys.executable, "-c", code], {**os.environ, **where}
        given = {"cwd": bot.parent, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run(command, **given, check=True, timeout=300)
        return int(done.stdout), done.stderr

    assert answer() == (6, NOTICE)
    assert answer() == (6, "")
    bot.with_name("table").write_bytes((3).to_bytes(8, sys.byteorder))
    assert answer() == (12, NOTICE)


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.slow
def test_a_damaged_cache_file_only_costs_time_and_is_a_good_one_afterwards(package):
    assert run(package)[0] == RIGHT
    kinds = (lambda data: data[: len(data) // 2], flipped, lambda data: b"\x80", lambda data: b"")
    for damage in kinds:
        for file in (package / "__pycache__" / "kernels").glob("*.nbc"):
            file.write_bytes(damage(file.read_bytes()))
        assert run(package) == (RIGHT, NOTICE)
        assert run(package) == (RIGHT, "")
    assert run(package, NUMBA_BOUNDSCHECK="1") == (RIGHT, NOTICE), "code with checks is other code"


@pytest.mark.slow
def test_code_that_cannot_be_written_is_compiled_again_and_processes_compile_together(package):
    full = "def replace(*_): raise OSError('disk full')\nimport pathlib\n"
    out, err = run(package, f"{full}pathlib.Path.replace = replace\n")
    assert out == RIGHT and "compiled code could not be kept in" in err and "disk full" in err
    together = [process(package) for _ in range(4)]
    assert {one.communicate(timeout=300)[0] for one in together} == {RIGHT}
    assert run(package) == (RIGHT, "")
