"""The rulebook, statement by statement: its figures, its examples, and a test for each rule.

How positions are set up, and what of them is invented: tests/positions.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from positions import (
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    NOBODY,
    PINK,
    RED,
    WHITE,
    YELLOW,
    emperor_stops_at,
    figure_5,
    figure_6,
    known,
    legal,
    new_game,
    paladins,
    payoffs,
    play,
    position,
    region,
    roll,
    set_up,
)

from carolus_env import engine
from carolus_env.engine.rules import (
    CROWN,
    Rules,
    court_action,
    crown_action,
    disc_action,
    move_action,
    region_action,
)
from carolus_env.records.position import from_dict

# ------------------------------------------------------------------------------------ preparation


@pytest.mark.parametrize(
    ("players", "reserve", "dice", "castles"), [(2, 7, 3, 10), (3, 9, 4, 8), (4, 7, 3, 10)]
)
def test_sizes_are_those_of_the_table(players, reserve, dice, castles):
    rules = Rules(players=players)
    assert (rules.reserve, rules.dice, rules.castles_to_win) == (reserve, dice, castles)
    game = new_game(players=players)
    assert game["dice_due"] == [reserve]
    for _ in range(players):
        roll(game, *(clan % 5 for clan in range(reserve)))
    state = known(game)
    assert [sum(own) for own in state["reserves"]] == [reserve] * players
    play(game, *(disc_action(number + 1) for number in range(players)))
    assert known(game)["placements_left"] == dice
    play(game, *(court_action(clan) for clan in range(dice)))
    play(game, move_action(1))
    assert known(game)["phase"] == "roll" and known(game)["dice_due"] == dice


def test_one_paladin_lies_on_each_territory_three_of_each_clan():
    for seed in range(20):
        state = known(engine.new_games(Rules(), 1, seed=seed, roll=False))
        assert [one["territories"] for one in state["regions"]] == [[t] for t in range(15)]
        assert np.sum([one["paladins"] for one in state["regions"]], axis=0).tolist() == [3] * 5
        assert {sum(one["paladins"]) for one in state["regions"]} == {1}
        assert state["supply"] == [37] * 5


def test_the_paladins_are_laid_out_at_random():
    games = engine.new_games(Rules(), 3000, seed=0, roll=False)
    red = games["region_paladins"][:, RED, :15].sum(axis=0, dtype=int)
    assert abs(red - 600).max() < 5 * (3000 * 0.2 * 0.8) ** 0.5


def test_the_emperor_starts_on_territory_0():
    assert known(new_game())["regions"][0]["territories"] == [0]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_first_player_is_drawn_by_lot(players):
    first = engine.new_games(Rules(players=players), 3000, seed=0)["order"][:, 0]
    expected = 3000 / players
    assert abs(np.bincount(first) - expected).max() < 5 * expected**0.5


def test_opening_order_of_round_one_goes_clockwise_from_the_first_player():
    assert known(new_game(2, players=4))["order"] == [2, 3, 0, 1]


def test_a_player_decides_all_crowns_of_the_set_up_before_the_next_rolls():
    game = set_up([CROWN, RED, CROWN, RED, RED, RED, RED], first_player=1)
    assert (known(game)["phase"], known(game)["player"]) == ("crown", 1)
    assert legal(game) == [5, 6, 7, 8, 9]
    play(game, crown_action(GREEN))
    assert (known(game)["phase"], known(game)["player"]) == ("crown", 1)
    play(game, crown_action(BLUE))
    assert (known(game)["phase"], known(game)["player"]) == ("roll", 0)
    assert known(game)["reserves"][1] == paladins(red=5, green=1, blue=1)
    assert known(game)["supply"] == [32, 37, 36, 37, 36]


# ------------------------------------------------------------------------------------ opening phase


def two_opening(first_player=0):
    """Two players without crowns at their first disc."""
    return set_up([0, 0, 1, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4, 4], first_player=first_player)


def test_albert_plays_3_and_bob_2():
    """The rulebook's example: Bob is first and moves 1 or 2 steps, Albert 1, 2 or 3."""
    albert, bob = 0, 1
    game = two_opening(first_player=albert)
    assert known(game)["player"] == albert
    play(game, disc_action(3), disc_action(2))
    assert (known(game)["phase"], known(game)["player"]) == ("place", bob)
    play(game, court_action(GREEN), court_action(GREEN), court_action(BLUE))
    assert legal(game) == [move_action(1), move_action(2)]
    play(game, move_action(2))
    roll(game, RED, RED, RED)
    assert (known(game)["phase"], known(game)["player"]) == ("place", albert)
    play(game, court_action(RED), court_action(RED), court_action(PINK))
    assert legal(game) == [move_action(1), move_action(2), move_action(3)]
    play(game, move_action(3))
    roll(game, RED, RED, RED)
    # "a starting player is the player who had placed the lower number in the previous round"
    assert (known(game)["phase"], known(game)["player"]) == ("disc", bob)
    assert known(game)["order"] == [bob, albert] and known(game)["round"] == 2
    assert known(game)["discs_in_hand"] == [[1, 2, 4, 5], [1, 3, 4, 5]]


def test_a_number_played_this_round_is_not_allowed():
    game = two_opening()
    play(game, disc_action(3))
    assert legal(game) == [disc_action(number) for number in (1, 2, 4, 5)]


def test_the_last_disc_may_equal_the_others_and_the_one_played_earlier_is_lower():
    game = position(
        phase="disc",
        player=1,
        order=[1, 0],
        discs=[0, 0],
        spent=[1, 2, 3, 5],
        round=5,
        reserves=[paladins(red=7), paladins(blue=7)],
    )
    assert legal(game) == [disc_action(4)]
    play(game, disc_action(4))
    assert legal(game) == [disc_action(4)]
    play(game, disc_action(4))
    assert known(game)["order"] == [1, 0]
    assert (known(game)["phase"], known(game)["player"]) == ("place", 1)


