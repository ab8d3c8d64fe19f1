"""Let agents play each other: win rates with 95 % intervals and ratings, as tables and files.

    python evaluate.py greedy random --players 3 --games 1000 --seed 7
    python evaluate.py ppo:runs/p2/best greedy my_bot.py:MyBot --json result.json
    python evaluate.py greedy random my_bot.py:MyBot --out cup --workers 2 --until 30
    python evaluate.py greedy random my_bot.py:MyBot --out cup --workers 2 --until 30 --resume
    python evaluate.py my_bot.py:MyBot my_old_bot.py:MyBot --sprt 0,20
    python evaluate.py my_bot.py:MyBot --bench --out measured
    python evaluate.py my_bot.py:MyBot greedy --games 100 --watch my_bot.py:MyBot
    python evaluate.py my_bot.py:MyBot planner --suite --worst 10 --out looked_at
    python evaluate.py greedy my_bot.py:MyBot --games 100000 --out cup --on ray

Every pair of agents plays (--schedule round_robin), or the first agent plays each of the others
(field), or three different agents play at a time (mixed), or with four players two different agents
make a team (strangers). Every deal of set-up and dice is played in all seatings: with 2 players
both; with 3 each agent alone against two of the other, in all rotations; with 4 each agent as a
team, or with strangers in every seat. See docs/evaluation.md. --bench measures one agent by
CarolusBench, the protocol for papers: docs/bench.md. --suite measures what each agent's choices
give away in the package's positions: docs/suite.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NoReturn

from carolus_env import arena, bots
from carolus_env.analysis.suite import report as suite_report
from carolus_env.arena import console, length
from carolus_env.arena.games import agent_error
from carolus_env.arena.summary import extra
from carolus_env.commands import bench
from carolus_env.engine.rules import CROWN_CHOICES, PARTNERS, Rules
from carolus_env.play import __main__ as viewer
from carolus_env.play.roster import Roster
from carolus_env.records import write_records
from carolus_env.system import failures, places
from carolus_env.system.files import check_writable, write_json
from carolus_env.system.processes import Here, WorkerError, Workers

PROGRAM: Final = "python evaluate.py"
DONE, WRITE_FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
WATCHED = 100  # games opened at most
GAMES_FILE, SUMMARY_FILE = bench.GAMES_FILE, "summary.json"
_LENGTH = ("games", "deals", "until", "until_rate", "sprt", "alpha", "beta", "max_deals")
_PLAY = (*_LENGTH, "records", "watch")


class UserError(Exception):
    """An error that the user can correct; the text is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")


def main(arguments: Sequence[str], program: str = PROGRAM) -> int:
    """Play, print and write; returns the exit code.

    Args:
        arguments: of the command.
        program: what the user typed before them.
    """
    options = argparse.Namespace(traceback=False, program=program.removeprefix("python "))
    try:
        _parser(program).parse_args(arguments, options)
        try:
            places.check(options.on, options.ray_address)
        except ValueError as error:
            raise UserError(_one_line(error)) from error
        if options.list:
            code = _list_agents()
        elif options.bench:
            code = _bench(options)
        elif options.suite:
            code = _suite(options)
        elif options.watch and options.out and not options.agents:
            code = _watch_folder(options)
        else:
            options.players = 2 if options.players is None else options.players
            code = _evaluate(options).code
        print(end="", flush=True)  # a full disk fails here, not at Python's exit
        return code
    except UserError as error:
        if options.traceback and error.__cause__ is not None:
            _note(failures.whole(error.__cause__).rstrip())
        return _fail(options, str(error), USER_ERROR)
    except MemoryError:
        return _fail(options, "not enough memory for so many games", USER_ERROR)
    except KeyboardInterrupt:
        return _fail(options, "interrupted before any game was finished", INTERRUPTED)
    except BrokenPipeError:  # the reader, say `head`, has closed the pipe
        return WRITE_FAILED
    except OSError as error:
        return _fail(options, f"the output could not be written: {error.strerror}", WRITE_FAILED)


