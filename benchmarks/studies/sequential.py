"""How often sequential tests and intervals err, and how many deals they take.

    python -m benchmarks.studies.sequential --json benchmarks/results/sequential.json

Tournaments are simulated: deal scores are drawn from the distribution of a real pairing, played
first, or of two tossed coins a deal. Each distribution is tilted exponentially (probability times
``exp(x * score)``) until its normalised Elo is the wanted one.

*Tests*: `SequentialTest` where the truth is H0, H1 and half-way, and the test of the same error
rates that looks once, after the number of deals that the normal approximation asks for.

*Intervals*: of equal agents, looked at after every ten deals up to 1,000: in how many tournaments
does an interval for the win rate ever leave out the truth? Wilson's interval (`mean_interval`), the
same widened (`widening`), the confidence sequence by betting. And where a tournament stops as soon
as the interval is narrow: how often does the last interval leave out the truth, after how many
deals?
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.machine import line
from carolus_env import arena
from carolus_env.analysis import sequential
from carolus_env.analysis.sequential import NELO, STRONGER, UNDECIDED, SequentialTest
from carolus_env.arena.stopping import deal_scores
from carolus_env.engine.rules import Rules
from carolus_env.system.files import write_json

Floats = npt.NDArray[np.float64]

PAIRINGS = (("planner", "planner:plans=one", 2, 300), ("greedy", "greedy", 3, 2000))
"""The pairings whose scores are drawn: agents, players, deals."""

WIDTHS = {"two coins": 0.1, "planner : planner:plans=one": 0.02, "greedy : greedy": 0.1}
"""Where a tournament stops, about 200 to 400 deals away."""

MOST_DEALS = 20_000
BLOCK = 64  # deals that are drawn and tested at once
LOOKS = range(10, 1001, 10)


class Scores(NamedTuple):
    """A distribution of deal scores.

    Attributes:
        name: of the pairing.
        games: of a deal.
        values: ``(K,)`` scores.
        shares: ``(K,)`` probabilities.
    """

    name: str
    games: int
    values: Floats
    shares: Floats

    def elo(self) -> float:
        """Normalised Elo."""
        mean = self.shares @ self.values
        deviation = math.sqrt(self.shares @ np.square(self.values - mean))
        return float(NELO * (mean - 0.5) / (math.sqrt(self.games) * deviation))

    def tilted(self, elo: float) -> Scores:
        """The exponential tilt with this normalised Elo, found by bisection."""
        low, high = -20.0, 20.0
        while high - low > 1e-10:
            middle = (low + high) / 2
            found = self._tilt(middle)
            low, high = (middle, high) if found.elo() < elo else (low, middle)
        return self._tilt(low)

    def _tilt(self, by: float) -> Scores:
        weights = self.shares * np.exp(by * self.values)
        return self._replace(shares=weights / weights.sum())

    def draw(self, rng: np.random.Generator, *shape: int) -> npt.NDArray[np.int64]:
        """Numbers of drawn scores."""
        return np.searchsorted(self.shares.cumsum()[:-1], rng.random(shape), side="right")


def distributions(seed: int) -> Iterator[Scores]:
    """Two coins a deal, and the pairings as they are played."""
    yield Scores("two coins", 2, np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.5, 0.25]))
    for first, second, players, deals in PAIRINGS:
        cup = arena.Tournament(arena.Plan(Rules(players), (first, second), deals=deals, seed=seed))
        cup.run()
        scores, games = deal_scores(cup.results, (0, 1))
        values, counts = np.unique(np.round(scores, 9), return_counts=True)
        if first == second:  # the agents have the same strength, so the mirror image is as likely
            values, places = np.unique(np.round([*values, *(1 - values)], 9), return_inverse=True)
            counts = np.bincount(places, weights=np.tile(counts, 2))
        yield Scores(f"{first} : {second}", games, values, counts / counts.sum())


# ------------------------------------------------------------------------------------ tests


def verdicts(
    test: SequentialTest, scores: Scores, tournaments: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.int64]]:
    """The verdict of each tournament, and after how many deals."""
    lower, upper = test.bounds
    counts = np.zeros((tournaments, len(scores.values)))
    verdict = np.full(tournaments, UNDECIDED)
    deals = np.full(tournaments, MOST_DEALS)
    playing = np.arange(tournaments)
    for start in range(0, MOST_DEALS, BLOCK):
        drawn = scores.draw(rng, len(playing), BLOCK)
        path = counts[playing, None] + np.cumsum(
            drawn[..., None] == np.arange(len(scores.values)), axis=1
        )
        ratios = test.ratios(scores.values, path.reshape(-1, path.shape[-1]), scores.games)
        ratios = ratios.reshape(len(playing), BLOCK)
        out = (ratios <= lower) | (ratios >= upper)
        done, first = out.any(axis=1), out.argmax(axis=1)
        ended = playing[done]
        deals[ended] = start + 1 + first[done]
        high = ratios[done, first[done]] >= upper
        verdict[ended] = np.where(high, STRONGER, sequential.NOT_STRONGER)
        counts[playing] = path[:, -1]
        playing = playing[~done]
        if not len(playing):
            break
    return verdict, deals


def one_look(test: SequentialTest, scores: Scores) -> int:
    """Deals after which one look has the error rates of the test, by the normal approximation."""
    quantiles = [NormalDist().inv_cdf(1 - rate) for rate in (test.alpha, test.beta)]
    apart = (test.elo1 - test.elo0) * math.sqrt(scores.games) / NELO
    return math.ceil((sum(quantiles) / apart) ** 2)


def stronger_at_one_look(
    test: SequentialTest, scores: Scores, tournaments: int, rng: np.random.Generator
) -> float:
    """How often one look says "stronger": normalised Elo is nearer to H1."""
    counts = rng.multinomial(one_look(test, scores), scores.shares, size=tournaments)
    shares = counts / counts.sum(axis=1, keepdims=True)
    means = shares @ scores.values
    deviations = np.sqrt(shares @ np.square(scores.values) - np.square(means))
    weights = [NormalDist().inv_cdf(1 - rate) for rate in (test.beta, test.alpha)]
    border = np.average([test.elo0, test.elo1], weights=weights)
    elo = NELO * (means - 0.5) / (math.sqrt(scores.games) * np.maximum(deviations, 1e-9))
    return float((elo > border).mean())


def test_row(
    test: SequentialTest, scores: Scores, elo: float, tournaments: int, seed: int
) -> dict[str, Any]:
    """Simulate one test at one truth."""
    rng = np.random.default_rng(seed)
    truth = scores.tilted(elo)
    started = time.process_time()
    verdict, deals = verdicts(test, truth, tournaments, rng)
    stronger = int((verdict == STRONGER).sum())
    return {
        "what": "test",
        "scores": scores.name,
        "games_per_deal": scores.games,
        **test.to_dict(),
        "elo": elo,
        "tournaments": tournaments,
        "stronger": stronger / tournaments,
        "interval": rate_interval(stronger, tournaments),
        "undecided": float((verdict == UNDECIDED).mean()),
        "deals": float(deals.mean()),
        "deals_90": float(np.quantile(deals, 0.9)),
        "one_look_deals": one_look(test, scores),
        "one_look_stronger": stronger_at_one_look(test, truth, tournaments, rng),
        "cpu_seconds": round(time.process_time() - started, 2),
    }


def rate_interval(hits: int, trials: int) -> list[float]:
    """95 % interval of a rate."""
    return list(arena.mean_interval(np.repeat([1.0, 0.0], [hits, trials - hits])))


# ------------------------------------------------------------------------------------ intervals


Interval = Callable[[Floats], tuple[float, float]]


def wilson(values: Floats) -> tuple[float, float]:
    """The interval of a table: for a number of deals that was fixed beforehand."""
    return arena.mean_interval(values, np.arange(len(values)))


def widened(values: Floats) -> tuple[float, float]:
    """Wilson's interval, widened to hold at any time as `--until` widens those of ratings."""
    low, high = wilson(values)
    factor, mean = sequential.widening(len(values)), float(values.mean())
    return mean - factor * (mean - low), mean + factor * (high - mean)