def test_with_every_number_taken_each_disc_in_hand_is_allowed():
    """Not only the last disc can be forced: 1 and 2 are played, and the third has no others."""
    game = position(
        players=3,
        phase="disc",
        player=2,
        discs=[1, 2, 0],
        order=[0, 1, 2],
        spent=[3, 4, 5],
        round=4,
        reserves=[paladins(red=9), paladins(blue=9), paladins(green=9)],
    )
    assert legal(game) == [disc_action(1), disc_action(2)]
    play(game, disc_action(1))
    assert known(game)["order"] == [0, 2, 1]  # 1, 1 and 2: the earlier 1 first


def test_discs_decide_the_order_of_four_players():
    game = position(
        players=4,
        phase="disc",
        player=3,
        discs=[2, 5, 4, 0],
        order=[1, 0, 2, 3],
        round=1,
    )
    assert legal(game) == [disc_action(1), disc_action(3)]
    play(game, disc_action(3))
    assert known(game)["order"] == [0, 3, 2, 1]
    assert known(game)["player"] == 0


def end_of_round(number, **rules):
    """The last player of a round is to roll."""
    return position(
        phase="roll",
        player=1,
        round=number,
        discs=[1, 2] if number % 5 else [1, 1],
        order=[0, 1],
        reserves=[paladins(red=7), paladins(blue=4)],
        **rules,
    )


def test_after_the_fifth_round_every_player_takes_five_discs_back():
    for number in (4, 5, 6, 10):
        game = end_of_round(number)
        assert [len(hand) for hand in known(game)["discs_in_hand"]] == [4 - (number - 1) % 5] * 2
        roll(game, PINK, PINK, PINK)
        state = known(game)
        assert state["round"] == number + 1 and state["phase"] == "disc"
        assert [len(hand) for hand in state["discs_in_hand"]] == [5 - number % 5] * 2
        assert state["discs_played"] == [0, 0]


def test_the_fifth_rounds_discs_are_taken_back_after_its_last_crown():
    game = end_of_round(5)
    roll(game, PINK, PINK, CROWN)
    assert known(game)["discs_in_hand"] == [[], []]
    play(game, crown_action(RED))
    assert known(game)["discs_in_hand"] == [[1, 2, 3, 4, 5]] * 2


# ------------------------------------------------------------------------------------ playing


def test_paladins_go_to_the_own_court_or_to_any_region():
    game = position(
        region(),
        region(WHITE, 3, red=3),
        phase="place",
        placements_left=3,
        reserves=[paladins(red=1, yellow=6)],
    )
    before = [one["paladins"] for one in known(game)["regions"]]
    assert len(before) == 13
    of_red = [court_action(RED), *(region_action(RED, number) for number in range(13))]
    of_yellow = [court_action(YELLOW), *(region_action(YELLOW, number) for number in range(13))]
    assert legal(game) == of_red + of_yellow
    play(game, region_action(YELLOW, 1), region_action(YELLOW, 1), court_action(RED))
    state = known(game)
    before[1][YELLOW] += 2
    assert [one["paladins"] for one in state["regions"]] == before
    assert state["courts"] == [paladins(red=1), paladins()]
    assert state["reserves"][0] == paladins(yellow=4)
    assert state["phase"] == "move"


def test_regions_are_counted_clockwise_from_the_emperor():
    game = position(phase="move", discs=[4, 5], reserves=[paladins(red=4), paladins(red=7)])
    play(game, move_action(4))
    roll(game, RED, RED, RED)
    play(game, region_action(RED, 0), region_action(RED, 3), region_action(RED, 14))
    start = {one["territories"][0]: one["paladins"] for one in known(position())["regions"]}
    now = {one["territories"][0]: one["paladins"] for one in known(game)["regions"]}
    assert sorted(number for number in now if now[number] != start[number]) == [3, 4, 7]


@pytest.mark.parametrize("held", [0, 1, 2, 3, 4])
def test_fewer_paladins_are_played_only_if_the_reserve_holds_fewer(held):
    """And the full number of dice is rolled all the same."""
    game = position(
        phase="roll", player=0, reserves=[paladins(red=4), paladins(blue=held)], discs=[1, 2]
    )
    roll(game, GREEN, GREEN, GREEN)
    state = known(game)
    assert state["player"] == 1
    assert state["placements_left"] == min(held, 3)
    assert state["phase"] == ("place" if held else "move")
    play(game, *[court_action(BLUE)] * min(held, 3), move_action(1))
    assert known(game)["dice_due"] == 3


# ------------------------------------------------------------------------------------ control


def at_court(*courts, reserve, control=None, players=2):
    """Player 0 is to play the reserve."""
    return position(
        phase="place",
        placements_left=min(sum(reserve), Rules(players=players).dice),
        courts=courts,
        reserves=[reserve],
        control=control,
        players=players,
    )


def test_the_first_paladin_at_court_brings_control():
    game = at_court(reserve=paladins(red=3))
    assert known(game)["control"] == [NOBODY] * 5
    play(game, court_action(RED))
    assert known(game)["control"] == [0, NOBODY, NOBODY, NOBODY, NOBODY]


def test_tied_court_keeps_control():
    blacks = [BLACK] + [NOBODY] * 4
    game = at_court(paladins(red=1), paladins(red=2), reserve=paladins(red=2), control=blacks)
    play(game, court_action(RED))
    assert known(game)["control"][RED] == BLACK  # 2 to 2
    play(game, court_action(RED))
    assert known(game)["control"][RED] == WHITE  # 3 to 2


def test_control_stays_with_the_holder_while_nobody_is_ahead():
    """A tie says nothing about who holds the clan: that is history."""
    for holder in (0, 1):
        game = position(
            courts=[paladins(red=2), paladins(red=2)],
            control=[holder] + [NOBODY] * 4,
            reserves=[paladins(blue=4)],
        )
        play(game, move_action(1))
        roll(game, BLUE, BLUE, BLUE)
        assert known(game)["control"][RED] == holder


def test_the_lead_must_be_over_all_other_courts():
    game = at_court(
        paladins(red=2), paladins(red=1), paladins(red=3), reserve=paladins(red=4), players=3
    )
    assert known(game)["control"][RED] == 2
    play(game, court_action(RED))
    assert known(game)["control"][RED] == 2
    play(game, court_action(RED))
    assert known(game)["control"][RED] == 0