def _parser(program: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=program.removeprefix("python "),
        description=(__doc__ or "").replace(PROGRAM, program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("agents", nargs="*", metavar="AGENT", help="two or more, from --list or as FILE.py:NAME")
    add(
        "--bench",
        nargs="?",
        const=bench.NEWEST,
        type=bench.version,
        metavar="VERSION",
        help=f"measure one agent by CarolusBench {' or '.join(bench.VERSIONS)} (%(const)s)",
    )
    add("--suite", action="store_true", help="measure what agents lose in the package's positions")
    add(
        "--half", choices=suite_report.HALF_NAMES, default="report", help="of --suite (%(default)s)"
    )
    add("--worst", type=int, metavar="K", help="with --suite: print the K decisions that cost most")
    add("--players", type=int, metavar="P", help="2, 3 or 4 (default 2; --bench and --suite: all)")
    add(
        "--schedule",
        choices=arena.SCHEDULES,
        default=arena.SCHEDULES[0],
        help="who plays whom (default %(default)s)",
    )
    add("--seed", type=int, default=0, metavar="S", help="the same seed gives the same games")
    places.add_options(parser)
    add("--time-limit", type=float, metavar="SECONDS", help="for a decision, averaged over a batch")
    add("--traceback", action="store_true", help="show every line that led to an agent's error")
    add("--quiet", action="store_true", help="print nothing but errors")
    add("--list", action="store_true", help="list the known agents and exit")
    length.add_options(parser)
    files = parser.add_argument_group("files")
    files.add_argument("--json", type=Path, metavar="FILE", help="write the summary to FILE")
    files.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"write every game ({GAMES_FILE}), {SUMMARY_FILE} and a report to FOLDER",
    )
    files.add_argument("--resume", action="store_true", help="resume the tournament in --out")
    files.add_argument(
        "--records",
        type=Path,
        metavar="FILE",
        help="write a record of every game (.jsonl or .jsonl.gz), for carolus_env.replay",
    )
    files.add_argument(
        "--watch",
        metavar="AGENT",
        help="afterwards open the games that AGENT lost in the viewer of carolus_env.play; with "
        "--out and no agents, those of an earlier tournament",
    )
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--crown-choice",
        choices=CROWN_CHOICES,
        default=CROWN_CHOICES[0],
        help="when a crown becomes a paladin (default %(default)s)",
    )
    rules.add_argument(
        "--partners",
        choices=PARTNERS,
        default=PARTNERS[0],
        help="seats of partners, with four players (default %(default)s)",
    )
    rules.add_argument(
        "--paladins-per-clan",
        type=int,
        default=40,
        metavar="K",
        help="paladins of each clan in the game (default %(default)s)",
    )
    rules.add_argument(
        "--max-rounds",
        type=_rounds,
        default=100,
        metavar="N",
        help="cut games off after N rounds (default %(default)s); none: a game may never end",
    )
    return parser


def _rounds(text: str) -> int | None:
    if text.lower() == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or none, got {text!r}") from None


def _list_agents() -> int:
    for name, about in bots.known().items():
        print(f"{name:14} {about}")
    print(f"{'FILE.py:NAME':14} your own agent, from a Python file")
    return DONE


# ------------------------------------------------------------------------------------ evaluation


def _bench(options: argparse.Namespace) -> int:
    """Measure one agent by the protocol."""
    if len(options.agents) != 1:
        raise UserError(f"--bench measures one agent, got {len(options.agents)}")
    _refuse(options, "--bench", *_PLAY, "json")
    try:
        return bench.run(options, _make_agents(options.agents)[0], _evaluate)
    except (arena.ArenaError, ValueError) as error:
        raise UserError(_one_line(error)) from error


