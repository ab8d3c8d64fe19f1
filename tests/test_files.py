"""Files: whole after any failure, named in every error, and written by one at a time."""

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tournament import saved_games

from carolus_env import evaluation
from carolus_env.commands import evaluate
from carolus_env.engine.rules import Rules
from carolus_env.engine.state import STATE
from carolus_env.evaluation import tournament
from carolus_env.records import arrays, read_records, write_records
from carolus_env.system import files
from carolus_env.system.files import (
    BusyError,
    Log,
    check_writable,
    locked,
    read_lines,
    replacing,
    write_file,
)

resource = pytest.importorskip("resource")


@pytest.fixture
def largest(monkeypatch):
    """Set the size at which the system lets no file grow further, as ``ulimit -f`` does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        soft = before[0] if size is None else size
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, before[1]))

    yield limit
    limit(None)


# ------------------------------------------------------------------------------------ logs


def test_a_block_that_does_not_fit_is_an_error_and_leaves_whole_blocks(tmp_path, largest):
    path = tmp_path / "log"
    with Log.create(path, b"header\n") as log:
        log.append(b"one\n" * 100)
        largest(500)
        with pytest.raises(OSError, match=r"File too large: .*log'"):
            log.append(b"two\n" * 100)
        largest(None)
        assert path.read_bytes() == b"header\n" + b"one\n" * 100
        log.append(b"three\n")
    assert path.read_bytes() == b"header\n" + b"one\n" * 100 + b"three\n"


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), 0, None])
def test_a_block_is_written_in_parts_or_not_at_all(tmp_path, monkeypatch, failure):
    write, calls = os.write, []

    def part(file: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) == 3 and failure is not None:
            if failure == 0:
                return 0
            raise failure
        return write(file, data[:7])

    with Log.create(tmp_path / "log", b"header\n") as log:
        monkeypatch.setattr(os, "write", part)
        if failure is None:
            log.append(b"one line\n" * 5)
            assert (tmp_path / "log").read_bytes() == b"header\n" + b"one line\n" * 5
            return
        with pytest.raises(OSError if failure == 0 else type(failure)) as error:
            log.append(b"one line\n" * 5)
        assert (tmp_path / "log").read_bytes() == b"header\n"
        if isinstance(error.value, OSError):
            assert error.value.filename == str(tmp_path / "log")
        monkeypatch.undo()
        log.append(b"after\n")
    assert read_lines(tmp_path / "log")[0] == [b"header", b"after"]


def test_a_tournament_on_a_full_disk_says_so_and_goes_on_later(
    tmp_path, monkeypatch, largest, capfd
):
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 1000)
    monkeypatch.setattr("carolus_env.evaluation.report.write_report", lambda *_: None)
    words = ["random", "greedy", "--games", "6000", "--quiet"]
    assert evaluate.main([*words, "--out", str(tmp_path / "whole")]) == 0
    cup, games = tmp_path / "cup", tmp_path / "cup" / "games.jsonl"
    largest(len((tmp_path / "whole" / "games.jsonl").read_bytes()) * 2 // 3)
    assert evaluate.main([*words, "--out", str(cup)]) == 1
    largest(None)
    assert f"{games}: could not be written: File too large" in capfd.readouterr().err
    saved = evaluation.read_games(games)
    assert 0 < len(saved.results) < 6000 and not saved.cut
    deals = len(saved.results) // 2
    assert json.loads((cup / "summary.json").read_text())["games"] == 2 * deals
    assert evaluate.main([*words, "--out", str(cup), "--resume"]) == 0
    assert saved_games(games) == saved_games(tmp_path / "whole" / "games.jsonl")


@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.gz"])
def test_records_on_a_full_disk_end_with_a_whole_game(tmp_path, monkeypatch, largest, name):
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 5)
    cup = evaluation.Tournament(evaluation.Plan(Rules(2), ("random", "greedy"), deals=30))
    largest(60_000 if name.endswith("jsonl") else 12_000)
    with pytest.raises(OSError, match=rf"too large: .*{name}'"):
        cup.run(records=tmp_path / name)
    assert 0 < len(list(read_records(tmp_path / name))) == cup.games < 60


# ------------------------------------------------------------------------------------ replacing


def test_every_error_of_a_file_names_it_and_leaves_the_old_one(tmp_path, largest):
    path = tmp_path / "model"
    write_file(path, b"old")
    largest(100)
    for attempt in (
        lambda: write_file(path, b" " * 101),
        lambda: check_writable(path),
        lambda: write_file(tmp_path / "none" / "model", b""),
        lambda: write_file(tmp_path, b""),
    ):
        with pytest.raises(OSError) as error:
            attempt()
        assert error.value.filename is not None and ".carolus" not in error.value.filename
        assert str(tmp_path) in str(error.value)
    with pytest.raises(OSError, match=r"written: .*array'"), replacing(tmp_path / "array") as file:
        np.zeros(1000).tofile(file)  # its own errors have no number
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("full", [1_000_000, None])
def test_arrays_on_a_full_disk_are_an_error(tmp_path, monkeypatch, largest, full):
    """Where files are mapped, a full disk would otherwise end the process by a signal."""

    def allocate(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    largest(full)
    many = 100_000  # decisions
    games = arrays.Packed(np.zeros(1, STATE), np.zeros(many, np.uint8), np.array([0, many]))
    monkeypatch.setattr(arrays, "_check_packed", lambda games: None)
    monkeypatch.setattr(arrays, "common_players", lambda *_: 2)
    with pytest.raises(OSError, match=r"space left|too large") as error:
        arrays.to_arrays(games, out=tmp_path / "data")
    assert error.value.filename.endswith("observations.npy")
    assert not list(tmp_path.iterdir())


WRITERS = {
    "write_file": lambda path: write_file(path, b"new"),
    "check_writable": check_writable,
    "write_records": lambda path: write_records(path, []),
    "create": Log.create,
    "locked": lambda path: locked(path).__enter__(),
}


@pytest.mark.parametrize("write", WRITERS)
def test_a_loop_of_symbolic_links_is_an_error_that_names_it(tmp_path, write):
    for name in ("loop", "other/loop"):
        loop = tmp_path / name
        loop.parent.mkdir(exist_ok=True)
        loop.symlink_to(loop)
        with pytest.raises(OSError, match="symbolic links") as error:
            WRITERS[write](loop)
        assert error.value.filename == str(loop) and loop.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o640])
def test_a_replaced_file_keeps_its_mode_and_group(tmp_path, monkeypatch, mode):
    path, group = tmp_path / "model", 12345 if os.geteuid() == 0 else os.getgroups()[-1]
    write_file(path, b"old")
    path.chmod(mode)
    os.chown(path, -1, group)
    write_file(path, b"new")
    assert (path.stat().st_mode & 0o777, path.stat().st_gid) == (mode, group)

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    write_file(path, b"of the writer's group")
    assert path.stat().st_mode & 0o777 == mode & 0o707, "it is not for another group"


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "pipe"])
def test_what_is_no_regular_file_is_written_into(tmp_path, monkeypatch, capfd, name):
    monkeypatch.chdir(tmp_path)
    reader = None
    if name == "pipe":
        os.mkfifo(name)
        reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(name)
    print("before")
    write_records(name, [])
    write_file(name, b"content\n")
    print("after")
    if reader is not None:
        assert os.read(reader, 100) == b"content\n"
        os.close(reader)
    assert capfd.readouterr().out == ("before\nafter\n" if reader else "before\ncontent\nafter\n")
    with pytest.raises(OSError, match="regular file"):
        Log.create(name)
    assert [path.name for path in tmp_path.iterdir()] == (["pipe"] if reader else [])


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_without_fsync_gets_one_warning_and_the_files(tmp_path, monkeypatch, number):
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.warns(UserWarning, match=r": this file system has no fsync \(") as caught:
        write_file(tmp_path / "file", b"content")
        with Log.create(tmp_path / "log", b"one\n") as log:
            log.append(b"two\n")
    assert len(caught) == 1
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    number = errno.EIO
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write_file(tmp_path / "file", b"lost")
    assert (tmp_path / "file").read_bytes() == b"content"


# ------------------------------------------------------------------------------------ locks


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_gets_a_warning(tmp_path, monkeypatch, number):
    def lock(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "lockf", lock)
    reason = f"cup: this file system has no locks .{os.strerror(number)}.: nothing keeps another"
    again = pytest.raises(BusyError, match="this process")
    with pytest.warns(UserWarning, match=reason), locked(tmp_path / "cup"), again:
        locked(tmp_path / "cup").__enter__()
    assert not list(tmp_path.iterdir())


def test_another_failure_of_a_lock_is_told_as_it_is(tmp_path, monkeypatch):
    def lock(*_: Any) -> None:
        raise OSError(errno.EIO, "disk on fire")

    monkeypatch.setattr(files.fcntl, "lockf", lock)
    with pytest.raises(OSError, match=r"disk on fire: .*/cup'"), locked(tmp_path / "cup"):
        pass
    monkeypatch.undo()
    with locked(tmp_path / "cup"):  # nothing is left of the failure
        pass


def test_threads_keep_each_other_out(tmp_path):
    inside, most, together = [0], [0], threading.Barrier(8)

    def enter(path: Path) -> bool:
        together.wait(60)
        try:
            with locked(path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                together.wait(60)
                inside[0] -= 1
                return True
        except BusyError:
            together.wait(60)
            return False

    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            entered = list(threads.map(enter, [tmp_path / str(number)] * 8))
            assert entered.count(True) == 1
    assert most == [1]


def test_an_error_of_a_lock_names_the_path_that_was_given(tmp_path):
    path = tmp_path / "none" / "cup"
    with pytest.raises(FileNotFoundError) as caught, locked(path):
        pass
    assert caught.value.filename == str(path)


def test_the_home_of_an_unknown_user_is_a_folder_that_is_not_there(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert files.expanded("~/cup") == Path("/home/me/cup")
    assert files.expanded("~nobodyx/cup") == Path("~nobodyx/cup")