def four_at_court(partners, mine, partner, opponent):
    """Player 0 has 3 red paladins to play; one opponent holds none of them."""
    seats = {"opposite": (2, 1), "adjacent": (1, 2)}[partners]
    courts = [paladins(red=mine), paladins(), paladins(), paladins()]
    courts[seats[0]], courts[seats[1]] = paladins(red=partner), paladins(red=opponent)
    reserve = [paladins(red=7)]
    game = position(
        players=4,
        partners=partners,
        phase="place",
        placements_left=3,
        courts=courts,
        reserves=reserve,
    )
    return game, *seats


@pytest.mark.parametrize("partners", ["opposite", "adjacent"])
def test_partners_courts_are_not_added_together(partners):
    game, _, opponent = four_at_court(partners, mine=2, partner=3, opponent=4)
    play(game, court_action(RED), court_action(RED))
    assert known(game)["control"][RED] == opponent  # 4 and 3 against 4
    play(game, court_action(RED))
    assert known(game)["control"][RED] == 0


@pytest.mark.parametrize("partners", ["opposite", "adjacent"])
def test_the_partners_court_must_be_surpassed_too(partners):
    game, partner, _ = four_at_court(partners, mine=2, partner=4, opponent=1)
    play(game, court_action(RED), court_action(RED))
    assert known(game)["control"][RED] == partner  # 4 to 4
    play(game, court_action(RED))
    assert known(game)["control"][RED] == 0


def test_control_may_pass_between_partners():
    game = position(
        players=4,
        phase="place",
        placements_left=1,
        reserves=[paladins(red=1)],
        courts=[paladins(red=1), paladins(), paladins(red=1), paladins()],
        control=[2] + [NOBODY] * 4,
    )
    play(game, court_action(RED))
    assert known(game)["control"][RED] == 0


# ------------------------------------------------------------------------------------ figure 5


def blacks_turn_follows(game):
    play(game, move_action(1))
    roll(game, GREEN, GREEN, GREEN)
    assert (known(game)["phase"], known(game)["player"]) == ("place", BLACK)


def test_figure_5_control():
    assert known(figure_5())["control"] == [WHITE, WHITE, BLACK, BLACK, BLACK]


def test_figure_5_undefended_red_is_lost():
    game = figure_5()
    play(game, court_action(PINK), court_action(PINK), court_action(YELLOW))
    blacks_turn_follows(game)
    play(game, court_action(RED))
    assert known(game)["control"][RED] == WHITE  # 7 to 7
    play(game, court_action(RED))
    assert known(game)["control"][RED] == BLACK


def test_figure_5_two_red_paladins_defend_red():
    game = figure_5()
    play(game, court_action(RED), court_action(RED), court_action(PINK))
    assert [court[RED] for court in known(game)["courts"]] == [9, 6]
    blacks_turn_follows(game)
    play(game, *[court_action(RED)] * 3)
    assert known(game)["control"][RED] == WHITE  # 9 to 9


def test_figure_5_two_yellow_paladins_take_yellow():
    game = figure_5()
    play(game, court_action(YELLOW))
    assert known(game)["control"][YELLOW] == BLACK  # 6 to 6
    play(game, court_action(YELLOW))
    assert known(game)["control"][YELLOW] == WHITE


# ------------------------------------------------------------------------------------ the Emperor


def test_the_emperor_moves_one_step_to_as_many_as_the_disc_says():
    for disc in range(1, 6):
        game = position(discs=[disc, 1 if disc > 1 else 2], player=0)
        assert legal(game) == [move_action(steps) for steps in range(1, disc + 1)]
        play(game, move_action(disc))
        assert known(game)["regions"][0]["territories"] == [disc]


def test_a_merged_region_is_one_step():
    game = position(region(), region(WHITE, 4, red=4), discs=[2, 3])
    play(game, move_action(2))
    assert known(game)["regions"][0]["territories"] == [5]


FOUR_REGIONS = (
    region(WHITE, 4, red=4),
    region(BLACK, 4, blue=4),
    region(WHITE, 4, red=4),
    region(BLACK, 3, blue=1, pink=3, yellow=3, green=3),
)
WHITE_RED_BLACK_BLUE = [WHITE, NOBODY, BLACK, NOBODY, NOBODY]


def test_the_emperor_may_come_round_to_where_he_started():
    game = position(
        *FOUR_REGIONS,
        discs=[4, 5],
        courts=[paladins(red=1), paladins(blue=1)],
        round=4,
        spent=[1, 2, 3],
    )
    start = known(game)["regions"]
    play(game, move_action(4))
    assert known(game)["regions"] == start


def test_two_step_numbers_that_lead_to_one_region_are_both_legal():
    ends = []
    for steps in (1, 5):
        game = position(
            *FOUR_REGIONS,
            discs=[5, 4],
            player=0,
            round=4,
            spent=[1, 2, 3],
            courts=[paladins(red=1), paladins(blue=1)],
        )
        assert legal(game) == [move_action(n) for n in (1, 2, 3, 4, 5)]
        play(game, move_action(steps))
        ends.append(known(game))
    assert ends[0] == ends[1]


# ------------------------------------------------------------------------------------ castles


def test_anna_gains_red_and_places_a_castle():
    """The rulebook's example of a first turn."""
    anna = 0
    game = set_up([RED, PINK, BLUE, BLUE, BLUE, YELLOW, GREEN], [GREEN] * 7)
    play(game, disc_action(2), disc_action(3))
    play(game, court_action(RED))
    assert known(game)["control"][RED] == anna
    play(game, region_action(PINK, 5), region_action(YELLOW, 6))
    here, castles = emperor_stops_at(game, 2)
    assert here == {"territories": [2], "paladins": paladins(red=1), "owner": anna, "castles": 1}
    assert castles == [1, 0]


def stops(*special, courts, control=None, **options):
    """What is where the Emperor stops, one step on, and the castles of the teams."""
    return emperor_stops_at(position(region(), *special, courts=courts, control=control, **options))


