"""The machine that results are made with: its cores, and threads on them."""

import os
import threading
import time

import pytest

from carolus_env.system import machine

GROUPS = {
    "v2": ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),
    "v2, in a container": ("0::/", {"cpu.max": "300000 100000"}, 3),
    "v2, no limit": ("0::/", {"cpu.max": "max 100000"}, 64),
    "v2, less than one": ("0::/", {"cpu.max": "10000 100000"}, 1),
    "v2, more than there are": ("0::/", {"cpu.max": "9900000 100000"}, 64),
    "v1, in a container": (
        "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc",
        {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"},
        4,
    ),
    "v1, no limit": (
        "1:cpu:/a",
        {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"},
        64,
    ),
    "another group's": ("0::/a", {"b/cpu.max": "100000 100000"}, 64),
    "nonsense": ("?", {"cpu.max": "a b"}, 64),
    "none": ("", {}, 64),
}


@pytest.mark.parametrize("kind", GROUPS)
def test_a_containers_quota_limits_the_cores(tmp_path, monkeypatch, kind):
    groups, limits, expected = GROUPS[kind]
    (tmp_path / "groups").write_text(groups)
    for name, text in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "LIMITS", tmp_path)
    for name in ("sched_getaffinity", "process_cpu_count"):
        count = (lambda *_: range(64)) if name == "sched_getaffinity" else lambda: 64
        monkeypatch.setattr(os, name, count, raising=False)
    assert machine.cores() == expected


def test_an_error_in_one_share_waits_for_the_others_which_write_into_the_callers_memory():
    begun, ended = threading.Event(), []

    def work(share):
        if share:
            begun.set()
            time.sleep(0.1)
            ended.append(share)
            return
        begun.wait(60)
        raise KeyError(share)

    with pytest.raises(KeyError):
        machine.together(work, [0, 1, 2])
    assert sorted(ended) == [1, 2]
