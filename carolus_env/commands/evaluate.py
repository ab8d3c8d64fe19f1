"""Play agents against each other: win rates and Elo ratings with 95 % intervals.

  carolus evaluate greedy my_bot.py:MyBot --players 3 --games 600
  carolus evaluate ppo:runs/p2/best planner greedy --out cup --workers 2 --until 30
  carolus evaluate my_bot.py:MyBot my_old_bot.py:MyBot --sprt 0,20

See docs/evaluation.md and docs/bench.md.
"""

from __future__ import annotations

import contextlib
import errno
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from carolus_env import bots, evaluation
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import bench, report, schedules, suite
from carolus_env.evaluation.games import make_agents, refusal
from carolus_env.system import command, files, untrusted
from carolus_env.system.executors import InProcess, WorkerOptions, workers_of
from carolus_env.system.machine import MissingExtraError, commit, provenance
from carolus_env.system.options import UserError, argument, group, option

GAMES = 1000
MOST_DEALS = 10_000  # with a stop rule
GAMES_FILE, SUMMARY_FILE, BENCH_FILE = "games.jsonl", "summary.json", "bench.json"
_IN_OUT: Final = (
    *(GAMES_FILE, SUMMARY_FILE, "ratings.svg", "ratings.png", "report.html"),
    *(f"worst_{players}p.jsonl" for players in (2, 3, 4)),
)
"""Files of the folder --out that no other option may name."""
_OTHER: Final = "other evaluations"
_NUMBER, _REAL, _TEXT = (
    dict[str, Any](kind=kind, heading="number of games") for kind in (int, float, str)
)
_PATH: Final = dict[str, Any](kind=Path, heading="files")


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of the command."""

    agents: tuple[str, ...] = argument(f"{', '.join(bots.known())} or FILE.py:NAME", "AGENT", ())
    schedule: str = option(
        "round_robin", "which agents meet", among=schedules.SCHEDULES, metavar="NAME"
    )
    seed: int = option(0, "seed of all games", among=(0, 2**64 - 1), metavar="S")
    work: WorkerOptions = group(WorkerOptions, "")
    quiet: bool = option(False, "print errors only")
    traceback: bool = option(False, "print the whole traceback of an agent's error")

    games: int | None = option(
        None, f"games of each pairing, or maximum; by default {GAMES}", among=(1, None), **_NUMBER
    )
    until: float | None = option(
        None, "play until every rating's interval is narrower", above=0, metavar="ELO", **_REAL
    )
    sprt: str | None = option(
        None, "sequential test of nElo ELO0 against ELO1", metavar="ELO0,ELO1", **_TEXT
    )

    suite: bool = option(False, "measure regret on the suite", heading=_OTHER)
    bench: bool = option(False, "rate one agent by CarolusBench", heading=_OTHER)

    out: Path | None = option(None, "write games, summary and report", metavar="FOLDER", **_PATH)
    resume: bool = option(False, "go on with what is in --out, if anything is", heading="files")
    json: Path | None = option(None, "write the summary", metavar="FILE", **_PATH)
    records: Path | None = option(
        None, "write .jsonl or .jsonl.gz for carolus play", metavar="FILE", **_PATH
    )
    rules: Rules = group(Rules, "rules")


_SHARED: Final = ("agents", "players", "out", "quiet", "traceback")
_MODES: Final = {
    "suite": (*_SHARED, "suite", "json"),
    "bench": (*_SHARED, "bench", "resume", "workers", "backend"),
}
"""The options that each of the other evaluations uses; they refuse the rest."""


@command.command("carolus evaluate")
def main(arguments: Sequence[str], program: str) -> int:
    """Play, print and write; returns the exit code."""
    usage = "AGENT AGENT [AGENT ...] [options]"
    options, given = command.parse(EvaluateOptions, arguments, program, __doc__, usage)
    for mode, used in _MODES.items():
        if mode in given:
            command.refuse_unused(given, used, f"--{mode}")
    command.needs(given, "resume", options.out, "--out FOLDER, the folder of the tournament")
    command.needs(given, "partners", options.rules.players == 4, "--players 4")
    typed, players = f"{program} {shlex.join(arguments)}", given.get("players")
    if options.json and files.is_standard(options.json):
        options = replace(options, quiet=True)  # JSON alone on the standard output
    try:
        if options.bench:
            _bench(options, players, typed)
        elif options.suite:
            _check_files(options)
            agents, out = make_agents(options.agents), {"json": options.json, "out": options.out}
            suite.measure_agents(agents, players, **out, quiet=options.quiet)
        else:
            _evaluate(options, _plan(options), typed)
    except (UserError, ValueError) as error:
        if options.traceback:
            cause = error if isinstance(error, ValueError) else error.__cause__
            own = getattr(error, "traceback", "")
            command.note((own or (untrusted.full_traceback(cause) if cause else "")).rstrip())
        raise
    return command.DONE


# ------------------------------------------------------------------------------------ one agent


def _bench(options: EvaluateOptions, number: int | None, typed: str) -> None:
    """Measure one agent by CarolusBench, for one number of players after the other."""
    if len(options.agents) != 1:
        raise UserError(f"--bench measures one agent, got {len(options.agents)}")
    [agent], [name] = make_agents(options.agents), options.agents
    left_out = {}  # why the agent cannot play that number of players; empty: it can
    for players in bench.DEALS if number is None else [number]:
        bench.suite(players)
        left_out[players] = refusal(agent, Rules(players))
    if all(left_out.values()):
        raise UserError(next(iter(left_out.values())))
    file = options.out and options.out / BENCH_FILE
    if file and file.exists():
        bench.read(file, agent)
    for players, reason in left_out.items():
        if reason:
            command.note(f"{players} players are left out: {reason}")
            continue
        out = options.out and options.out / f"{players}p"
        if options.resume and out and (out / GAMES_FILE).exists():
            rungs = evaluation.read_games(out / GAMES_FILE).plan.agents[1:]
        else:
            rungs = bench.opponents(agent, players)
        plan = bench.plan(name, players, rungs)
        cup = _evaluate(replace(options, agents=plan.agents, out=out), plan, typed)
        result = bench.rating(plan, cup.results)
        try:
            result |= bench.regret(agent, players)
        finally:  # the games were played, whatever happens to the suite
            print(_bench_line(players, result))
            if file:
                part = {str(players): result | provenance()}
                bench.write(file, agent, part, {str(k): why for k, why in left_out.items() if why})


def _bench_line(players: int, result: dict[str, Any]) -> str:
    low, high = result["elo_ci95"]
    texts = {
        "": f"{result['elo']:+.0f} Elo on the ladder ({low:+.0f} to {high:+.0f})",
        "above": f"above {low:+.0f} Elo on the ladder: it lost nothing",
        "below": f"below {high:+.0f} Elo on the ladder: it won nothing",
    }
    line = f"to cite: {bench.NAME}, {players} players: {texts[result['elo_bound']]}"
    if "regret" not in result:
        return line
    mean, low, high = (100 * part for part in result["regret"]["all"][:3])
    return f"{line}, regret of a decision {mean:.1f} % ({low:.1f} - {high:.1f}) of a win"


# ------------------------------------------------------------------------------------ tournaments


def _plan(options: EvaluateOptions) -> evaluation.Plan:
    """Return the plan that the options describe."""
    if len(options.agents) < 2:
        raise UserError(f"name two agents, or --bench or --suite; got {len(options.agents)}")
    games, test = options.games, None
    if options.sprt is not None:
        try:
            low, high = map(float, options.sprt.split(","))
        except ValueError:
            wanted = "two numbers with a comma, such as 0,20"
            raise UserError(f"--sprt must be {wanted}, got {options.sprt!r}") from None
        test = evaluation.SequentialTest(low, high)
    elif games is None and options.until is None:
        games = GAMES
    seatings = len(schedules.seatings_of(options.rules))
    deals = MOST_DEALS if games is None else schedules.deals_for(games, seatings)
    named = options.rules, options.agents, options.schedule
    return evaluation.Plan(*named, deals, options.seed, options.until, test)


def _check_files(options: EvaluateOptions) -> None:
    """Fail now, rather than after hours of play, if a file cannot be written."""
    named = [options.out / name for name in _IN_OUT] if options.out else []
    for name in ("out", "json", "records"):  # the folder first: the others may be in it
        if (path := getattr(options, name)) is None:
            continue
        try:
            if name == "out":
                path.mkdir(parents=True, exist_ok=True)
            files.check_writable(path / SUMMARY_FILE if name == "out" else path)
            if name == "records" and files.is_standard(path):
                raise OSError(errno.EINVAL, "a regular file is needed, which grows game by game")
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"--{name} {path}: cannot be written: {reason}") from error
        if path.resolve() in [other.resolve() for other in named]:
            raise UserError(f"{path} is named twice: name another file")
        named.append(path)
    if options.records and options.records.exists() and not options.resume:
        raise UserError(f"--records {options.records}: exists; name another file")


def _evaluate(options: EvaluateOptions, plan: evaluation.Plan, typed: str) -> evaluation.Tournament:
    """Play, and print and write what was played, whatever happened then."""
    _check_files(options)
    if options.out and not report.has_pictures():
        what = "the picture in the report, which is left out,"
        command.note(str(MissingExtraError("matplotlib", what, "evaluation")))
    made = make_agents(options.agents)
    alone = files.locked(options.out) if options.out else contextlib.nullcontext()
    troubles = list[Exception]()
    with alone, workers_of(options.work, plan.agents) as workers:
        inside = isinstance(workers, InProcess)  # other workers make their own agents
        cup = evaluation.Tournament(plan, made if inside else options.agents)
        played = plan.deals * len(plan.seatings)
        if options.games and played > options.games and not options.quiet:
            rounded = f"rounded up to {played}: complete rotations of the seats"
            command.note(f"{options.games} games {rounded}")
        kept = partial(_kept, troubles, options, cup)
        with kept(), report.watching(cup, quiet=options.quiet) as progress:
            cup.run(
                workers=workers,
                file=options.out and options.out / GAMES_FILE,
                resume=options.resume,
                records=options.records,
                progress=progress,
                notice=command.note,
            )
        with kept():
            _report(options, cup, typed)
    for further in troubles[1:]:
        command.note(str(further))
    if troubles:
        raise troubles[0]
    return cup


@contextlib.contextmanager
def _kept(
    troubles: list[Exception], options: EvaluateOptions, cup: evaluation.Tournament
) -> Iterator[None]:
    """Keep what goes wrong in the ``with`` block, for the user."""
    try:
        yield
    except (UserError, ValueError) as error:
        troubles.append(error)
    except OSError as error:
        if error.filename is None:  # of the standard output
            raise
        reason = error.strerror or error
        text = f"{error.filename}: could not be written: {reason}"
        troubles.append(UserError(text, command.FAILED))
    except KeyboardInterrupt:
        counted = cup.counted.size
        text = f"interrupted: {cup.games} of {cup.plan.games} games kept, {counted} counted "
        text += "(those of complete deals)" + "; continue with --resume" * bool(options.out)
        troubles.append(UserError(text, command.INTERRUPTED))


def _report(options: EvaluateOptions, cup: evaluation.Tournament, typed: str) -> None:
    """Write and print the games of complete deals, if any; print them if they cannot be written."""
    if not len(cup.counted):
        return
    summary, quiet = cup.summary(), options.quiet
    paths = [path for path in (options.json, options.out and options.out / SUMMARY_FILE) if path]
    if paths:
        summary |= {"command": typed, "commit": commit()}
    try:
        for path in paths:
            files.write_json(path, summary)
        if options.out:
            report.write_report(options.out, summary)
    except OSError:
        quiet = False
        raise
    finally:
        if not quiet:
            title = f"{cup.plan.rules.players} players, seed {cup.plan.seed}, {cup.seconds:.1f} s"
            # A protocol prints a rating of its own.
            report.print_tables(title, summary, ratings=not options.bench)