def test_a_majority_builds_one_castle():
    """However many paladins make it."""
    courts = [paladins(red=1), paladins(blue=1)]
    here, castles = stops(region(red=5, blue=4), courts=courts)
    assert (here["owner"], here["castles"], castles) == (WHITE, 1, [1, 0])
    here, castles = stops(region(red=1, blue=4), courts=courts)
    assert (here["owner"], here["castles"], castles) == (BLACK, 1, [0, 1])


def test_a_tie_builds_no_castle():
    here, castles = stops(region(red=2, blue=2), courts=[paladins(red=1), paladins(blue=1)])
    assert (here["owner"], castles) == (NOBODY, [0, 0])


def test_paladins_that_nobody_controls_count_for_nobody():
    courts = [paladins(red=1), paladins()]
    here, castles = stops(region(blue=3), courts=courts)
    assert (here["owner"], castles) == (NOBODY, [0, 0])
    here, castles = stops(region(blue=3, red=1), courts=courts)
    assert (here["owner"], castles) == (WHITE, [1, 0])


def test_all_clans_of_a_player_count_together():
    courts = [paladins(red=1, pink=1), paladins(blue=1)]
    here, _ = stops(region(red=2, pink=2, blue=3), courts=courts)
    assert here["owner"] == WHITE


def test_no_castle_is_added_to_the_own_region():
    here, castles = stops(region(WHITE, red=3), courts=[paladins(red=1)])
    assert (here["castles"], castles) == (1, [1, 0])


def test_castles_count_as_paladins_of_their_owner():
    """2 paladins and 1 castle hold against 3 paladins: a tie changes nothing."""
    courts = [paladins(red=1), paladins(blue=1)]
    here, _ = stops(region(BLACK, red=3, blue=2), courts=courts)
    assert here["owner"] == BLACK
    here, _ = stops(region(BLACK, red=4, blue=2), courts=courts)
    assert here["owner"] == WHITE


def test_castles_alone_hold_a_region():
    here, _ = stops(region(BLACK, 3, red=3), courts=[paladins(red=1)])
    assert here["owner"] == BLACK
    here, castles = stops(region(BLACK, 3, red=4), courts=[paladins(red=1)])
    assert (here["owner"], castles) == (WHITE, [3, 0])


def test_a_take_over_replaces_every_castle():
    here, castles = stops(
        region(BLACK, 4, red=5),
        region(),
        region(BLACK, blue=1),
        courts=[paladins(red=1), paladins(blue=1)],
    )
    assert (here["owner"], here["castles"], castles) == (WHITE, 4, [4, 1])


def test_the_other_player_may_gain_from_a_move():
    """Who moves does not matter, only who is stronger."""
    here, castles = stops(region(WHITE, 2, blue=3), courts=[paladins(), paladins(blue=1)])
    assert (here["owner"], castles) == (BLACK, [0, 2])


def test_only_the_region_where_the_emperor_stops_is_settled():
    game = position(
        region(red=1),
        region(red=1),
        region(red=1),
        region(red=1),
        discs=[2, 3],
        courts=[paladins(red=1)],
    )
    here, castles = emperor_stops_at(game, 2)
    assert (here["territories"], castles) == ([2], [1, 0])


# ------------------------------------------------------------------------------------ figure 2


def figure_2(placed):
    """White moves the Emperor to black's territory of figure 2; the courts are invented."""
    game = position(
        region(),
        region(BLACK, green=2, red=1),
        courts=[paladins(red=1, green=1), paladins(green=1)],
        control=[WHITE, NOBODY, NOBODY, NOBODY, BLACK],
        phase="place",
        placements_left=1,
        reserves=[paladins(green=1)],
    )
    play(game, placed)
    return emperor_stops_at(game)


def test_figure_2_black_keeps_the_territory_while_green_is_black():
    here, castles = figure_2(region_action(GREEN, 5))
    assert (here["owner"], castles) == (BLACK, [0, 1])


def test_figure_2_white_takes_it_over_3_to_1_with_green():
    here, castles = figure_2(court_action(GREEN))
    assert (here["owner"], here["castles"], castles) == (WHITE, 1, [1, 0])


# ------------------------------------------------------------------------------------ merging


def test_figures_3_and_4_three_territories_merge():
    """A, B (of figure 2) and C: 6 paladins and 3 castles. The paladins on A and C are invented."""
    game = position(
        region(WHITE, pink=1),
        region(BLACK, green=2, red=1),
        region(WHITE, blue=1, yellow=1),
        courts=[paladins(red=1, green=1)],
    )
    here, castles = emperor_stops_at(game)
    assert here == {
        "territories": [0, 1, 2],
        "paladins": paladins(red=1, pink=1, blue=1, yellow=1, green=2),
        "owner": WHITE,
        "castles": 3,
    }
    assert castles == [3, 0] and len(known(game)["regions"]) == 13


@pytest.mark.parametrize(
    ("before", "after", "territories"),
    [
        (WHITE, NOBODY, [0, 1]),
        (NOBODY, WHITE, [1, 2]),
        (WHITE, BLACK, [0, 1]),
        (BLACK, WHITE, [1, 2]),
        (BLACK, NOBODY, [1]),
        (BLACK, BLACK, [1]),
    ],
)
def test_neighbours_of_the_same_team_merge_and_no_others(before, after, territories):
    game = position(
        region(before, pink=1), region(red=1), region(after, pink=1), courts=[paladins(red=1)]
    )
    here, castles = emperor_stops_at(game)
    assert (here["territories"], here["castles"]) == (territories, len(territories))
    assert castles[WHITE] == len(territories)


def test_merged_regions_merge_again():
    game = position(
        region(WHITE, 3, pink=3),
        region(BLACK, 2, red=3),
        region(WHITE, 2, blue=2),
        courts=[paladins(red=1)],
    )
    here, castles = emperor_stops_at(game)
    assert here["territories"] == [0, 1, 2, 3, 4, 5, 6]
    assert (here["castles"], castles) == (7, [7, 0])
    assert here["paladins"] == paladins(pink=3, red=3, blue=2)


