"""Play agents against each other: win rates and Elo ratings with 95 % intervals.

  python evaluate.py greedy my_bot.py:MyBot --players 3 --games 600
  python evaluate.py ppo:runs/p2/best planner greedy --out cup --workers 2 --until 30
  python evaluate.py my_bot.py:MyBot my_old_bot.py:MyBot --sprt 0,20

See docs/evaluation.md, docs/suite.md and docs/bench.md.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from carolus_env import bots, evaluation
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import bench, console, report
from carolus_env.evaluation.games import agent_error, refusal
from carolus_env.evaluation.seating import deals_for
from carolus_env.evaluation.sequential import SequentialTest
from carolus_env.evaluation.suite import report as suite_report
from carolus_env.system import cluster, failures
from carolus_env.system.cancellation import ended_by_sigterm
from carolus_env.system.executors import InProcess, WorkerError, Workers
from carolus_env.system.files import BusyError, check_writable, locked, write_json
from carolus_env.system.options import add_arguments, from_arguments

PROGRAM: Final = "python evaluate.py"
DONE, WRITE_FAILED, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
GAMES = 1000
MOST_DEALS = 10_000  # with a stop rule
GAMES_FILE, SUMMARY_FILE, BENCH_FILE = "games.jsonl", "summary.json", "bench.json"
_PLAY = ("games", "until", "sprt", "records")


class UserError(Exception):
    """An error that the user can correct; the text is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see --help)")


@ended_by_sigterm()
def main(arguments: Sequence[str], program: str = PROGRAM) -> int:
    """Play, print and write; returns the exit code.

    Args:
        arguments: the command's arguments.
        program: the words before them on the command line.
    """
    options = argparse.Namespace(traceback=False, program=program.removeprefix("python "))
    try:
        _parser(program).parse_args(arguments, options)
        if options.bench:
            code = _bench(options)
        elif options.suite:
            code = _suite(options)
        else:
            options.players = 2 if options.players is None else options.players
            code = _evaluate(options)[0]
        print(end="", flush=True)  # a full disk fails here, not at Python's exit
        return code
    except UserError as error:
        if options.traceback and error.__cause__ is not None:
            _note(failures.full_traceback(error.__cause__).rstrip())
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
    program = program.removeprefix("python ")
    parser = _Parser(
        prog=program,
        usage=f"{program} AGENT AGENT [AGENT ...] [options]",
        description=(__doc__ or "").replace(PROGRAM, program),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=26
        ),
        allow_abbrev=False,
    )
    add = parser.add_argument
    known = ", ".join(bots.known())
    add("agents", nargs="*", metavar="AGENT", help=f"{known} or FILE.py:NAME")
    add(
        "--schedule",
        choices=evaluation.SCHEDULES,
        default=evaluation.SCHEDULES[0],
        metavar="NAME",
        help=f"which agents meet: {', '.join(evaluation.SCHEDULES)} (default %(default)s)",
    )
    add("--seed", type=int, default=0, metavar="S", help="seed of all games (default 0)")
    cluster.add_options(parser)
    add("--quiet", action="store_true", help="print errors only")
    add("--traceback", action="store_true", help="print the whole traceback of an agent's error")
    _add_lengths(parser.add_argument_group("number of games"))
    kinds = parser.add_argument_group("other evaluations")
    kinds.add_argument("--suite", action="store_true", help="measure regret on the suite")
    kinds.add_argument("--bench", action="store_true", help="rate one agent by CarolusBench")
    _add_files(parser.add_argument_group("files"))
    add_arguments(parser.add_argument_group("rules"), Rules)
    parser.set_defaults(players=None)  # --suite and --bench then measure each number
    return parser


def _add_lengths(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--games",
        type=int,
        metavar="N",
        help=f"games of each pairing, or maximum (default {GAMES})",
    )
    add("--until", type=float, metavar="ELO", help="play until every rating's interval is narrower")
    add(
        "--sprt",
        type=_bounds,
        metavar="ELO0,ELO1",
        help="sequential test of nElo ELO0 against ELO1",
    )


