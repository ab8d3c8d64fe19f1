"""Faults planted in copies of this checkout, a copy for each core, and the test that finds each.

    python tests/faults.py                 all, about half an hour
    python tests/faults.py --only seat     those with "seat" in their name

A fault is a name, a file of the package, the text that is replaced, its replacement, and the tests
that should fail: files of tests/ by name, after "nojit:" without the compiler.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
K, E, N, L = "engine/kernels/", "evaluation/", "networks/", "learners/"
# fmt: off
FAULTS = [
    # rules and the engine's kernels
    ("a tie in a court gives control", K + "courts.py", 's["courts"][player, clan]) > most', 's["courts"][player, clan]) >= most', "nojit:rulebook"),
    ("the smallest court leaves out seat 1", K + "courts.py", 'for player in range(1, int64(s["players"])):\n        fewest', 'for player in range(2, int64(s["players"])):\n        fewest', "nojit:rulebook nojit:properties"),
    ("a disc forbids the next number", K + "legal.py", "fresh &= ~((1 << played) >> 1)", "fresh &= ~(1 << played)", "nojit:rulebook"),
    ("a team taken over loses one castle only", K + "regions.py", 's["castles"][owner] -= castles', 's["castles"][owner] -= 1', "nojit:rulebook"),
    ("of equal discs the later acts first", K + "turns.py", "int64(other < place)", "int64(other > place)", "nojit:rulebook"),
    ("discs come back a round early", K + "turns.py", 's["round"] > 0 and s["round"] % rules.DISCS == 0', 's["round"] > 0 and s["round"] % rules.DISCS == rules.DISCS - 1', "nojit:rulebook"),
    ("one castle more is needed to win", K + "turns.py", '>= rules.CASTLES_TO_WIN[int64(s["players"])]', '> rules.CASTLES_TO_WIN[int64(s["players"])]', "nojit:rulebook"),
    ("the game ends with MIN_REGIONS regions", K + "turns.py", 's["regions"] < rules.MIN_REGIONS', 's["regions"] <= rules.MIN_REGIONS', "nojit:rulebook"),
    ("payoffs are divided by the teams", K + "turns.py", "(sharing * (teams - 1))", "(sharing * teams)", "nojit:rulebook"),
    ("a partner's clans do not count for strength", K + "courts.py", 'uint64(s["team"][player] == team)', "uint64(player == team)", "nojit:rulebook"),
    # observation
    ("only the viewer's control is seen", "engine/observation.py", 'int64(s["control"][clan]) == seat', 'int64(s["control"][clan]) == viewer', "observation"),
    ("order is counted counter-clockwise", "engine/observation.py", 'clockwise_from(viewer, int64(s["order"][place]), at.players)', 'clockwise_from(int64(s["order"][place]), viewer, at.players)', "observation"),
    ("this round is not left", "engine/observation.py", 'max(int64(s["round"]), 1) + 1, ROUND', 'max(int64(s["round"]), 1), ROUND', "observation"),
    ("castles by team, not from the viewer's on", "engine/observation.py", 's["castles"][team_at(own_team, k, at.teams)]', 's["castles"][k]', "observation"),
    # options and commands
    ("a number above its limit is allowed", "system/options.py", "(high is None or value <= high)", "(high is None or value <= high + 1)", "nojit:options"),
    ("an option that a mode does not use passes", "system/command.py", "if name not in used]", "if name in ()]", "evaluate"),
    ("a suggested command is not quoted", "commands/train.py", "shlex.quote(str(job.folder))", "str(job.folder)", "commands"),
    ("a closed output stays closed", "system/command.py", "if getattr(sys, name) is None:", "if getattr(sys, name) == 0:", "commands"),
    # records and notation
    ("a forfeited game gets a result", "records/record.py", 'or over["reason"] == rules.BY_FORFEIT', 'or over["reason"] == 0', "nojit:record aec"),
    ("a region across territory 0 is not named by one", "notation/moves.py", "(int(where) - first) % TERRITORIES <= (last - first) % TERRITORIES", "first <= int(where) <= last", "nojit:notation"),
    ("control kept is written as control won", "notation/moves.py", '== before["player"] != before["control"][clan]', '== before["player"]', "nojit:notation"),
    ("a position with too many castles passes", "records/position.py", "within & owned & (castles != sizes)", "within & owned & (castles < sizes)", "position"),
    ("typed counts are read one too many", "notation/positions.py", "numbers[clan] = int(number)", "numbers[clan] = int(number) + 1", "nojit:notation_positions"),
    # dealing and seeds
    ("a derived seed is shared by neighbours", "engine/chance.py", "int(branches(seed_generators(seed, 1), number)[0])", "int(seed_generators(seed + number, 1)[0])", "dealing"),
    ("the first later meeting has the streams of meeting 0", "engine/chance.py", "later = meetings > 0", "later = meetings > 1", "dealing arena tournament"),
    ("all seats roll by seat 0's generator", K + "turns.py", 's["generator"] = dice[row, seat]', 's["generator"] = dice[row, 0]', "nojit:dealing chance dealing"),
    # arena and evaluation
    ("a shared win counts as a win", E + "games.py", "wins = (scores > 1 - 1e-9)", "wins = (scores > 0.4)", "arena evaluate"),
    ("values of a deal count as independent", E + "games.py", "places = np.arange(n) if deals is None else np.unique(deals, return_inverse=True)[1]", "places = np.arange(n)", "arena evaluate"),
    ("every game is of the first seating", E + "schedules.py", "self.seatings[seatings]]", "self.seatings[seatings * 0]]", "tournament"),
    ("two seats are as strong as one", E + "ratings.py", "np.log(evidence.seats[0] / evidence.seats[1])", "0 * evidence.seats[0]", "ratings"),
    ("other rules are resumed", E + "journal.py", "{**each.to_dict(), **each.rules.to_dict()}", "each.to_dict()", "tournament"),
    # learners and networks
    ("advantages go on past the end of a game", L + "ppo.py", "target, outcome = experience.win_shares[d, team], experience.win_shares[d, team]", "target = experience.win_shares[d, team]", "ppo"),
    ("a bad choice is never clipped", L + "ppo.py", "clipped = ratio > 1 + loss.clip if advantage > 0 else ratio < 1 - loss.clip", "clipped = ratio > 1 + loss.clip if advantage > 0 else False", "ppo"),
    ("exploring does not cut the trace", L + "td.py", "decay = trace if memory.followed[t] else 0.0", "decay = trace", "td"),
    ("the first layer's slope is forgotten", N + "network.py", "sums[i] *= _slope(activations.first[i])", "sums[i] *= float32(1)", "td networks ppo"),
    ("rows that go are added again", N + "network.py", "sums[j] -= a[j]", "sums[j] += a[j]", "networks"),
    # search and bots
    ("the better half of the choices is dropped", "bots/tree.py", "if value > highest:", "if highest < 0 or value < highest:", "search"),
    ("what is left of a turn is planned anew", "bots/network.py", "rest if rest != 0 else decide(s, selector)", "decide(s, selector)", "value"),
    ("every node maximises team 0's value", "bots/tree.py", 'edges[edge]["value"][team]) / visits', 'edges[edge]["value"][0]) / visits', "search bench"),
    ("the last edge of a path is not counted", "bots/tree.py", "for k in range(1, path[0] + 1):", "for k in range(1, path[0]):", "search"),
    ("greedy does not mind others' clans", "bots/baselines.py", "            points -= 1\n", "            points -= 0\n", "bots signatures"),
    ("lost choices are compared to the end", "bots/tree.py", " and tried < count:", " and False:", "search"),
    # files, locks, resuming
    ("this process may lock twice", "system/files.py", "    if _held.setdefault(str(lock), own) is not own:", "    if _held.setdefault(str(lock), own) is None:", "commands"),
    ("games under way are not in a checkpoint", L + "selfplay.py", 'return {**self.shared, **own, "stats": self.stats, "noted": self.noted}', 'return {**self.shared, "stats": self.stats, "noted": self.noted}', "ppo learners"),
    # page and session
    ("an agent's decision can be undone", "play/session.py", '"action" in last and same_turn and self.agents[last["player"]] is None', '"action" in last and same_turn', "play_session play_server"),
    ("an agent sees the dice to come", "play/session.py", 'hidden["generator"] = branches(stream, [event])', "hidden[\"generator\"] = game[\"generator\"]", "play_session"),
    # by a second hand
    ("the Emperor stays behind when his region is absorbed", K + "regions.py", '        s["emperor"] = region\n', "        pass\n", "nojit:rulebook nojit:properties"),
    ("a face that nobody can take is taken", K + "courts.py", "elif face != CROWN and can_be_taken(s, face):", "elif face != CROWN:", "nojit:rulebook nojit:properties"),
    ("random actions leave out the last choice", K + "legal.py", "SPAN[legal_row])\n", "max(SPAN[legal_row] - 1, 1))\n", "batch properties"),
    ("the learner stays in its seat", "envs/learner.py", "self.seats[rows] = (self.seats[rows] + 1) % self.rules.players", "pass", "gym learner"),
    ("what ended is seen from seat 0", "envs/learner.py", "observation.observe(ended.states, ended.seats, dtype=dtype)", "observation.observe(ended.states, ended.seats * 0, dtype=dtype)", "gym learner"),
    ("anyone may play a record's event", "records/record.py", 'if event.get("player", seat) != seat:', "if False:", "nojit:record nojit:replay"),
    ("weights are not compared with their hash", N + "files.py", 'if untrusted.get(about, "sha256", str) != model.digest():', "if False:", "models"),
    ("the anchor is not 0", E + "ratings.py", "tied[centre] if anchor is None else np.arange(len(given)) == anchor", "tied[centre]", "ratings"),
    ("a cut-off game terminates", "envs/aec.py", "dict.fromkeys(self.agents, not cut_off)", "dict.fromkeys(self.agents, True)", "aec parallel"),
    # by a third hand
    ("final infos do not tell of a forfeit", "envs/gym.py", "final_info, over = self._info(ended.rows, ended)", "final_info, over = self._info(ended.rows)", "gym"),
    ("a partner's reserve is a threat", K + "courts.py", '            if s["team"][other] != team:\n', "            if True:\n", "turns"),
    ("a disc and a turn after it are one turn", "notation/moves.py", 'int(before["phase"] == rules.DISC)', "0", "nojit:notation"),
    ("a test takes the deviation of no hypothesis", E + "schedules.py", "np.square(t * mean) + 4 * square", "4 * square", "ratings"),
    ("a stop rule is not asked where it was interrupted", E + "tournament.py", "    if start in asks and stop():\n        return\n    try:", "    try:", "tournament"),
    ("all parts of a data set have the same deals", "commands/dataset.py", "seed=derived_seed(self.seed, first)", "seed=self.seed", "arrays"),
    ("a resumed run's time begins anew", L + "run.py", 'Clock(numbers["seconds"])', "Clock()", "learners"),
    ("games do not replace a run's minutes", L + "run.py", 'instead = {"minutes": None} if self.length in changes else {}', "instead: dict[str, Any] = {}", "td"),
    ("what the player to move rolled is forgotten", "bots/tree.py", 'if s["phase"] != DISC:', "if False:", "search"),
    ("a bot's turn goes on with another stream", "play/session.py", "            index -= 1  # to", "            break  # to", "play_session play_server"),
    ("a field that does not fit the others passes", "records/position.py", "                raise PositionError(f\"position: {where}{text.format(*got)}\")", "                pass", "state position"),
    ("packed games begin anywhere", "records/arrays.py", "if not (fresh := are_set_ups(starts)).all():", "if not (fresh := are_set_ups(starts)).any():", "arrays"),
    ("an error that is no Exception ends the server", "play/server.py", "    except BaseException as error:\n        traceback", "    except Exception as error:\n        traceback", "play_server"),
    # by a fourth hand
    ("results come in the order in which they are ready", "system/executors.py", "        number, future = futures[0]\n", "        futures = deque(sorted(futures, key=lambda one: not one[1].done()))\n        number, future = futures[0]\n", "executors tournament"),
    ("a group that loses everything seems rated", E + "ratings.py", "reach = _closure(points)", "reach = _closure(points | points.T)", "ratings"),
    ("two opponents pass for three", "envs/learner.py", "if len(specs) not in (1, rules.players - 1):", "if not 1 <= len(specs) <= rules.players - 1:", "learner"),
    ("a model's name ends at its last dot", N + "files.py", 'Path(f"{path}{SUFFIX}")', "path.with_suffix(SUFFIX)", "models"),
    ("without max_rounds a game is cut off after a round", K + "turns.py", 's["round"] > 0 and s["round"] == s["max_rounds"]', 's["round"] > 0 and s["round"] >= s["max_rounds"]', "nojit:rulebook"),
    ("the learner's last observation is from seat 0", "envs/learner.py", 'observation.observe(self.states, self.seats, dtype=out.dtype', 'observation.observe(self.states, self.states["player"], dtype=out.dtype', "gym"),
    ("threads share the row from which observations are scaled", "games/batch.py", "np.zeros((1, length), np.uint8), scales", "self.observations[:1].view(np.uint8)[:, :length], scales", "batch"),
    ("regret of unlisted choices is never negative", E + "suite.py", "regrets[missed] = behind.mean(axis=1)", "regrets[missed] = np.maximum(behind.mean(axis=1), 0)", "suite"),
    ("an interrupted evaluation is not made up for", L + "run.py", 'self._learning, self._due = float(numbers["learning"]), bool(numbers["due"])', 'self._learning, self._due = float(numbers["learning"]), False', "learners"),
    ("NaN and infinity lie in every range", "system/options.py", "math.isfinite(result) and _within(", "not math.isfinite(result) or _within(", "nojit:options"),
    ("final observations are marked as missing", "envs/gym.py", "        self._over = np.zeros(self.num_envs, np.bool_)\n        self.games.restart(ended.rows)", "        self._over[:] = False\n        self.games.restart(ended.rows)", "gym"),
    ("networks see adjacent opponents counter-clockwise", K + "turns.py", "seats[1], seats[3] = 2 - pair, 3 - pair", "seats[1], seats[3] = 3 - pair, 2 - pair", "turns"),
    ("seeds of masked games are those of the first", "envs/gym.py", "seeds[rows], rows, starts)", "seeds[: len(rows)], rows, starts)", "gym"),
    ("regret of a game weights kinds as the suite does", E + "suite.py", '(GAME, self.suite.header["per_game"])', "(GAME, None)", "suite"),
]
# fmt: on


def finder(tree: Path, tests: str) -> str | None:
    """Run the tests of some files until one fails, and return its id; None if none does."""
    for test in tests.split():
        mode, _, file = test.rpartition(":")
        environment = os.environ | {
            "PYTHONPATH": str(tree),
            "NUMBA_CACHE_DIR": str(tree / "kernels"),
        }
        if mode == "nojit":
            environment["NUMBA_DISABLE_JIT"] = "1"
        command = [sys.executable, "-m", "pytest", f"tests/test_{file}.py", "-xq", "-n", "0"]
        done = subprocess.run(
            [*command, "-m", "not slow", "--tb=line"],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
            return failed[1] if failed else f"tests/test_{file}.py"
    return None


def main() -> int:
    """Plant each fault; the exit code is 1 if one was not found, or does not fit any more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="plant faults with this in their name")
    options = parser.parse_args()
    faults = iter([fault for fault in FAULTS if options.only in fault[0]])
    taking = threading.Lock()

    def work(tree: Path) -> int:
        """Plant one fault after the other in a tree; return how many were missed."""
        subprocess.run(["git", "worktree", "add", "-fq", "--detach", tree], cwd=ROOT, check=True)
        missed = 0
        try:
            while True:
                with taking:
                    fault = next(faults, None)
                if fault is None:
                    return missed
                name, file, old, new, tests = fault
                path = tree / "carolus_env" / file
                source = path.read_text()
                if source.count(old) == 1:
                    path.write_text(source.replace(old, new))
                    found = finder(tree, tests)
                    path.write_text(source)
                    result = f"found by {found}" if found else f"NOT FOUND by {tests}"
                else:
                    found, result = None, f"DOES NOT FIT {file}"
                missed += not found
                print(f"{name}: {result}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "-f", tree], cwd=ROOT, check=True)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        trees = [Path(folder) / f"tree{k}" for k in range(os.cpu_count() or 1)]
        missed = sum(pool.map(work, trees))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