@pytest.mark.parametrize("start", range(15))
def test_merging_is_the_same_all_round_the_circle(start):
    """Where territory 0 lies, amid the merged ones or not, does not matter."""
    data = known(
        position(
            region(WHITE, 2, pink=2),
            region(BLACK, 2, red=3),
            region(WHITE, 3, blue=3),
            courts=[paladins(red=1)],
        )
    )
    for one in data["regions"]:
        one["territories"] = [(number + start) % 15 for number in one["territories"]]
    game = from_dict(data)
    here, castles = emperor_stops_at(game)
    assert here["territories"] == [(start + k) % 15 for k in range(7)]
    assert (here["castles"], castles) == (7, [7, 0])
    assert [one["territories"][0] for one in known(game)["regions"][1:]] == [
        (start + 7 + k) % 15 for k in range(8)
    ]


def test_a_merged_region_is_not_settled_again():
    """Black is stronger on the merged one, but only a later stop of the Emperor will tell."""
    game = position(
        region(WHITE, blue=6),
        region(red=1),
        courts=[paladins(red=1), paladins(blue=1)],
    )
    here, _ = emperor_stops_at(game)
    assert (here["territories"], here["owner"]) == ([0, 1], WHITE)
    assert here["paladins"] == paladins(red=1, blue=6)


# ------------------------------------------------------------------------------------ figure 6


def test_figure_6_black_would_unite_a_b_and_c():
    game = figure_6(BLACK)
    play(game, *[court_action(BLUE)] * 2, court_action(GREEN))
    here, castles = emperor_stops_at(game)
    assert (here["owner"], here["castles"]) == (BLACK, 6)
    assert here["territories"] == [0, 1, 2, 3, 4, 5]
    assert castles == [1, 6]


def test_figure_6_one_step_would_be_suicide():
    game = figure_6()
    play(game, *[court_action(YELLOW)] * 3)
    here, castles = emperor_stops_at(game, 1)
    assert (here["owner"], here["castles"], castles) == (BLACK, 6, [1, 6])


def test_figure_6_three_steps_would_be_safe_for_now():
    game = figure_6()
    play(game, court_action(RED), court_action(RED), court_action(PINK))
    here, castles = emperor_stops_at(game, 3)
    assert (here["owner"], here["castles"], castles) == (WHITE, 1, [2, 5])


def test_figure_6_counterattack_wins_a_territory_of_five_castles():
    game = figure_6()
    play(game, court_action(YELLOW), court_action(YELLOW), region_action(YELLOW, 2))
    here, castles = emperor_stops_at(game, 2)
    assert (here["owner"], here["castles"]) == (WHITE, 5)
    assert here["territories"] == [2, 3, 4, 5, 6]
    assert castles == [5, 2]


def test_figure_6_without_the_third_yellow_it_would_be_a_tie():
    game = figure_6()
    play(game, *[court_action(YELLOW)] * 3)
    here, castles = emperor_stops_at(game, 2)  # 3 + 2 + 1 against 2 + 1 + 3
    assert (here["owner"], castles) == (BLACK, [2, 5])


# ------------------------------------------------------------------------------------ three players

RED_BLUE_GREEN = [paladins(red=1), paladins(blue=1), paladins(green=1)]


def test_three_players_need_a_relative_majority_only():
    here, castles = stops(region(red=3, blue=2, green=2), courts=RED_BLUE_GREEN, players=3)
    assert (here["owner"], castles) == (WHITE, [1, 0, 0])


@pytest.mark.parametrize("owner", [NOBODY, WHITE, BLACK, GRAY])
def test_a_tie_for_the_highest_strength_changes_nothing_among_three(owner):
    """White and black are level, castles counted, and gray is behind: even if gray is the owner."""
    strength = {WHITE: 3, BLACK: 3, GRAY: 2}
    if owner in strength:
        strength[owner] -= 1  # and the castle
    here, _ = stops(
        region(owner, red=strength[WHITE], blue=strength[BLACK], green=strength[GRAY]),
        courts=RED_BLUE_GREEN,
        players=3,
    )
    assert here["owner"] == owner


def test_the_strongest_of_three_takes_over_from_the_weakest():
    here, castles = stops(region(GRAY, 2, red=2, blue=3, green=0), courts=RED_BLUE_GREEN, players=3)
    assert (here["owner"], castles) == (BLACK, [0, 2, 0])


def test_three_discs_decide_the_order_of_play_and_of_the_next_opening():
    game = set_up([0] * 4 + [1] * 5, [2] * 9, [3] * 5 + [4] * 4, players=3, first_player=1)
    play(game, disc_action(3), disc_action(2), disc_action(4))
    assert known(game)["order"] == [2, 1, 0]
    for _ in range(3):
        play(game, *[legal(game)[0]] * 3)
        play(game, legal(game)[0], move_action(1))
        roll(game, 0, 1, 2, 3)
    assert (known(game)["round"], known(game)["order"]) == (2, [2, 1, 0])
    assert (known(game)["phase"], known(game)["player"]) == ("disc", 2)


# ------------------------------------------------------------------------------------ four players


@pytest.mark.parametrize(("partners", "partner"), [("opposite", 2), ("adjacent", 1)])
def test_partners_are_jointly_strong(partners, partner):
    """2 of one partner's clan and 2 of the other's beat 3 of an opponent's."""
    courts = [paladins(red=1), paladins(), paladins(), paladins(blue=1)]
    courts[partner] = paladins(pink=1)
    here, castles = stops(
        region(red=2, pink=2, blue=3), courts=courts, players=4, partners=partners
    )
    assert (here["owner"], castles) == (0, [1, 0])


def test_opponents_clans_count_together_too():
    here, _ = stops(
        region(red=3, blue=2, green=2),
        players=4,
        courts=[paladins(red=1), paladins(blue=1), paladins(), paladins(green=1)],
    )
    assert here["owner"] == 1


def test_partners_share_castles():
    """The region of one merges with the partner's."""
    game = position(
        region(0, pink=1),
        region(red=1),
        players=4,
        courts=[paladins(pink=1), paladins(), paladins(red=1), paladins()],
    )
    here, castles = emperor_stops_at(game)
    assert (here["castles"], castles) == (2, [2, 0])


