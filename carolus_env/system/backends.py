"""Backends of workers, as an option: processes here (``--workers N``), or a cluster of Ray."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from carolus_env.system.cluster import MISSING, Cluster
from carolus_env.system.processes import Workers, processes

BACKENDS: Final = ("processes", "ray")


def add_options(parser: argparse.ArgumentParser, *, workers: int = 1) -> None:
    """Add ``--workers``, ``--backend`` and ``--ray-address``, which `workers_of` takes.

    Args:
        parser: the parser of a command.
        workers: the default number of processes.
    """
    add = parser.add_argument
    add(
        "--workers",
        type=int,
        metavar="N",
        help=f"parallel workers (default: {workers}, or on ray as many as fit)",
    )
    add(
        "--backend",
        choices=BACKENDS,
        default=BACKENDS[0],
        metavar="BACKEND",
        help="processes or ray (default %(default)s)",
    )
    add(
        "--ray-address",
        metavar="ADDRESS",
        help="cluster (default: RAY_ADDRESS, or a new one)",
    )
    parser.set_defaults(usual_workers=workers)


def workers_of(options: argparse.Namespace, specs: Iterable[str] = ()) -> Workers:
    """Return the workers that the options ask for; to be closed.

    Args:
        options: options of a command with `add_options`.
        specs: agents' specs: the files that they name are needed.

    Raises:
        WorkerError: when Ray is missing, or there is no such cluster.
        ValueError: for another place, number or address.
    """
    check(options.backend, options.ray_address)
    count = options.usual_workers if options.workers is None else options.workers
    if options.backend == "processes":
        return processes(count)
    return cluster(options.ray_address, specs, most=options.workers)


def check(backend: str, address: str | None) -> None:
    """Refuse a backend that cannot be used, before any work.

    Raises:
        ValueError: naming the option.
    """
    if address is not None and backend != "ray":
        raise ValueError(f"--ray-address {address} needs --backend ray")
    if backend == "ray" and find_spec("ray") is None:
        raise ValueError(MISSING)


def cluster(address: str | None, specs: Iterable[str], *, most: int | None = None) -> Cluster:
    """Start workers on Ray, and send them the files that the agents' specs name.

    Raises:
        WorkerError, ValueError: see `Cluster`.
    """
    return Cluster(address, most=most, files=[file for spec in specs for file in files_of(spec)])


def files_of(spec: str) -> list[Path]:
    """Return the files that a spec names by a relative path: a program, or a model.

    An absolute path is one that all machines have.

    Raises:
        ValueError: for one outside the current folder, which no other machine would have.
    """
    result = []
    for word in dict.fromkeys([*re.split(r"[:,=]", spec), *re.split(r"[:,=\s]", spec)]):
        for path in (Path(word), Path(f"{word}.safetensors")):
            if word and not path.is_absolute() and path.is_file():
                if ".." in path.parts:
                    raise ValueError(
                        f"{spec}: on a cluster, name a file below the current folder, or by an "
                        "absolute path that all machines have"
                    )
                result.append(path)
    return result