def _add_files(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--out", type=Path, metavar="FOLDER", help="write games, summary and report")
    add("--resume", action="store_true", help="resume the tournament in --out")
    add("--json", type=Path, metavar="FILE", help="write the summary")
    add("--records", type=Path, metavar="FILE", help="write .jsonl or .jsonl.gz for carolus play")


def _bounds(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be two numbers with a comma, such as 0,20, got {text!r}"
        ) from None
    return low, high


# ------------------------------------------------------------------------------------ evaluation


def _bench(options: argparse.Namespace) -> int:
    """Measure one agent by CarolusBench, for one number of players after the other."""
    if len(options.agents) != 1:
        raise UserError(f"--bench measures one agent, got {len(options.agents)}")
    _refuse(options, "--bench", *_PLAY, "json")
    [agent], [name] = _make_agents(options.agents), options.agents
    left_out = _left_out(agent, bench.DEALS if options.players is None else [options.players])
    by_players: dict[int, dict[str, Any]] = {}
    for players, reason in left_out.items():
        if reason:
            _note(f"{players} players are left out: {reason}")
            continue
        out = options.out and options.out / f"{players}p"
        try:
            if options.resume and out and (out / GAMES_FILE).exists():
                rungs = evaluation.read_games(out / GAMES_FILE).plan.agents[1:]
            else:
                rungs = bench.opponents(agent, players)
        except (evaluation.ArenaError, ValueError) as error:
            raise UserError(_one_line(error)) from error
        plan = bench.plan(name, players, rungs)
        fixed = {"agents": list(plan.agents), "players": players, "out": out}
        code, cup = _evaluate(argparse.Namespace(**{**vars(options), **fixed}), plan)
        if code:
            return code
        try:
            by_players[players] = bench.result(plan, cup.results, agent)
        except ValueError as error:
            raise UserError(_one_line(error)) from error
        print(_bench_line(players, by_players[players]))
        if options.out:
            about = {"protocol": bench.NAME, "agent": name, "ladder": bench.LADDER}
            refused = {number: text for number, text in left_out.items() if text}
            content = {**about, "players": by_players, "left_out": refused}
            write_json(options.out / BENCH_FILE, content)
    return DONE


def _left_out(agent: bots.Agent, numbers: Iterable[int]) -> dict[int, str]:
    """Return why the agent cannot play each number of players, empty if it can.

    A `UserError` if it can play none of them, or the package lacks the protocol's content.
    """
    reasons = {}
    try:
        for players in numbers:
            bench.suite(players)
            reasons[players] = refusal(agent, Rules(players))
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    if all(reasons.values()):
        raise UserError(next(iter(reasons.values())))
    return reasons


def _bench_line(players: int, result: dict[str, Any]) -> str:
    low, high = result["elo_ci95"]
    loss, below, above = (100 * share for share in result["loss"]["all"][:3])
    return (
        f"{bench.NAME}, {players} players: {result['elo']:+.0f} Elo ({low:+.0f} to "
        f"{high:+.0f}), a decision loses {loss:.1f} % ({below:.1f} - {above:.1f}) of a win"
    )


def _refuse(options: argparse.Namespace, mode: str, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise UserError(f"{mode} fixes what is played and takes no --{name.replace('_', '-')}")


def _suite(options: argparse.Namespace) -> int:
    """Measure agents by the package's positions."""
    _refuse(options, "--suite", *_PLAY)
    if options.backend != "processes":
        raise UserError("--suite measures in this process, and takes no --backend")
    _check_files(options)
    try:
        suite_report.run(
            _make_agents(options.agents),
            options.players,
            json=options.json,
            out=options.out,
            quiet=options.quiet,
        )
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    return DONE


def _evaluate(
    options: argparse.Namespace, plan: evaluation.Plan | None = None
) -> tuple[int, evaluation.Tournament]:
    """Play, print and write; returns the exit code, and the tournament."""
    plan = plan or _plan(options)
    if options.out:
        try:
            report.check_installed()
        except failures.MissingExtraError as error:
            raise UserError(_one_line(error)) from error
    _check_files(options)
    made = _make_agents(options.agents)
    try:
        alone = locked(options.out) if options.out else contextlib.nullcontext()
        with alone, _workers(options, plan) as workers:
            return _evaluated(options, plan, made, workers)
    except BusyError as error:
        raise UserError(f"--out {error}") from error


def _workers(options: argparse.Namespace, plan: evaluation.Plan) -> Workers:
    try:
        return cluster.workers_of(options, plan.agents)
    except (WorkerError, ValueError) as error:
        raise UserError(_one_line(error)) from error


def _evaluated(
    options: argparse.Namespace,
    plan: evaluation.Plan,
    made: list[bots.Agent],
    workers: Workers,
) -> tuple[int, evaluation.Tournament]:
    """Carry out `_evaluate` with all that it needs."""
    several = not isinstance(workers, InProcess)  # workers make their own agents
    try:
        cup = evaluation.Tournament(plan, options.agents if several else made)
    except ValueError as error:
        raise UserError(_one_line(error)) from error
    requested, played = options.games, plan.deals * len(plan.meetings[0].seatings)
    if requested and played > requested and not options.quiet:
        _note(f"{requested} games rounded up to {played}: complete rotations of the seats")
    code, trouble = _play(options, cup, workers)
    counted = cup.games // plan.games_per_deal * plan.games_per_deal
    unsaved, summary = "", {}
    if counted:
        summary = cup.summary()
        try:
            _write(options, summary)
        except OSError as error:
            unsaved = f"{error.filename}: could not be written: {error.strerror or error}"
            code = code or WRITE_FAILED
        if unsaved or not options.quiet:
            title = f"{plan.rules.players} players, seed {plan.seed}, {cup.seconds:.1f} s"
            console.print_tables(title, summary)
    for text in filter(None, (trouble, unsaved)):
        _fail(options, text, code)
    return code, cup


def _plan(options: argparse.Namespace) -> evaluation.Plan:
    """Return the plan that the options describe; a `UserError` if there is none."""
    if len(options.agents) < 2:
        raise UserError(f"name two agents or more, got {len(options.agents)}")
    try:
        rules = from_arguments(Rules, options)
        seatings = len(
            evaluation.meetings(options.schedule, rules, len(options.agents))[0].seatings
        )
        games = options.games
        if games is None and options.until is None and options.sprt is None:
            games = GAMES
        return evaluation.Plan(
            rules,
            tuple(options.agents),
            options.schedule,
            deals=MOST_DEALS if games is None else deals_for(games, seatings),
            seed=options.seed,
            until=options.until,
            test=SequentialTest(*options.sprt) if options.sprt else None,
        )
    except ValueError as error:
        raise UserError(_one_line(error)) from error


def _check_files(options: argparse.Namespace) -> None:
    """Fail now, rather than after hours of play, if a file cannot be written."""
    if options.resume and not options.out:
        raise UserError("--resume needs --out FOLDER, the folder of the tournament")
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


def _play(
    options: argparse.Namespace, cup: evaluation.Tournament, workers: Workers
) -> tuple[int, str]:
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
    except (evaluation.ArenaError, ValueError) as error:
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
            report.write_report(options.out, summary)
        except OSError as error:
            error.filename = error.filename or str(options.out)
            raise


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