def test_a_player_may_play_last_in_one_round_and_first_in_the_next():
    """As the strategic hints have it."""
    game = position(
        players=4,
        phase="roll",
        player=3,
        discs=[1, 2, 3, 4],
        reserves=[paladins(red=7), paladins(pink=7), paladins(blue=7), paladins(green=4)],
    )
    roll(game, GREEN, GREEN, GREEN)
    play(game, disc_action(5), disc_action(4), disc_action(2), disc_action(1))
    assert known(game)["order"] == [3, 2, 1, 0]
    assert known(game)["player"] == 3


# ------------------------------------------------------------------------------------ the end


def test_ten_castles_win_at_once():
    game = position(
        region(WHITE, 9, pink=9),
        region(red=1),
        courts=[paladins(red=1)],
        reserves=[paladins(red=4)],
    )
    play(game, move_action(1))
    state = known(game)
    assert state["phase"] == "over" and state["result"] == {"reason": "castles", "winners": [WHITE]}
    assert state["castles"] == [10, 0] and legal(game) == []
    assert payoffs(game) == [1, -1]


def test_nine_castles_do_not_win():
    game = position(region(WHITE, 8, pink=8), region(red=1), courts=[paladins(red=1)])
    play(game, move_action(1))
    assert known(game)["phase"] == "roll" and known(game)["castles"] == [9, 0]
    assert payoffs(game) == [0, 0]


def test_eight_castles_win_among_three():
    game = position(region(GRAY, 7, pink=7), region(green=1), courts=RED_BLUE_GREEN, players=3)
    play(game, move_action(1))
    assert known(game)["result"] == {"reason": "castles", "winners": [GRAY]}
    assert payoffs(game) == [-0.5, -0.5, 1]


@pytest.mark.parametrize(
    ("partners", "expected"), [("opposite", [-1, 1, -1, 1]), ("adjacent", [-1, -1, 1, 1])]
)
def test_both_partners_win(partners, expected):
    game = position(
        region(1, 9, pink=9),
        region(red=1),
        players=4,
        partners=partners,
        courts=[paladins(), paladins(), paladins(), paladins(red=1)],
    )
    play(game, move_action(1))
    assert known(game)["result"]["winners"] == [1]
    assert payoffs(game) == expected


def test_a_take_over_beyond_the_own_supply_wins_at_once():
    """8 castles stand, 2 are left, and 4 are to be replaced: 12 are in play."""
    game = position(
        region(),
        region(BLACK, 4, red=5),
        region(),
        region(WHITE, 8, pink=8),
        courts=[paladins(red=1)],
    )
    play(game, move_action(1))
    assert known(game)["result"] == {"reason": "castles", "winners": [WHITE]}
    assert known(game)["castles"] == [12, 0]


def test_a_move_may_win_for_the_other_side():
    game = position(region(BLACK, 9, pink=9), region(blue=1), courts=[paladins(), paladins(blue=1)])
    play(game, move_action(1))
    assert known(game)["result"] == {"reason": "castles", "winners": [BLACK]}


def test_fewer_than_four_regions_end_the_game():
    """Four regions, of which two merge with the Emperor's between them: two are left."""
    game = position(
        region(BLACK, 5, pink=5),
        region(red=1, yellow=3, green=3),
        region(BLACK, 3, blue=3),
        region(WHITE, 6, red=6),
        courts=[paladins(), paladins(red=1)],
    )
    play(game, move_action(1))
    state = known(game)
    assert state["result"] == {"reason": "regions", "winners": [BLACK]}
    assert state["castles"] == [6, 9] and len(state["regions"]) == 2
    assert payoffs(game) == [-1, 1]


def test_four_regions_do_not_end_the_game():
    game = position(
        region(WHITE, 4, pink=4),
        region(red=1, yellow=3, green=3),
        region(BLACK, 5, blue=5),
        region(WHITE, 4, red=4),
        region(BLACK, 1, red=1),
        courts=[paladins(red=1)],
    )
    play(game, move_action(1))
    assert known(game)["phase"] == "roll" and len(known(game)["regions"]) == 4


def three_regions(*owners_and_sizes, last):
    """The territory that ``last`` wins joins its region of three players: three are left."""
    regions = [region(owner, size, pink=size) for owner, size in owners_and_sizes]
    game = position(
        regions[0],
        region(red=1, blue=3, yellow=3, green=3),
        *regions[1:],
        players=3,
        courts=[paladins(red=int(last == team)) for team in range(3)],
    )
    play(game, move_action(1))
    assert len(known(game)["regions"]) == 3
    return game


def test_the_most_castles_win_when_regions_run_out():
    game = three_regions((WHITE, 5), (BLACK, 5), (GRAY, 4), last=WHITE)
    assert known(game)["castles"] == [6, 5, 4]
    assert known(game)["result"] == {"reason": "regions", "winners": [WHITE]}
    assert payoffs(game) == [1, -0.5, -0.5]


def test_whoever_moved_the_most_castles_win():
    game = three_regions((WHITE, 3), (BLACK, 4), (GRAY, 7), last=WHITE)
    assert known(game)["castles"] == [4, 4, 7]
    assert known(game)["result"] == {"reason": "regions", "winners": [GRAY]}


def test_two_teams_with_the_most_castles_share_the_win():
    game = three_regions((WHITE, 5), (BLACK, 6), (GRAY, 3), last=WHITE)
    assert known(game)["result"] == {"reason": "regions", "winners": [WHITE, BLACK]}
    assert payoffs(game) == [0.25, 0.25, -0.5]


def test_three_teams_with_the_same_castles_share_the_win():
    game = three_regions((WHITE, 4), (BLACK, 5), (GRAY, 5), last=WHITE)
    assert known(game)["result"] == {"reason": "regions", "winners": [WHITE, BLACK, GRAY]}
    assert payoffs(game) == [0, 0, 0]


