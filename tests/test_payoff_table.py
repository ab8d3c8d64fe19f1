"""Lotteries, alpha-rank and cycles of a table: OpenSpiel's figures, and what defines them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carolus_env.analysis.payoff_table import Cycle, alpha_rank, cycles, maximal_lottery

# Win rates of the row against the column.
CYCLE = [[0.5, 0.7, 0.4], [0.3, 0.5, 0.65], [0.6, 0.35, 0.5]]
LADDER = [
    [0.5, 0.55, 0.8, 0.9],
    [0.45, 0.5, 0.52, 0.7],
    [0.2, 0.48, 0.5, 0.6],
    [0.1, 0.3, 0.4, 0.5],
]
FIVE = [
    [0.5, 0.52, 0.47, 0.61, 0.9],
    [0.48, 0.5, 0.56, 0.58, 0.95],
    [0.53, 0.44, 0.5, 0.55, 0.8],
    [0.39, 0.42, 0.45, 0.5, 0.7],
    [0.1, 0.05, 0.2, 0.3, 0.5],
]
GENERAL = [[2, 0, 1.5], [3, 1, 0], [0, 2, 1.2]]  # sums differ

# By OpenSpiel 2.0.2: the programme of voting/maximal_lotteries.py,
# lp_solver.solve_zero_sum_matrix_game on the win rates less one half.
LOTTERIES = [
    (CYCLE, [0.333333, 0.222222, 0.444444]),
    (LADDER, [1, 0, 0, 0]),
    (FIVE, [0.545455, 0.272727, 0.181818, 0, 0]),
]

# By OpenSpiel 2.0.2: egt.alpharank.compute([table], m, alpha, use_local_selection_model=False).
ALPHA_RANKS = [
    (CYCLE, 50, 5, [0.4215695085, 0.2634195264, 0.3150109651]),
    (CYCLE, 50, 20, [0.3574183687, 0.3163211056, 0.3262605258]),
    (LADDER, 50, 5, [0.9999962802, 3.716985578e-06, 2.773958122e-09, 7.0445e-17]),
    (FIVE, 50, 5, [0.3334012464, 0.4871337063, 0.1794648947, 1.524845428e-07, 9.4e-17]),
    (FIVE, 50, 20, [0.3317087795, 0.4531937591, 0.2150974614, 0, 0]),
    (FIVE, 50, 100, [0.327786687, 0.359090278, 0.313123036, 0, 0]),
    (GENERAL, 50, 0.3, [0.2525778633, 0.2545212511, 0.4929008856]),
    (GENERAL, 10, 1.0, [0.2762533276, 0.2890444195, 0.4347022529]),
]


def table_of(draw: Any, agents: int, digits: int) -> Any:
    """Win rates with few digits, so that ties occur."""
    rates = np.full((agents, agents), 0.5)
    for i in range(agents):
        for j in range(i):
            rates[i, j] = draw(st.integers(0, 10**digits)) / 10**digits
            rates[j, i] = 1 - rates[i, j]
    return rates


@st.composite
def tables(draw: Any, digits: int = 3) -> Any:
    return table_of(draw, draw(st.integers(2, 6)), digits)


# ------------------------------------------------------------------------------------ lotteries


@pytest.mark.parametrize(("rates", "wanted"), LOTTERIES)
def test_lotteries_are_openspiels(rates: Any, wanted: list[float]) -> None:
    assert maximal_lottery(np.array(rates) - 0.5) == pytest.approx(wanted, abs=2e-6)


@settings(deadline=None, max_examples=60)
@given(tables(digits=1) | tables())
def test_no_agent_beats_a_lottery_and_the_order_of_agents_does_not_matter(rates: Any) -> None:
    margins = rates - 0.5
    weights = maximal_lottery(margins)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert (margins @ weights).max() < 1e-6
    order = np.arange(len(rates))[::-1]
    turned = maximal_lottery(margins[np.ix_(order, order)])
    assert turned == pytest.approx(weights[order], abs=1e-5)


def test_of_several_lotteries_the_evenest_is_taken() -> None:
    assert maximal_lottery(np.zeros((4, 4))) == pytest.approx([0.25] * 4)
    twins = [[0, 0, 0.2], [0, 0, 0.2], [-0.2, -0.2, 0]]
    assert maximal_lottery(twins) == pytest.approx([0.5, 0.5, 0])


def test_a_copy_of_an_agent_takes_no_weight_from_others() -> None:
    places = [0, 1, 2, 2]
    weights = maximal_lottery(np.array(CYCLE)[np.ix_(places, places)] - 0.5)
    alone = maximal_lottery(np.array(CYCLE) - 0.5)
    assert weights[:2] == pytest.approx(alone[:2], abs=1e-6)
    assert weights[2] == pytest.approx(weights[3], abs=1e-6)


@pytest.mark.parametrize(
    ("margins", "said"),
    [
        ([[0, 1]], "margins must be a square table, got shape \\(1, 2\\)"),
        ([[0, 0.2], [0.2, 0]], "must have opposite signs, got 0.2 and 0.2 for agents 0 and 1"),
        ([[0, np.nan], [0, 0]], "margins must be finite, got nan for agents 0 and 1"),
    ],
)
def test_impossible_margins_are_refused(margins: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        maximal_lottery(margins)


# ------------------------------------------------------------------------------------ alpha-rank


@pytest.mark.parametrize(("payoffs", "population", "alpha", "wanted"), ALPHA_RANKS)
def test_alpha_ranks_are_openspiels(
    payoffs: Any, population: int, alpha: float, wanted: list[float]
) -> None:
    found = alpha_rank(np.array(payoffs)[..., None], alpha=alpha, population=population)
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-14)


def test_with_three_seats_a_mean_over_opponents_has_the_rank_of_two_seats() -> None:
    """OpenSpiel's figures again, since the mean payoff in a population is the same."""
    two = np.array(GENERAL)
    own = two.diagonal()[:, None]
    three = np.stack([two, (own + two) / 2], axis=-1)
    found = alpha_rank(three, alpha=0.3)
    assert found == pytest.approx(ALPHA_RANKS[6][3], abs=1e-9)