def _refuse(options: argparse.Namespace, mode: str, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise UserError(f"{mode} fixes what is played and takes no --{name.replace('_', '-')}")


def _suite(options: argparse.Namespace) -> int:
    """Measure agents by the package's positions."""
    _refuse(options, "--suite", *_PLAY)
    if options.on != "processes":
        raise UserError("--suite measures in this process, and takes no --on")
    _check_files(options)
    try:
        suite_report.run(_make_agents(options.agents), options)
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    return DONE


def _evaluate(options: argparse.Namespace, plan: arena.Plan | None = None) -> bench.Played:
    """Play, print and write; the summary is empty if no deal was completed."""
    plan = plan or _plan(options)
    if options.watch is not None and options.watch not in plan.agents:
        raise UserError(
            f"--watch {options.watch}: this agent does not play; {', '.join(plan.agents)} do"
        )
    _check_files(options)
    unrated = _unrated()
    if unrated and (options.out or options.until):
        raise UserError(unrated)
    made = _make_agents(options.agents)
    with _workers(options, plan) as workers:
        return _evaluated(options, plan, made, workers, unrated)


def _workers(options: argparse.Namespace, plan: arena.Plan) -> Workers:
    try:
        return places.workers_of(options, plan.agents)
    except (WorkerError, ValueError) as error:
        raise UserError(_one_line(error)) from error


def _evaluated(
    options: argparse.Namespace,
    plan: arena.Plan,
    made: list[bots.Agent],
    workers: Workers,
    unrated: str,
) -> bench.Played:
    """`_evaluate`, with all that it needs."""
    several = not isinstance(workers, Here)  # workers make their own agents
    try:
        cup = arena.Tournament(
            plan,
            options.agents if several else made,
            time_limit=options.time_limit,
        )
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    wanted, played = options.games, plan.deals * len(plan.meetings[0].seatings)
    if wanted and played > wanted and not options.quiet:
        _note(f"{wanted} games rounded up to {played}: complete rotations of the seats")
    code, trouble = _play(options, cup, workers)
    counted = cup.games // plan.games_per_deal * plan.games_per_deal
    unsaved, summary = "", {}
    if counted:
        summary = cup.summary(rated=not unrated)
        try:
            _write(options, summary)
        except OSError as error:
            unsaved = f"{error.filename}: could not be written: {error.strerror or error}"
            code = code or WRITE_FAILED
        if unsaved or not options.quiet:
            title = f"{plan.rules.players} players, seed {plan.seed}, {cup.seconds:.1f} s"
            console.print_tables(title, cup, None if unrated else summary)
            if unrated:
                _note(unrated)
    for text in filter(None, (trouble, unsaved)):
        _fail(options, text, code)
    if options.watch and code == DONE:
        code = _watch(options.watch, plan, cup.results, made)
    return bench.Played(code, summary, cup)


def _watch_folder(options: argparse.Namespace) -> int:
    """Open the games that an agent lost in the tournament in a folder."""
    try:
        saved = arena.read_games(options.out / GAMES_FILE)
    except arena.ResultsFileError as error:
        raise UserError(_one_line(error)) from error
    for spec in saved.plan.agents:
        if spec.partition(":")[0] not in bots.registry.OPTIONS and spec != options.watch:
            raise UserError(
                f"{GAMES_FILE} names {spec!r}, but a results file cannot make a Python file run "
                "or an agent ask an endpoint; give the agents as for the tournament, with --resume"
            )
    agents = _make_agents(saved.plan.agents)
    return _watch(options.watch, saved.plan, saved.results, agents)


def _watch(agent: str, plan: arena.Plan, results: arena.Results, agents: list[bots.Agent]) -> int:
    """Play the games that an agent lost again, and show them until Ctrl-C."""
    try:
        rows = arena.lost_games(plan, results, agent)
        records = arena.records_of(plan, results, rows[:WATCHED], agents)
    except (arena.ArenaError, ValueError) as error:
        raise UserError(_one_line(error)) from error
    if not records:
        _note(f"{agent} lost none of {len(results)} games")
        return DONE
    if len(rows) > WATCHED:
        _note(f"the first {WATCHED} of {len(rows)} games that {agent} lost")
    others = [name for name in dict.fromkeys(plan.agents) if not Roster().allows(name)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lost.jsonl"
        write_records(path, records)
        return viewer.main([str(path), *(f"--bot={name}" for name in others)])


def _plan(options: argparse.Namespace) -> arena.Plan:
    """The plan that the options describe; a `UserError` if there is none."""
    if len(options.agents) < 2:
        raise UserError(f"name two agents or more, got {len(options.agents)} (--list shows them)")
    try:
        rules = Rules(
            players=options.players,
            crown_choice=options.crown_choice,
            partners=options.partners,
            paladins_per_clan=options.paladins_per_clan,
            max_rounds=options.max_rounds,
        )
        seatings = len(arena.meetings(options.schedule, rules, len(options.agents))[0].seatings)
        how_long = length.length(options, seatings)._asdict()
        return arena.Plan(
            rules,
            tuple(options.agents),
            options.schedule,
            seed=options.seed,
            **how_long,
        )
    except ValueError as error:
        raise UserError(_one_line(error)) from error


def _check_files(options: argparse.Namespace) -> None:
    """Fail now, rather than after hours of play, if a file cannot be written."""
    if options.watch and not all(map(find_spec, ("starlette", "uvicorn"))):
        raise UserError(f"--watch: {viewer.NO_EXTRA}")
    if options.resume and not options.out:
        raise UserError("--resume needs the folder of the tournament: name it by --out")
    try:
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--out {options.out}: the folder cannot be created: {error.strerror}"
        ) from error
    files = {"--json": options.json, "--records": options.records}
    if options.out:
        files["--out"] = options.out / SUMMARY_FILE
    for option, path in files.items():
        if path is None:
            continue
        try:
            check_writable(path)
        except OSError as error:
            raise UserError(
                f"{option} {path}: cannot be written: {error.strerror or error}"
            ) from error
    if options.records and options.records.exists():
        raise UserError(f"--records {options.records}: exists; name another file")


def _play(options: argparse.Namespace, cup: arena.Tournament, workers: Workers) -> tuple[int, str]:
    """Play; the exit code, and why it ended early."""
    try:
        with console.watching(cup, quiet=options.quiet) as progress:
            cup.run(
                workers=workers,
                file=options.out and options.out / GAMES_FILE,
                resume=options.resume,
                records=options.records,
                progress=progress,
                notice=_note,
            )
    except (arena.ArenaError, ValueError) as error:
        if options.traceback:
            _note(getattr(error, "traceback", "").rstrip())
        return USER_ERROR, _one_line(error)
    except OSError as error:
        return WRITE_FAILED, f"{error.filename}: could not be written: {error.strerror or error}"
    except KeyboardInterrupt:
        per_deal = cup.plan.games_per_deal
        text = (
            f"interrupted: {cup.games} of {cup.plan.games} games kept, "
            f"{cup.games // per_deal * per_deal} counted (those of complete deals)"
        )
        return INTERRUPTED, text + ("; continue with --resume" if options.out else "")
    return DONE, ""


def _write(options: argparse.Namespace, summary: dict[str, Any]) -> None:
    for path in filter(None, (options.json, options.out and options.out / SUMMARY_FILE)):
        try:
            write_json(path, summary)
        except OSError as error:
            error.filename = str(path)
            raise
    if options.out:
        try:
            extra("report").write_report(options.out, summary)
        except OSError as error:
            error.filename = error.filename or str(options.out)
            raise


def _unrated() -> str:
    """Why ratings and reports are not possible; empty if they are."""
    try:
        extra("ratings")
        extra("report")
    except arena.ArenaError as error:
        return _one_line(error)
    return ""


def _make_agents(specs: Sequence[str]) -> list[bots.Agent]:
    made: dict[str, bots.Agent] = {}
    for spec in specs:
        if spec in made:
            continue
        try:
            made[spec] = bots.make(spec)
        except bots.UnknownAgentError as error:
            known = ", ".join(bots.known())
            raise UserError(f"unknown agent {spec!r}; known are {known} or FILE.py:NAME") from error
        except Exception as error:  # a user's file or model can fail in any way
            raise UserError(_one_line(agent_error(error, spec, f": {error}"))) from error
    return [made[spec] for spec in specs]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _fail(options: argparse.Namespace, text: str, code: int) -> int:
    _note(f"{options.program}: {text}")
    return code