def test_a_tie_of_two_teams_is_a_draw():
    game = position(
        region(WHITE, 6, pink=6),
        region(red=1, blue=3, yellow=3, green=3),
        region(BLACK, 7, pink=7),
        region(pink=1),
        courts=[paladins(red=1)],
    )
    play(game, move_action(1))
    assert known(game)["castles"] == [7, 7]
    assert known(game)["result"] == {"reason": "regions", "winners": [WHITE, BLACK]}
    assert payoffs(game) == [0, 0]


def test_enough_castles_come_before_too_few_regions():
    """Both at once: the winner has won by castles."""
    game = position(
        region(WHITE, 7, pink=7),
        region(red=1, blue=3, yellow=3, green=3),
        region(WHITE, 2, pink=2),
        region(BLACK, 5, pink=5),
        courts=[paladins(red=1)],
    )
    play(game, move_action(1))
    assert known(game)["result"] == {"reason": "castles", "winners": [WHITE]}
    assert len(known(game)["regions"]) == 2


# ------------------------------------------------------------------------------------ replenishing


def replenishing(supply, courts, held=0, players=2, **options):
    """Player 0 is to roll; the supply and the courts hold this much of each clan.

    What is missing from ``paladins_per_clan``, 12, lies on the first region.
    """
    per_clan = 12
    per_court = np.sum(courts, axis=0)
    first = [per_clan - supply[c] - per_court[c] - 3 for c in range(5)]
    first[RED] -= held
    laid = np.repeat(np.eye(5, dtype=int), 3, axis=0).tolist()
    regions = [
        {"owner": NOBODY, "size": 1, "paladins": np.add(one, first if i == 0 else 0).tolist()}
        for i, one in enumerate(laid)
    ]
    game = position(
        *regions,
        phase="roll",
        players=players,
        courts=courts,
        reserves=[paladins(red=held)],
        paladins_per_clan=per_clan,
        **options,
    )
    assert known(game)["supply"] == supply
    return game


def test_paladins_come_in_the_colours_rolled():
    game = replenishing([5, 5, 5, 5, 5], [paladins()] * 2, held=1)
    roll(game, RED, GREEN, GREEN)
    assert known(game)["reserves"][0] == paladins(red=2, green=2)
    assert known(game)["supply"] == [4, 5, 5, 5, 3]


def test_a_crown_becomes_any_colour():
    game = replenishing([5, 5, 5, 5, 5], [paladins()] * 2)
    roll(game, CROWN, GREEN, CROWN)
    assert known(game)["crowns"] == [2, 0] and known(game)["player"] == 0
    assert legal(game) == [crown_action(clan) for clan in range(5)]
    play(game, crown_action(BLUE), crown_action(GREEN))
    assert known(game)["reserves"][0] == paladins(blue=1, green=2)
    assert known(game)["crowns"] == [0, 0] and known(game)["player"] == 1


def test_a_dry_supply_is_filled_by_equal_returns_from_the_courts():
    """As many each as the court with the fewest holds, so that nobody's control changes."""
    courts = [paladins(red=4, blue=1), paladins(red=2, blue=3)]
    game = replenishing([0, 5, 5, 5, 5], courts)
    control = known(game)["control"]
    roll(game, RED, GREEN, GREEN)
    state = known(game)
    assert [court[RED] for court in state["courts"]] == [2, 0]
    assert state["supply"][RED] == 3  # 2 from each court, less the one taken
    assert [court[BLUE] for court in state["courts"]] == [1, 3]
    assert state["control"] == control
    assert state["reserves"][0] == paladins(red=1, green=2)


def test_a_holder_with_an_empty_court_keeps_control():
    """2 and 2 go back: 0 to 0 is a tie."""
    courts = [paladins(red=2), paladins(red=2)]
    game = replenishing([0, 5, 5, 5, 5], courts, control=[1] + [NOBODY] * 4)
    roll(game, RED, GREEN, GREEN)
    assert [court[RED] for court in known(game)["courts"]] == [0, 0]
    assert known(game)["control"][RED] == 1


def test_all_three_courts_return():
    courts = [paladins(red=4), paladins(red=2), paladins(red=1)]
    game = replenishing([0, 5, 5, 5, 5], courts, players=3)
    roll(game, RED, RED, RED, GREEN)
    assert [court[RED] for court in known(game)["courts"]] == [3, 1, 0]
    assert known(game)["supply"][RED] == 0
    assert known(game)["reserves"][0] == paladins(red=3, green=1)


def test_courts_return_only_when_one_is_to_be_taken():
    courts = [paladins(red=4), paladins(red=2)]
    game = replenishing([1, 5, 5, 5, 5], courts)
    roll(game, RED, GREEN, GREEN)  # the supply's last one: nothing comes back yet
    assert [court[RED] for court in known(game)["courts"]] == [4, 2]
    assert known(game)["supply"][RED] == 0


def test_a_die_whose_clan_cannot_be_taken_counts_as_a_crown():
    """A court that holds none returns none; a crown cannot choose the clan either."""
    courts = [paladins(red=4), paladins()]
    game = replenishing([0, 5, 5, 5, 5], courts)
    roll(game, RED, RED, GREEN)
    state = known(game)
    assert state["phase"] == "crown" and state["crowns"] == [2, 0]
    assert state["reserves"][0] == paladins(green=1)
    assert legal(game) == [crown_action(clan) for clan in (PINK, BLUE, YELLOW, GREEN)]
    assert [court[RED] for court in state["courts"]] == [4, 0]


def test_a_crown_may_choose_what_the_courts_return():
    courts = [paladins(red=4), paladins(red=1)]
    game = replenishing([0, 5, 5, 5, 5], courts)
    roll(game, CROWN, GREEN, GREEN)
    assert crown_action(RED) in legal(game)
    assert [court[RED] for court in known(game)["courts"]] == [4, 1]
    play(game, crown_action(RED))
    assert [court[RED] for court in known(game)["courts"]] == [3, 0]
    assert known(game)["supply"][RED] == 1