def interval_row(scores: Scores, tournaments: int, seed: int) -> dict[str, Any]:
    """Simulate looking again and again, and stopping, where the agents are equal."""
    rng = np.random.default_rng(seed)
    truth = scores.tilted(0.0)
    width = WIDTHS[scores.name]
    mean = float(truth.shares @ truth.values)

    def by_betting(values: Floats) -> tuple[float, float]:
        return sequential.mean_interval_at_any_time(values, width)

    missed: dict[str, list[bool]] = {"wilson": [], "widened": [], "betting": []}
    stops: dict[str, list[tuple[int, bool]]] = {"wilson": [], "betting": []}
    schedule = arena.Until(rate=width)
    started = time.process_time()
    for _ in range(tournaments):
        values = truth.values[truth.draw(rng, MOST_DEALS)]
        for name, interval in (("wilson", wilson), ("widened", widened)):
            looks = (interval(values[:deals]) for deals in LOOKS)
            missed[name].append(any(not low <= mean <= high for low, high in looks))
        low, high = by_betting(values[: LOOKS[-1]])  # the last one has all before
        missed["betting"].append(not low <= mean <= high)
        for name, interval in (("wilson", wilson), ("betting", by_betting)):
            deals, low, high = 0, 0.0, 1.0
            while high - low >= width:
                deals = schedule.next_look(deals)
                low, high = interval(values[:deals])
            stops[name].append((deals, not low <= mean <= high))
    row: dict[str, Any] = {
        "what": "interval",
        "scores": scores.name,
        "tournaments": tournaments,
        "width": width,
        "looks": len(LOOKS),
    }
    for name, each in missed.items():
        row[f"{name}_ever"] = float(np.mean(each))
        row[f"{name}_ever_interval"] = rate_interval(sum(each), tournaments)
    for name, ends in stops.items():
        row[f"{name}_deals"] = float(np.mean([deals for deals, _ in ends]))
        row[f"{name}_stopped"] = float(np.mean([wrong for _, wrong in ends]))
    row["cpu_seconds"] = round(time.process_time() - started, 2)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tournaments", type=int, default=2000, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="default %(default)s")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    rows = []
    tests = [SequentialTest(0, 20), SequentialTest(0, 100)]
    for scores in distributions(options.seed):
        levels = dict(zip(scores.values.tolist(), scores.shares.round(4).tolist(), strict=True))
        print(f"{scores.name}: {levels}", flush=True)
        for test in tests:
            for elo in (test.elo0, (test.elo0 + test.elo1) / 2, test.elo1):
                rows.append(test_row(test, scores, elo, options.tournaments, options.seed))
                print(rows[-1], flush=True)
        rows.append(interval_row(scores, options.tournaments, options.seed))
        print(rows[-1], flush=True)
        for row in rows:
            row.setdefault("distribution", levels if row["scores"] == scores.name else None)
    if options.json:
        write_json(options.json, [{**row, "machine": line()} for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