def test_with_three_seats_groups_are_drawn_from_the_population() -> None:
    """Two agents, counted by hand: all groups of three members of a population of four."""
    payoffs = np.array([[[0.3, 0], [0.9, 0.1]], [[0.7, 0.2], [0.5, 0]]])
    alpha, m = 2.0, 4

    def fitness(kind: int, many: int) -> float:
        others = [kind] * (many - 1) + [1 - kind] * (m - many)
        groups = [(a, b) for a in range(3) for b in range(3) if a != b]
        won = []
        for a, b in groups:
            same = 1 + (others[a] == kind) + (others[b] == kind)
            won.append(payoffs[kind, kind, 0] if same == 3 else payoffs[kind, 1 - kind, same - 1])
        return float(np.mean(won))

    def takes_over(kind: int) -> float:
        ahead = [fitness(kind, p) - fitness(1 - kind, m - p) for p in range(1, m)]
        return float(1 / (1 + np.exp(-alpha * np.cumsum(ahead)).sum()))

    first, second = takes_over(0), takes_over(1)
    found = alpha_rank(payoffs, alpha=alpha, population=m)
    assert found == pytest.approx([first / (first + second), second / (first + second)])


def test_selection_of_any_strength_has_a_rank() -> None:
    """Logarithms of chances far below the smallest number."""
    found = alpha_rank(np.array(LADDER)[..., None], alpha=1e6)
    assert found.tolist() == [1, 0, 0, 0]
    assert alpha_rank(np.array(LADDER)[..., None], alpha=0) == pytest.approx([0.25] * 4)
    many = np.stack([np.array(CYCLE), np.array(CYCLE).T])[..., None]
    assert alpha_rank(many) == pytest.approx(np.stack([alpha_rank(each) for each in many]))


@pytest.mark.parametrize(
    ("payoffs", "how", "said"),
    [
        (CYCLE, {}, "payoffs must have shape"),
        (np.full((2, 2, 1), np.nan), {}, "every agent must have met every other"),
        (np.ones((2, 2, 1)), {"alpha": -1}, "alpha must be 0 or more, got -1"),
        (np.ones((2, 2, 2)), {"population": 2}, "population must be at least 3, got 2"),
    ],
)
def test_impossible_payoffs_are_refused(payoffs: Any, how: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        alpha_rank(payoffs, **how)


# ------------------------------------------------------------------------------------ cycles


def test_a_cycle_is_named_once_from_its_first_agent() -> None:
    rates = np.array(CYCLE)
    assert cycles(rates > 0.5, rates) == [Cycle((0, 1, 2), (0.7, 0.65, 0.6))]
    beats = rates > 0.5
    beats[2, 0] = False  # not significant
    assert cycles(beats, rates) == []


def test_cycles_are_ordered_by_their_weakest_link() -> None:
    rates = np.array(FIVE)
    found = cycles(rates > 0.5, rates)
    assert [cycle.agents for cycle in found] == [(0, 1, 2)]
    assert min(found[0].rates) == 0.52
    strong = [
        [0.5, 0.9, 0.1, 0.4],
        [0.1, 0.5, 0.9, 0.8],
        [0.9, 0.1, 0.5, 0.3],
        [0.6, 0.2, 0.7, 0.5],
    ]
    assert [cycle.agents for cycle in cycles(np.array(strong) > 0.5, strong)] == [
        (0, 1, 2),
        (0, 1, 3),
    ]
    assert len(cycles(np.array(strong) > 0.5, strong, most=1)) == 1


def test_a_cycle_of_four_is_named_where_there_is_none_of_three() -> None:
    beats = np.zeros((5, 5), bool)
    for i, j in pairwise([0, 2, 1, 3, 0]):
        beats[i, j] = True
    beats[0, 4] = True
    assert [cycle.agents for cycle in cycles(beats, np.where(beats, 0.6, 0.5))] == [(0, 2, 1, 3)]


def test_two_agents_cannot_beat_each_other() -> None:
    with pytest.raises(ValueError, match="agents 0 and 1 cannot beat each other"):
        cycles([[False, True], [True, False]], np.full((2, 2), 0.6))
    with pytest.raises(ValueError, match="square tables"):
        cycles([[False]], np.ones((2, 2)))