def test_crowns_are_lost_when_no_clan_can_be_taken():
    game = replenishing([0, 0, 0, 0, 0], [paladins(red=3), paladins(green=2)])
    roll(game, RED, CROWN, GREEN)
    state = known(game)
    assert (state["player"], state["phase"]) == (1, "move")  # player 1 has nothing to play either
    assert state["reserves"] == [[0] * 5] * 2 and state["crowns"] == [0, 0]


def test_a_crown_is_lost_once_the_others_have_emptied_the_supply():
    game = replenishing([0, 1, 0, 0, 0], [paladins(red=3), paladins(green=2)])
    roll(game, CROWN, CROWN, CROWN)
    assert legal(game) == [crown_action(PINK)]
    play(game, crown_action(PINK))
    assert known(game)["player"] == 1
    assert known(game)["reserves"][0] == paladins(pink=1) and known(game)["crowns"] == [0, 0]


def test_the_supply_may_run_dry_in_the_set_up():
    """With 3 of each clan, all laid out, there is nothing to be had: every die is lost."""
    game = set_up([RED] * 7, [CROWN] * 7, paladins_per_clan=3)
    assert known(game)["reserves"] == [[0] * 5] * 2
    assert (known(game)["round"], known(game)["phase"]) == (1, "disc")
    game = set_up([RED] * 7, paladins_per_clan=4)
    assert known(game)["reserves"][0] == paladins(red=1) and known(game)["crowns"] == [6, 0]
    assert legal(game) == [crown_action(clan) for clan in (PINK, BLUE, YELLOW, GREEN)]
    play(game, *(crown_action(clan) for clan in (PINK, BLUE, YELLOW, GREEN)))
    assert known(game)["crowns"] == [0, 0] and known(game)["player"] == 1


# ------------------------------------------------------------------------------------ deferring


def test_deferred_crowns_wait_for_the_own_next_action_turn():
    """The set-up's too; they are decided before paladins are played."""
    game = set_up([CROWN, CROWN, 1, 1, 2, 3, 4], [CROWN, 1, 2, 3, 4, 4, 4], crown_choice="deferred")
    assert (known(game)["phase"], known(game)["crowns"]) == ("disc", [2, 1])
    play(game, disc_action(5), disc_action(1))
    assert (known(game)["phase"], known(game)["player"]) == ("crown", 1)
    assert known(game)["crowns"] == [2, 1]
    play(game, crown_action(RED))
    assert known(game)["phase"] == "place" and known(game)["placements_left"] == 3
    play(game, *[court_action(GREEN)] * 3, move_action(1))
    roll(game, CROWN, CROWN, RED)
    state = known(game)
    assert (state["phase"], state["player"], state["crowns"]) == ("crown", 0, [2, 2])
    play(game, crown_action(RED))
    assert known(game)["phase"] == "crown"
    play(game, crown_action(RED))
    assert known(game)["phase"] == "place"
    assert known(game)["reserves"][0] == paladins(red=2, pink=2, blue=1, yellow=1, green=1)


def test_deferred_crowns_count_as_paladins_to_play():
    game = position(
        phase="crown", crown_choice="deferred", crowns=[2, 0], reserves=[paladins(red=1)], round=2
    )
    play(game, crown_action(RED), crown_action(RED))
    assert known(game)["placements_left"] == 3


def test_a_die_that_counts_as_a_crown_waits_as_well():
    courts = [paladins(red=4), paladins()]
    game = replenishing([0, 5, 5, 5, 5], courts, crown_choice="deferred")
    roll(game, RED, GREEN, GREEN)
    assert known(game)["crowns"] == [1, 0] and known(game)["player"] == 1


def test_a_deferred_crown_is_lost_at_the_start_of_its_owners_turn():
    """Until then it stays: the supply may hold something by that time."""
    courts = [paladins(red=3), paladins(green=2)]
    game = replenishing(
        [0] * 5, courts, crown_choice="deferred", discs=[2, 1], order=[1, 0], crowns=[0, 2]
    )
    roll(game, CROWN, CROWN, RED)
    state = known(game)
    assert (state["round"], state["phase"], state["crowns"]) == (2, "disc", [3, 2])
    play(game, disc_action(3), disc_action(4))  # player 1 opens, and plays first
    state = known(game)
    assert (state["phase"], state["player"], state["crowns"]) == ("move", 1, [3, 0])


# ------------------------------------------------------------------------------------ the cut-off


def test_max_rounds_cuts_the_game_off_after_the_last_crown():
    """Nobody wins, however the castles stand."""
    game = position(
        region(),
        region(WHITE, 5, red=5),
        phase="roll",
        player=1,
        max_rounds=3,
        round=3,
        order=[0, 1],
        reserves=[paladins(red=7), paladins(blue=4)],
    )
    roll(game, RED, CROWN, RED)
    assert known(game)["phase"] == "crown"
    play(game, crown_action(RED))
    state = known(game)
    assert state["phase"] == "over" and state["result"] == {"reason": "max_rounds", "winners": []}
    assert state["round"] == 3 and state["castles"] == [5, 0]
    assert payoffs(game) == [0, 0]


def test_the_last_round_is_played_to_its_end():
    game = position(
        phase="roll",
        player=0,
        max_rounds=3,
        round=3,
        order=[0, 1],
        reserves=[paladins(red=4), paladins(blue=7)],
    )
    roll(game, RED, RED, RED)
    assert (known(game)["phase"], known(game)["player"]) == ("place", 1)


def test_a_win_in_the_last_round_is_a_win():
    game = position(
        region(WHITE, 9, pink=9),
        region(red=1),
        courts=[paladins(red=1)],
        discs=[2, 1],
        max_rounds=3,
        round=3,
    )
    play(game, move_action(1))
    assert known(game)["result"] == {"reason": "castles", "winners": [WHITE]}


def test_without_max_rounds_a_game_goes_on():
    """Past 65,535 rounds too, where a 16-bit count would start again with the set-up."""
    for number in (100, 65535):
        game = end_of_round(number, max_rounds=None)
        roll(game, RED, RED, RED)
        assert (known(game)["round"], known(game)["phase"]) == (number + 1, "disc")
        play(game, disc_action(1), disc_action(2))
        assert known(game)["placements_left"] == 3
