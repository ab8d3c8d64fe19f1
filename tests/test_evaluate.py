"""The evaluation script: what it prints and writes, and how it answers mistakes and Ctrl-C."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_tournament import rates  # noqa: F401

from carolus_env import __version__, bots, evaluation
from carolus_env.commands import evaluate
from carolus_env.engine.rules import Rules
from carolus_env.evaluation import bench, ladder, report, tournament
from carolus_env.evaluation.suite import Regret
from carolus_env.records import read_records

SCRIPT = Path(__file__).parent.parent / "evaluate.py"

BOTS = """
import os, shutil, signal, sys
from pathlib import Path
from carolus_env.bots import RandomBot
class Illegal(RandomBot):
    def act(self, states, generators):
        return super().act(states, generators) + 95
class Broken(RandomBot):
    def act(self, states, generators):
        raise RuntimeError("two\\nlines")
class Stops(RandomBot):
    calls = 0
    def act(self, states, generators):
        Stops.calls += 1
        if Stops.calls == int(os.environ.get("STOP_AT", 100)):
            signal.raise_signal(signal.SIGINT)
        return super().act(states, generators)
class Trio(RandomBot):
    def act(self, states, generators):
        if (states["players"] != 3).any():
            raise ValueError("three players only")
        return super().act(states, generators)
class Vandal(RandomBot):
    def act(self, states, generators):
        shutil.rmtree(Path(__file__).parent / "results", ignore_errors=True)
        return super().act(states, generators)
"""


@pytest.fixture
def bot_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_bots.py"
    path.write_text(BOTS)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the script: exit code, standard output, standard error."""
    return lambda *words: (evaluate.main([str(word) for word in words]), *capsys.readouterr())


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, which it does not in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def stand_ins(rates: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Stand-ins for ratings and report, which have tests of their own."""

    def write_report(folder: Path, summary: dict[str, Any]) -> list[Path]:
        (folder / "report.html").write_text(f"{summary['games']} games")
        return [folder / "report.html"]

    monkeypatch.setattr(report, "write_report", write_report)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_file_holds_what_was_played(run: Any, tmp_path: Path, players: int) -> None:
    path = tmp_path / "result.json"
    words = ("greedy", "random", "--players", players, "--games", 18, "--seed", 3, "--json", path)
    words += ("--crown-choice", "deferred", "--paladins-per-clan", 30, "--max-rounds", "none")
    assert run(*words, "--quiet") == (0, "", "")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    report = json.loads(path.read_text())
    rules = Rules(players, "deferred", paladins_per_clan=30, max_rounds=None)
    assert (report["rules"], report["games"], report["seed"]) == (rules.to_dict(), 18, 3)
    assert [agent["spec"] for agent in report["agents"]] == ["greedy", "random"]
    assert report["agents"][1]["rating"]["elo"] == 100
    assert report["complete"] is True
    assert report["seconds"] > 0
    [result] = report["pairings"]
    assert result["agents"] == ["greedy", "random"]
    assert result["games"] == 18 == sum(result["wins"]) + result["draws"]
    assert result["mean_castles"][0] > result["mean_castles"][1]
    assert f"{players} players, seed 3" in out
    assert f"{players} players, round robin, " in out and "random  " in out
    assert f"{100 * result['win_rate'][1]:.1f} [" in out, "of the one with more Elo"
    assert list(tmp_path.iterdir()) == [path], "nothing else is left beside the file"


def test_more_than_two_agents_play_every_pairing(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "[red]bots.py"  # a spec with brackets is shown as it is
    path.write_text(BOTS)
    specs = ["greedy", "random", f"{path}:RandomBot", "random"]
    code, out, err = run(*specs, "--games", 3, "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (code, err.count("\n")) == (0, 1) and "rounded up to 4" in err
    assert [agent["spec"] for agent in report["agents"]] == specs
    pairs = [tuple(result["agents"]) for result in report["pairings"]]
    assert pairs == [(specs[i], specs[j]) for i in range(4) for j in range(i + 1, 4)]
    assert {result["games"] for result in report["pairings"]} == {4}
    for row in ("random #1 +greedy ", "random #2 +random #1 ", r"bots\.py:RandomBot +random #1 "):
        assert re.search(row, out), "the stronger first"


def test_a_terminal_has_a_bar_and_a_table_while_games_are_played(run, monkeypatch):
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 6)
    monkeypatch.setattr(report, "_REDRAWN", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
    monkeypatch.setenv("TERM", "xterm")
    code, _, err = run("greedy", "random", "--games", 20)
    assert code == 0 and "20/20" in err, "a bar"
    assert "W-D-L" in err and "Elo by these games alone" in err, "and the tables"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "got 0"),
        ("greedy nobody", "'nobody'"),
        ("greedy random --players 5", "players"),
        ("greedy random --games 0", "games"),
        ("greedy random --seed -1", "seed"),
        ("greedy random --max-rounds few", "'few'"),
        ("greedy random --sprt 20", "--sprt"),
        ("greedy random --sprt 0,20 --until 9", "until"),
        ("greedy random --workers 0", "workers"),
        ("greedy random --players 3 --schedule swiss", "swiss"),
        ("greedy random --resume", "--out"),
        ("greedy random --out FILE", "--out FILE"),
        ("greedy random --records FILE", "--records FILE"),
        ("greedy random --records FOLDER", "FOLDER"),
        ("greedy FILE:Illegal", "FILE:Illegal"),
        ("greedy FILE:Broken", "RuntimeError: two lines"),
        ("greedy random --json FOLDER", "FOLDER"),
        ("greedy random --json FOLDER/none/r.json", "FOLDER/none"),
        (f"greedy random --json FOLDER/{'x' * 300}", "File name too long"),
        ("random greedy --bench", "got 2"),
        ("random --bench --players 7", "--players must be a whole number from 2 to 4, got 7"),
        ("random --bench --games 5", "--games"),
        ("gredy --bench", "'gredy'"),
        ("random --bench --seed 5 --max-rounds 9", "--bench does not use --seed, --max-rounds"),
        ("random --bench --partners adjacent", "--bench does not use --partners"),
        ("random --suite --schedule field", "--suite does not use --schedule"),
        ("random --suite --workers 2", "--suite does not use --workers"),
        ("random --suite --bench", "--suite does not use --bench"),
        ("greedy random --partners adjacent", "--partners needs --players 4"),
    ],
)
def test_a_mistake_is_answered_in_one_line(run: Any, bot_file: Path, words: str, said: str) -> None:
    def filled(text: str) -> str:
        return text.replace("FILE", str(bot_file)).replace("FOLDER", str(bot_file.parent))

    code, out, err = run(*filled(words).split())
    assert (code, out) == (2, "")
    assert err.count(f"{bot_file}:") <= 1, "an agent of a file is named once"
    assert filled(said) in err and err.startswith("carolus evaluate: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_bots_error_is_reported_with_its_line_or_its_traceback(run, tmp_path, workers):
    path = tmp_path / "faulty.py"
    path.write_text('def raises(states, generators):\n    return {}["no such key"]\n')
    words = ("greedy", f"{path}:raises", "--games", "2", "--workers", workers)
    code, _, err = run(*words)
    assert code == 2
    said = f"carolus evaluate: agent '{path}:raises' failed with KeyError: 'no such key'"
    assert err.startswith(said)
    assert err.endswith("(faulty.py, line 2)\n") and err.count("\n") == 1
    code, _, err = run(*words, "--traceback")
    lines = err.splitlines()
    assert code == 2 and lines[0] == "Traceback (most recent call last):"
    assert '    return {}["no such key"]' in lines and lines[-1].endswith("(faulty.py, line 2)")
    path.write_text("import numpy\n\nnumpy.zeros(-1)\n")
    err = run(*words)[2]
    assert err.endswith("(faulty.py, line 3)\n") and err.count("\n") == 1
    assert "numpy.zeros(-1)" in run(*words, "--traceback")[2]


def test_a_file_that_cannot_be_written_is_refused_before_playing(run, tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(evaluate.evaluation, "Tournament", lambda *_: pytest.fail("it played"))
    code, out, err = run("greedy", "random", "--json", tmp_path / "r.json")
    assert (code, out) == (2, "")
    assert err.endswith("r.json: cannot be written: No space left on device\n")


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_the_table_is_printed_when_the_file_cannot_be_written_at_the_end(run, bot_file, quiet):
    """The agent removes the folder while it plays: no check beforehand can know."""
    path = bot_file.parent / "results" / "r.json"
    path.parent.mkdir()
    code, out, err = run("greedy", f"{bot_file}:Vandal", "--games", 4, "--json", path, *quiet)
    assert code == 1
    assert "my_bots.py:Vandal" in out
    assert err == f"carolus evaluate: {path}: could not be written: No such file or directory\n"


@pytest.mark.parametrize(("stop", "code"), [("raise OSError('gone')", 2), ("", 130)])
def test_full_deals_before_an_end_are_saved(run, tmp_path, bot_file, monkeypatch, stop, code):
    bot_file.write_text(BOTS.replace("signal.raise_signal(signal.SIGINT)", stop) if stop else BOTS)
    monkeypatch.setattr(tournament, "SIDE_BY_SIDE", 6)
    monkeypatch.setenv("STOP_AT", "500")
    path = tmp_path / "r.json"
    stops = f"{bot_file}:Stops"
    result, out, err = run("greedy", "random", stops, "--games", 300, "--json", path)
    report = json.loads(path.read_text())
    assert result == code and report["complete"] is False and "W-D-L" in out
    assert {pairing["deals"] for pairing in report["pairings"]} == {report["deals"]}
    assert 0 < report["games"] < 900 and report["games"] % 6 == 0, "whole deals"
    expected = f"{stops}' failed with OSError: gone" if stop else f"{report['games']} counted"
    assert expected in err and (stop or err.count("\n") == 1)


def test_a_folder_holds_games_summary_and_report(run: Any, tmp_path: Path) -> None:
    cup, records = tmp_path / "cup", tmp_path / "games.jsonl.gz"
    words = ("greedy", "random", "greedy", "--players", 3, "--games", 18, "--out", cup)
    assert run(*words, "--records", records, "--resume")[::2] == (0, ""), "nothing is there yet"
    assert [record["game"] for _, record in read_records(records)] == list(range(54))
    names = sorted(path.name for path in cup.iterdir())
    assert names == ["games.jsonl", "report.html", "summary.json"]
    before = (cup / "games.jsonl").read_bytes()
    kept = evaluation.read_games(cup / "games.jsonl").results
    assert len(kept) == json.loads((cup / "summary.json").read_text())["games"]
    assert (cup / "report.html").read_text() == "54 games"
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.endswith("games.jsonl: exists; resume it (--resume) or move it\n")
    assert run(*words, "--resume")[0] == 0
    assert (cup / "games.jsonl").read_bytes() == before


def test_it_plays_until_intervals_are_narrow_or_a_test_is_decided(run, tmp_path):
    path = tmp_path / "r.json"
    assert run("greedy", "random", "--until", 150, "--json", path)[0] == 0
    report = json.loads(path.read_text())
    # the stand-in's intervals: 2000 / sqrt(games), 1.5 to 1.8 times as wide at any time
    assert report["deals"] == 250
    assert 150 / 2000 * 500**0.5 > report["stop_rule"]["widening"] > 1.5
    assert run("greedy", "random", "--until", 1, "--games", 14, "--json", path)[0] == 0
    assert json.loads(path.read_text())["deals"] == 7
    code, out, _ = run("greedy", "random", "--sprt", "0,100", "--json", path)
    report = json.loads(path.read_text())
    rule = report["stop_rule"]
    assert (code, rule["verdict"]) == (0, "stronger")
    assert rule["test"] == {"elo0": 0, "elo1": 100}
    assert rule["ratio"] >= rule["bounds"][1] > 2.9
    assert rule["deals"] <= report["deals"] < 50
    assert f"\n{rule['text']}\n" in out and "greedy is stronger than random (H1) after" in out
    code = run("greedy", "greedy", "--sprt=-1,1", "--games", 16, "--json", path)[0]
    report = json.loads(path.read_text())
    assert (code, report["stop_rule"]["verdict"]) == (0, "undecided")
    assert (report["deals"], report["complete"]) == (8, True)


def test_two_files_of_one_name_are_refused(run, tmp_path):
    cup, words = tmp_path / "cup", ("greedy", "random", "--games", 2)
    (cup / "inner").mkdir(parents=True)
    for names in (
        ("--json", tmp_path / "x", "--records", cup / ".." / "x"),
        ("--json", cup / "games.jsonl", "--out", cup),
        ("--json", cup / "report.html", "--out", cup),
        ("--suite", "--json", cup / "worst_2p.jsonl", "--out", cup),
        ("--out", cup, "--records", cup / "inner" / ".." / "summary.json"),
    ):
        code, out, err = run(*(words[:2] if "--suite" in names else words), *names)
        assert (code, out) == (2, "") and "is named twice: name another file" in err
    assert [path.name for path in cup.iterdir()] == ["inner"]
    new = tmp_path / "new"
    assert run(*words, "--out", new, "--records", new / "r.jsonl", "--json", new / "a.json")[0] == 0
    assert {"r.jsonl", "a.json", "games.jsonl"} < {path.name for path in new.iterdir()}


def test_without_matplotlib_the_report_has_no_pictures(run, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    code, out, err = run("greedy", "random", "--games", 4, "--out", tmp_path / "cup")
    assert code == 0 and "W-D-L" in out
    assert "matplotlib is missing; the picture in the report, which is left out, needs" in err
    assert "pip install 'carolus-env[evaluation]'" in err and err.count("\n") == 1
    names = {path.name for path in (tmp_path / "cup").iterdir()}
    assert names == {"games.jsonl", "report.html", "summary.json"}
    page = (tmp_path / "cup" / "report.html").read_text()
    assert "Pairings" in page and "<svg" not in page and 'role="img"' not in page


def test_what_the_extra_has_is_asked_for_before_anything_is_played(tmp_path):
    words = "greedy", "random", "--out", str(tmp_path / "cup")
    program = "import sys; sys.modules['rich'] = None; from carolus_env.commands import main; "
    program += "sys.exit(main(['evaluate', *sys.argv[1:]]))"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'carolus-env[evaluation]'" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "cup").exists()


def test_ctrl_c_while_the_report_is_made_says_what_is_kept(run, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "write_report", interrupted)
    code, _, err = run("greedy", "random", "--games", 20, "--out", tmp_path / "cup")
    assert (code, err.count("\n")) == (130, 1)
    assert "20 of 20 games kept, 20 counted" in err and "--resume" in err


def test_ctrl_c_before_any_game_leaves_the_file(run, tmp_path, bot_file, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("precious")
    for stop_at in ("1", "10"):  # before the first game, and among the first games
        monkeypatch.setenv("STOP_AT", stop_at)
        code, out, err = run(f"{bot_file}:Stops", "random", "--games", 60, "--json", path)
        assert (code, out) == (130, "")
        assert err.count("\n") == 1
        assert "0 counted" in err
    assert path.read_text() == "precious"


def test_the_script_runs_from_anywhere_and_output_that_nobody_can_read_is_no_traceback(tmp_path):
    (tmp_path / "torch.py").write_text("1 / 0")  # torch is for agents that learn only
    command = [sys.executable, str(SCRIPT), "random", "random", "--games", "2"]
    reading, closed = os.pipe()
    os.close(reading)
    full_disk = os.open("/dev/full", os.O_WRONLY)
    for output, code, said in (
        (subprocess.PIPE, 0, ""),
        (closed, 141, ""),
        (full_disk, 1, "carolus evaluate: the output"),
    ):
        given = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path)}}
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, **given)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert said in done.stderr and ("carolus evaluate" in done.stderr) == bool(said)
        assert code or {"random #1", "random #2"} <= set(re.findall(r"random #\d", done.stdout))
    os.close(closed)
    os.close(full_disk)


def small_protocol(monkeypatch: pytest.MonkeyPatch, asked: list[Any], two: int) -> Any:
    """Let CarolusBench play few deals, with ratings as they are; returns its stand-in of regret."""
    monkeypatch.undo()

    def regrets(suite: Any, agent: bots.Agent, half: str) -> Any:
        asked.append((suite.digest, agent.name, half))
        return SimpleNamespace(summary=lambda: {"all": Regret(0.25, 0.125, 0.5, 7)})

    for name, value in (
        *(("GUESS_GAMES", 2), ("RUNGS", 2), ("DEALS", {2: two, 3: 1}), ("measure", regrets)),
        ("suite", lambda players: SimpleNamespace(digest=players)),  # tests/test_bench.py has it
    ):
        monkeypatch.setattr(bench, name, value)
    return regrets


def test_the_protocol_leaves_out_what_an_agent_cannot_play(run, tmp_path, monkeypatch, bot_file):
    small_protocol(monkeypatch, asked := [], 1)
    words = ("--bench", "--quiet", "--out", tmp_path / "b")
    code, out, err = run(f"{bot_file}:Broken", *words)
    assert (code, out) == (2, "") and "two lines" in err and not (tmp_path / "b").exists()
    code, out, err = run(f"{bot_file}:Trio", *words)
    assert code == 0 and "2 players are left out: " in err and "three players only" in err
    result = json.loads((tmp_path / "b" / "bench.json").read_text())
    assert list(result["players"]) == ["3"] and "three players only" in result["left_out"]["2"]
    assert [players for players, *_ in asked] == [3]


def test_the_protocol_rates_an_agent_and_counts_its_regret(run, tmp_path, monkeypatch):
    regrets = small_protocol(monkeypatch, asked := [], 4)
    code, out, _ = run("random", "--bench", "--out", tmp_path / "b", "--quiet")
    assert code == 0
    assert asked == [(players, "random", "report") for players in (2, 3)]
    result = json.loads((tmp_path / "b" / "bench.json").read_text())
    assert (result["protocol"], result["ladder"]) == (bench.NAME, bench.LADDER)
    two = result["players"]["2"]
    assert two["versions"]["carolus-env"] == __version__
    assert two["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", two["commit"])
    assert (two["seed"], list(two["sources"])) == (bench.SEED, ["carolus_env"])
    assert two["opponents"] == [rung.spec for rung in ladder.rungs(2)[:2]]
    assert two["regret"] == {"all": [0.25, 0.125, 0.5, 7]}
    games = evaluation.read_games(tmp_path / "b" / "2p" / "games.jsonl")
    met = {
        spec: games.results[(games.results["table"] == number).any(axis=1)]
        for number, spec in enumerate(two["opponents"], 1)
    }
    elo, *interval, bound = ladder.place(Rules(2), met).values()
    assert (two["elo"], two["elo_ci95"], two["elo_bound"]) == (elo, interval, bound)
    assert f"2 players: {elo:+.0f} Elo" in out
    assert "regret of a decision 25.0 % (12.5 - 50.0) of a win" in out

    def stopped(suite: Any, agent: bots.Agent, half: str) -> Any:
        if suite.digest == 3:
            raise KeyboardInterrupt
        return regrets(suite, agent, half)

    with monkeypatch.context() as second:
        second.setattr(bench, "measure", stopped)
        code, shown, _ = run("random", "--bench", "--out", tmp_path / "c", "--quiet")
    kept = json.loads((tmp_path / "c" / "bench.json").read_text())["players"]
    assert code == 130 and kept["2"] == two, "what was finished"
    three = {key: result["players"]["3"][key] for key in kept["3"]}
    assert kept["3"] == three and "regret" not in three, "the rating by the games that were played"
    assert f"3 players: {three['elo']:+.0f} Elo" in shown
    # A run that was cut off goes on against the rungs that it had met.
    games_file = tmp_path / "b" / "2p" / "games.jsonl"
    header, first, *_ = games_file.read_bytes().splitlines(keepends=True)
    games_file.write_bytes(header + first)
    monkeypatch.setattr(bench, "opponents", None)
    again = run("random", "--bench", "--players", 2, "--out", tmp_path / "b", "--resume", "--quiet")
    assert again[0] == 0 and again[1] == out.splitlines(keepends=True)[0]


def test_the_protocols_file_grows_and_a_run_goes_on_where_there_is_something(
    run, tmp_path, monkeypatch, bot_file
):
    """So a script can always say --resume, and measure one number of players at a time."""
    small_protocol(monkeypatch, [], 1)
    out = tmp_path / "b"
    words = (f"{bot_file}:RandomBot", "--bench", "--quiet", "--out", out)

    def parts() -> dict[str, Any]:
        return json.loads((out / "bench.json").read_text())["players"]

    assert run(*words, "--players", 3, "--resume")[0] == 0, "nothing is there"
    first = parts()
    assert run(*words, "--resume")[0] == 0, "3 players were played, 2 were not"
    assert parts().keys() == {"2", "3"} and parts()["3"] == first["3"]
    shutil.rmtree(out / "2p")
    assert run(*words, "--players", 2)[0] == 0
    kept = parts()
    assert kept["3"] == first["3"] and set(kept["2"]["sources"]) == {"my_bots.py", "carolus_env"}
    shutil.rmtree(out / "2p")
    bot_file.write_text(BOTS + "\n")
    code, shown, err = run(*words, "--players", 2, "--resume")
    assert (code, shown) == (2, "") and not (out / "2p").exists()
    assert err.endswith(f"bench.json: of {bot_file}:RandomBot, and my_bots.py changed since\n")
    code, _, err = run("random", *words[1:], "--players", 2)
    assert code == 2 and "bench.json: agent must be 'random', got '" in err
    assert parts() == kept


def test_one_figure_is_to_be_cited_and_others_are_called_what_they_are(run, tmp_path, monkeypatch):
    small_protocol(monkeypatch, [], 2)
    out = run("random", "--bench", "--players", 2, "--out", tmp_path / "b")[1]
    assert len(re.findall(r"to cite: .* Elo on the ladder \(", out)) == 1
    assert out.count("Elo") == 1 and "W-D-L" in out
    out = run("random", "greedy", "--games", 20)[1]
    assert "Elo by these games alone" in out


def test_what_was_written_names_the_command_and_the_commit(run, tmp_path):
    assert run("greedy", "random", "--games", 4, "--out", tmp_path / "a b", "--seed", 5)[0] == 0
    summary = json.loads((tmp_path / "a b" / "summary.json").read_text())
    words = f"greedy random --games 4 --out '{tmp_path}/a b' --seed 5"
    assert summary["command"] == f"carolus evaluate {words}"
    assert summary["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", summary["commit"])
