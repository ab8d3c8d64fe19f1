"""The rulebook, statement by statement: its figures, its examples, and a test for each rule.

How positions are set up, and what of them is invented: tests/positions.py.
"""

import numpy as np
import pytest
from positions import (
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

RED, PINK, BLUE, YELLOW, GREEN = range(5)
NOBODY, WHITE, BLACK, GRAY = range(-1, 3)
PLACING = {"phase": "place", "placements_left": 3}


def turn(game):
    return known(game)["phase"], known(game)["player"]


# ------------------------------------------------------------------------------------ preparation
@pytest.mark.parametrize(
    ("players", "reserve", "dice", "castles"), [(2, 7, 3, 10), (3, 9, 4, 8), (4, 7, 3, 10)]
)
def test_sizes_are_those_of_the_table(players, reserve, dice, castles):
    rules = Rules(players=players)
    assert (rules.reserve, rules.dice, rules.castles_to_win) == (reserve, dice, castles)
    assert new_game(players=players)["dice_due"] == [reserve]
    game = set_up(*[[clan % 5 for clan in range(reserve)]] * players, players=players)
    assert [sum(own) for own in known(game)["reserves"]] == [reserve] * players
    play(game, *(disc_action(number + 1) for number in range(players)))
    assert known(game)["placements_left"] == dice
    play(game, *(court_action(clan) for clan in range(dice)), move_action(1))
    assert turn(game)[0] == "roll" and known(game)["dice_due"] == dice


def test_one_paladin_lies_on_each_territory_three_of_each_clan():
    for seed in range(20):
        state = known(engine.new_games(Rules(), 1, seed=seed, roll=False))
        assert [one["territories"] for one in state["regions"]] == [[t] for t in range(15)]
        assert np.sum([one["paladins"] for one in state["regions"]], axis=0).tolist() == [3] * 5
        assert {sum(one["paladins"]) for one in state["regions"]} == {1}
        assert state["supply"] == [37] * 5
        assert state["regions"][0]["territories"] == [0], "where the Emperor starts"
    assert known(new_game(2, players=4))["order"] == [2, 3, 0, 1], "clockwise from the first"


def test_the_paladins_are_laid_out_at_random():
    games = engine.new_games(Rules(), 3000, seed=0, roll=False)
    red = games["region_paladins"][:, RED, :15].sum(axis=0, dtype=int)
    assert abs(red - 600).max() < 5 * (3000 * 0.2 * 0.8) ** 0.5


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_first_player_is_drawn_by_lot(players):
    first = engine.new_games(Rules(players=players), 3000, seed=0)["order"][:, 0]
    expected = 3000 / players
    assert abs(np.bincount(first) - expected).max() < 5 * expected**0.5


def test_a_player_decides_all_crowns_of_the_set_up_before_the_next_rolls():
    game = set_up([CROWN, RED, CROWN, RED, RED, RED, RED], first_player=1)
    assert legal(game) == [5, 6, 7, 8, 9]
    for clan in (GREEN, BLUE):
        assert turn(game) == ("crown", 1)
        play(game, crown_action(clan))
    assert turn(game) == ("roll", 0)
    assert known(game)["reserves"][1] == paladins(red=5, green=1, blue=1)
    assert known(game)["supply"] == [32, 37, 36, 37, 36]


# ------------------------------------------------------------------------------------ opening phase
def test_albert_plays_3_and_bob_2():
    """The rulebook's example: Bob is first and moves 1 or 2 steps, Albert 1, 2 or 3."""
    albert, bob = 0, 1
    game = set_up([0, 0, 1, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4, 4], first_player=albert)
    assert turn(game) == ("disc", albert)
    play(game, disc_action(3), disc_action(2))
    for player, placed, steps in ((bob, (GREEN, GREEN, BLUE), 2), (albert, (RED, RED, PINK), 3)):
        assert turn(game) == ("place", player)
        play(game, *map(court_action, placed))
        assert legal(game) == [move_action(step) for step in range(1, steps + 1)]
        play(game, move_action(steps))
        roll(game, RED, RED, RED)
    # "a starting player is the player who had placed the lower number in the previous round"
    assert turn(game) == ("disc", bob)
    assert known(game)["order"] == [bob, albert] and known(game)["round"] == 2
    assert known(game)["discs_in_hand"] == [[1, 2, 4, 5], [1, 3, 4, 5]]


DISCS = {  # who plays which of the legal discs, and the order of play that follows
    "a number played this round is not allowed": (
        {"player": 1, "discs": [3, 0], "order": [0, 1]}, [1, 2, 4, 5], 2, [1, 0]),
    "the last disc may equal the others, and the one played earlier is lower": (
        {"player": 0, "discs": [0, 4], "order": [1, 0], "spent": [1, 2, 3, 5], "round": 5},
        [4], 4, [1, 0]),
    "with every number taken each disc in hand is allowed, the last one or not": (
        {"player": 2, "discs": [1, 2, 0], "order": [0, 1, 2], "spent": [3, 4, 5], "round": 4},
        [1, 2], 1, [0, 2, 1]),
    "discs decide the order of four players": (
        {"player": 3, "discs": [2, 5, 4, 0], "order": [1, 0, 2, 3]}, [1, 3], 3, [0, 3, 2, 1]),
    "who plays last in one round may play first in the next": (
        {"player": 3, "discs": [5, 4, 2, 0], "order": [0, 1, 2, 3]}, [1, 3], 1, [3, 2, 1, 0]),
}  # fmt: skip


@pytest.mark.parametrize(("table", "allowed", "disc", "order"), DISCS.values(), ids=DISCS)
def test_discs_are_different_and_decide_the_order_of_play(table, allowed, disc, order):
    full = [paladins(red=9 if len(order) == 3 else 7)] * len(order)
    game = position(phase="disc", players=len(order), reserves=full, **table)
    assert legal(game) == [disc_action(number) for number in allowed]
    play(game, disc_action(disc))
    assert known(game)["order"] == order and turn(game) == ("place", order[0])


def end_of_round(number, player=1, **rules):
    """The last player of a round is to roll, or another."""
    reserves = [paladins(red=7 - 3 * (player == 0)), paladins(blue=7 - 3 * player)]
    discs = {"discs": [1, 2] if number % 5 else [1, 1], "order": [0, 1], "reserves": reserves}
    return position(phase="roll", player=player, round=number, **discs, **rules)


def test_after_the_fifth_round_every_player_takes_five_discs_back():
    for number in (4, 5, 6, 10):
        game = end_of_round(number)
        assert [len(hand) for hand in known(game)["discs_in_hand"]] == [4 - (number - 1) % 5] * 2
        roll(game, PINK, PINK, PINK)
        state = known(game)
        assert (state["round"], state["phase"]) == (number + 1, "disc")
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
    reserves = [paladins(red=1, yellow=6)]
    game = position(region(), region(WHITE, 3, red=3), **PLACING, reserves=reserves)
    before = [one["paladins"] for one in known(game)["regions"]]
    assert len(before) == 13
    assert legal(game) == [
        action
        for clan in (RED, YELLOW)
        for action in (court_action(clan), *(region_action(clan, n) for n in range(13)))
    ]
    play(game, region_action(YELLOW, 1), region_action(YELLOW, 1), court_action(RED))
    state = known(game)
    before[1][YELLOW] += 2
    assert [one["paladins"] for one in state["regions"]] == before
    assert state["courts"] == [paladins(red=1), paladins()]
    assert state["reserves"][0] == paladins(yellow=4) and state["phase"] == "move"


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
    reserves = [paladins(red=4), paladins(blue=held)]
    game = position(phase="roll", player=0, reserves=reserves, discs=[1, 2])
    roll(game, GREEN, GREEN, GREEN)
    assert turn(game) == ("place" if held else "move", 1)
    assert known(game)["placements_left"] == min(held, 3)
    play(game, *[court_action(BLUE)] * min(held, 3), move_action(1))
    assert known(game)["dice_due"] == 3


# ------------------------------------------------------------------------------------ control
ADJACENTLY = {"partners": "adjacent"}
CONTROLLED = {  # the red paladins in the courts, who controls red, and after each one more
    "the first paladin at court brings control": ([0, 0], {}, NOBODY, [0]),
    "a tie keeps control": ([1, 2], {}, 1, [1, 0]),
    "the lead must be over all other courts": ([2, 1, 3], {}, 2, [2, 0]),
    "opposite partners' courts are not added": ([2, 4, 3, 0], {}, 1, [1, 1, 0]),
    "an opposite partner must be surpassed": ([2, 1, 4, 0], {}, 2, [2, 2, 0]),
    "adjacent partners' courts are not added": ([2, 3, 4, 0], ADJACENTLY, 2, [2, 2, 0]),
    "an adjacent partner must be surpassed": ([2, 4, 1, 0], ADJACENTLY, 1, [1, 1, 0]),
    "control may pass between partners": ([1, 0, 1, 0], {}, 2, [0]),
}


@pytest.mark.parametrize(("held", "rules", "holder", "after"), CONTROLLED.values(), ids=CONTROLLED)
def test_control_goes_to_the_only_court_with_the_most(held, rules, holder, after):
    courts, reserves = [paladins(red=count) for count in held], [paladins(red=7)]
    control = [holder, *[NOBODY] * 4]
    rules = {"players": len(held), **rules}
    game = position(**PLACING, courts=courts, reserves=reserves, control=control, **rules)
    for expected in after:
        play(game, court_action(RED))
        assert known(game)["control"] == [expected, *[NOBODY] * 4]


@pytest.mark.parametrize("holder", [0, 1])
def test_control_stays_with_the_holder_while_nobody_is_ahead(holder):
    """A tie says nothing about who holds the clan: that is history."""
    control, reserves = [holder, *[NOBODY] * 4], [paladins(blue=4)]
    game = position(courts=[paladins(red=2)] * 2, control=control, reserves=reserves)
    play(game, move_action(1))
    roll(game, BLUE, BLUE, BLUE)
    assert known(game)["control"][RED] == holder


# ------------------------------------------------------------------------------------ figure 5
FIGURE_5 = {  # what white plays, what black plays then, and who controls that clan after each
    "undefended red is lost": (
        [(PINK, WHITE), (PINK, WHITE), (YELLOW, BLACK)], [(RED, WHITE), (RED, BLACK)]),
    "two red paladins defend red": (
        [(RED, WHITE), (RED, WHITE), (PINK, WHITE)], [(RED, WHITE)] * 3),
    "two yellow paladins take yellow": ([(YELLOW, BLACK), (YELLOW, WHITE)], []),
}  # fmt: skip


@pytest.mark.parametrize(("whites", "blacks"), FIGURE_5.values(), ids=FIGURE_5)
def test_figure_5(whites, blacks):
    game = figure_5()
    assert known(game)["control"] == [WHITE, WHITE, BLACK, BLACK, BLACK]
    for placed in (whites, blacks):
        for clan, holder in placed:
            play(game, court_action(clan))
            assert known(game)["control"][clan] == holder
        if turn(game) == ("move", WHITE):
            play(game, move_action(1))
            roll(game, GREEN, GREEN, GREEN)
            assert turn(game) == ("place", BLACK)


# ------------------------------------------------------------------------------------ the Emperor
def test_the_emperor_moves_one_step_to_as_many_as_the_disc_says():
    for disc in range(1, 6):
        game = position(discs=[disc, 1 if disc > 1 else 2], player=0)
        assert legal(game) == [move_action(steps) for steps in range(1, disc + 1)]
        play(game, move_action(disc))
        assert known(game)["regions"][0]["territories"] == [disc]
    game = position(region(), region(WHITE, 4, red=4), discs=[2, 3])
    play(game, move_action(2))  # a merged region is one step
    assert known(game)["regions"][0]["territories"] == [5]


def test_the_emperor_may_come_round():
    """To where he started, where nothing changes, and to where one step leads as well."""
    white, black = region(WHITE, 4, red=4), region(BLACK, 4, blue=4)
    four = white, black, white, region(BLACK, 3, blue=1, pink=3, yellow=3, green=3)
    courts, ends = [paladins(red=1), paladins(blue=1)], []
    for steps in (1, 5, 4):
        game = position(*four, discs=[5, 4], round=34, spent=[1, 2, 3], courts=courts)
        start = known(game)["regions"]
        assert legal(game) == [move_action(n) for n in (1, 2, 3, 4, 5)]
        play(game, move_action(steps))
        ends.append(known(game))
    assert ends[0] == ends[1] and ends[2]["regions"] == start


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


TWO = {"courts": [paladins(red=1, pink=1), paladins(blue=1)]}
THREE = {"players": 3, "courts": [paladins(red=1), paladins(blue=1), paladins(green=1)]}


def four(partners, *courts):
    return {"players": 4, "partners": partners, "courts": [paladins(**court) for court in courts]}


OPPOSITE = four("opposite", {"red": 1}, {}, {"pink": 1}, {"blue": 1})
ADJACENT = four("adjacent", {"red": 1}, {"pink": 1}, {}, {"blue": 1})
OPPONENTS = four("opposite", {"red": 1}, {"blue": 1}, {}, {"green": 1})

SETTLED = {
    "a majority builds one castle, however large": (TWO, region(red=5, blue=4), WHITE, [1, 0]),
    "who moves does not matter": (TWO, region(red=1, blue=4), BLACK, [0, 1]),
    "a tie builds no castle": (TWO, region(red=2, blue=2), NOBODY, [0, 0]),
    "paladins that nobody controls count for nobody": (TWO, region(green=3), NOBODY, [0, 0]),
    "one paladin outdoes those": (TWO, region(green=3, red=1), WHITE, [1, 0]),
    "a player's clans count together": (TWO, region(red=2, pink=2, blue=3), WHITE, [1, 0]),
    "no castle is added to the own region": (TWO, region(WHITE, red=3), WHITE, [1, 0]),
    "a castle counts as a paladin": (TWO, region(BLACK, red=3, blue=2), BLACK, [0, 1]),
    "and no more": (TWO, region(BLACK, red=4, blue=2), WHITE, [1, 0]),
    "castles alone hold a region": (TWO, region(BLACK, 3, red=3), BLACK, [0, 3]),
    "a take-over replaces every castle": (TWO, region(BLACK, 3, red=4), WHITE, [3, 0]),
    "the other player may gain": (TWO, region(WHITE, 2, blue=3), BLACK, [0, 2]),
    "a relative majority is enough": (THREE, region(red=3, blue=2, green=2), WHITE, [1, 0, 0]),
    "a tie before the third": (THREE, region(red=3, blue=3, green=2), NOBODY, [0, 0, 0]),
    "a tie with the owner": (THREE, region(WHITE, red=2, blue=3, green=2), WHITE, [1, 0, 0]),
    "a tie ahead of the owner": (THREE, region(GRAY, red=3, blue=3, green=1), GRAY, [0, 0, 1]),
    "the strongest of three takes over": (THREE, region(GRAY, 2, red=2, blue=3), BLACK, [0, 2, 0]),
    "opposite partners are jointly strong": (OPPOSITE, region(red=2, pink=2, blue=3), 0, [1, 0]),
    "adjacent partners are jointly strong": (ADJACENT, region(red=2, pink=2, blue=3), 0, [1, 0]),
    "opponents are too": (OPPONENTS, region(red=3, blue=2, green=2), 1, [0, 1]),
}


@pytest.mark.parametrize(("table", "here", "owner", "castles"), SETTLED.values(), ids=SETTLED)
def test_the_strongest_team_owns_the_region_where_the_emperor_stops(table, here, owner, castles):
    """One step on; the castles of the teams are those that stand there."""
    settled, in_play = emperor_stops_at(position(region(), here, **table))
    assert (settled["owner"], settled["castles"], in_play) == (owner, sum(castles), castles)


def test_only_the_region_where_the_emperor_stops_is_settled():
    one, here = region(red=1), region(BLACK, 4, red=5)
    game = position(one, one, here, region(), region(BLACK, blue=1), discs=[2, 3], **TWO)
    here, castles = emperor_stops_at(game, 2)
    assert (here["territories"], here["owner"], castles) == ([2, 3, 4, 5], WHITE, [4, 1])


# ------------------------------------------------------------------------------------ figure 2
@pytest.mark.parametrize(
    ("placed", "owner", "castles"),
    [(region_action(GREEN, 5), BLACK, [0, 1]), (court_action(GREEN), WHITE, [1, 0])],
    ids=["black keeps the territory while green is black", "with green white takes it over 3 to 1"],
)
def test_figure_2(placed, owner, castles):
    """White moves the Emperor to black's territory of figure 2; the courts are invented."""
    courts = [paladins(red=1, green=1), paladins(green=1)]
    control = [WHITE, NOBODY, NOBODY, NOBODY, BLACK]
    placing = {**PLACING, "placements_left": 1, "reserves": [paladins(green=1)]}
    circle = region(), region(BLACK, green=2, red=1)
    game = position(*circle, courts=courts, control=control, **placing)
    play(game, placed)
    here, in_play = emperor_stops_at(game)
    assert (here["owner"], here["castles"], in_play) == (owner, 1, castles)


# ------------------------------------------------------------------------------------ merging
def test_figures_3_and_4_three_territories_merge():
    """A, B (of figure 2) and C: 6 paladins and 3 castles. The paladins on A and C are invented."""
    a, b = region(WHITE, pink=1), region(BLACK, green=2, red=1)
    c = region(WHITE, blue=1, yellow=1)
    game = position(a, b, c, courts=[paladins(red=1, green=1)])
    here, castles = emperor_stops_at(game)
    merged = paladins(red=1, pink=1, blue=1, yellow=1, green=2)
    assert here == {"territories": [0, 1, 2], "paladins": merged, "owner": WHITE, "castles": 3}
    assert castles == [3, 0] and len(known(game)["regions"]) == 13


def test_neighbours_of_the_same_team_merge_and_no_others():
    for before, after, territories in (
        *((WHITE, other, [0, 1]) for other in (NOBODY, BLACK)),
        *((other, WHITE, [1, 2]) for other in (NOBODY, BLACK)),
        *((BLACK, other, [1]) for other in (NOBODY, BLACK)),
    ):
        circle = region(before, pink=1), region(red=1), region(after, pink=1)
        here, castles = emperor_stops_at(position(*circle, courts=[paladins(red=1)]))
        assert (here["territories"], here["castles"]) == (territories, len(territories))
        assert castles[WHITE] == len(territories)


def test_a_merged_region_is_not_settled_again():
    """Black is stronger on the merged one, but only a later stop of the Emperor will tell."""
    courts = [paladins(red=1), paladins(blue=1)]
    here, _ = emperor_stops_at(position(region(WHITE, blue=6), region(red=1), courts=courts))
    assert (here["territories"], here["owner"]) == ([0, 1], WHITE)
    assert here["paladins"] == paladins(red=1, blue=6)


# ------------------------------------------------------------------------------------ figure 6
FIGURE_6 = {  # who moves, paladins and where they go (0: the court), steps, and what comes of it
    "black would unite A, B and C": (BLACK, [(BLUE, 0), (BLUE, 0), (GREEN, 0)], 1, BLACK, range(6)),
    "one step would be suicide": (WHITE, [(YELLOW, 0)] * 3, 1, BLACK, range(6)),
    "three steps would be safe for now": (WHITE, [(RED, 0), (RED, 0), (PINK, 0)], 3, WHITE, [6]),
    "the counterattack wins five castles": (
        WHITE, [(YELLOW, 0), (YELLOW, 0), (YELLOW, 3)], 2, WHITE, range(2, 7)),
    "without the third yellow it would be a tie": (  # 3 + 2 + 1 against 2 + 1 + 3
        WHITE, [(YELLOW, 0)] * 3, 2, BLACK, [3, 4, 5]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("player", "placed", "steps", "owner", "there"), FIGURE_6.values(), ids=FIGURE_6
)
def test_figure_6(player, placed, steps, owner, there):
    game = figure_6(player)
    for clan, where in placed:
        play(game, region_action(clan, where - 1) if where else court_action(clan))
    here, castles = emperor_stops_at(game, steps)
    assert (here["owner"], here["territories"]) == (owner, [*there])
    whites = {1: 2, 5: 5, 6: 1}.get(len(there), 2)
    assert (here["castles"], castles) == (len(there), [whites, 7 - whites])


# ------------------------------------------------------------------------------------ more players
def test_partners_share_castles():
    """The region of one merges with the partner's."""
    courts = [paladins(pink=1), paladins(), paladins(red=1), paladins()]
    game = position(region(0, pink=1), region(red=1), players=4, courts=courts)
    here, castles = emperor_stops_at(game)
    assert (here["castles"], castles) == (2, [2, 0])


# ------------------------------------------------------------------------------------ the end
def joining(first, *others):
    """These regions; the red team's castle on the territory after the first joins it to that."""
    owners = [region(owner, size, pink=size) for owner, size in (first, *others)]
    return [owners[0], region(red=1, blue=3, yellow=3, green=3), *owners[1:]]


def large(owner, size):
    """A region beside which a castle of the red team is built."""
    return [region(owner, size, pink=size), region(red=1)]


W, B, G = WHITE, BLACK, GRAY
TAKE_OVER = [region(), region(B, 4, red=5), region(), region(W, 8, pink=8)]
ENDS = {  # whose red is, other rules; why it ends, the winners, the castles, the payoffs
    "ten castles win": (large(W, 9), 0, {}, "castles", [W], [10, 0], [1, -1]),
    "eight castles win among three": (
        large(G, 7), 2, {}, "castles", [G], [0, 0, 8], [-0.5, -0.5, 1]),
    "opposite partners win together": (
        large(1, 9), 3, {}, "castles", [1], [0, 10], [-1, 1, -1, 1]),
    "adjacent partners win together": (
        large(1, 9), 3, ADJACENTLY, "castles", [1], [0, 10], [-1, -1, 1, 1]),
    "a take-over beyond the own supply wins at once": (
        TAKE_OVER, 0, {}, "castles", [W], [12, 0], [1, -1]),
    "a move may win for the other side": (large(B, 9), 1, {}, "castles", [B], [0, 10], [-1, 1]),
    "a win in the last round is a win": (
        large(W, 9), 0, {"discs": [2, 1], "max_rounds": 33, "round": 33},
        "castles", [W], [10, 0], [1, -1]),
    "fewer than four regions end the game": (
        [*joining((B, 5), (B, 3)), region(W, 6, red=6)], 1, {}, "regions", [B], [6, 9], [-1, 1]),
    "enough castles come before too few regions": (
        joining((W, 7), (W, 2), (B, 5)), 0, {}, "castles", [W], [10, 5], [1, -1]),
    "a tie of two teams is a draw": (
        [*joining((W, 6), (B, 7)), region(pink=1)], 0, {}, "regions", [W, B], [7, 7], [0, 0]),
    "the most castles win": (
        joining((W, 5), (B, 5), (G, 4)), 0, {}, "regions", [W], [6, 5, 4], [1, -0.5, -0.5]),
    "whoever moved, the most castles win": (
        joining((W, 3), (B, 4), (G, 7)), 0, {}, "regions", [G], [4, 4, 7], [-0.5, -0.5, 1]),
    "two teams of three share the win": (
        joining((W, 5), (B, 6), (G, 3)), 0, {}, "regions", [W, B], [6, 6, 3], [0.25, 0.25, -0.5]),
    "three teams share the win": (
        joining((W, 4), (B, 5), (G, 5)), 0, {}, "regions", [W, B, G], [5, 5, 5], [0, 0, 0]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("circle", "red", "options", "reason", "winners", "castles", "paid"), ENDS.values(), ids=ENDS
)
def test_the_game_ends(circle, red, options, reason, winners, castles, paid):
    """With one step of the Emperor."""
    courts = [paladins(red=int(seat == red)) for seat in range(len(paid))]
    game = position(*circle, courts=courts, players=len(paid), **options)
    play(game, move_action(1))
    state = known(game)
    assert state["phase"] == "over" and legal(game) == []
    assert state["result"] == {"reason": reason, "winners": winners}
    assert (state["castles"], payoffs(game)) == (castles, paid)
    shares, teams = engine.win_shares(game)[0], len(castles)  # partners split their team's
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose((shares * len(paid) - 1) / (teams - 1), paid)


def test_the_game_goes_on():
    for circle, castles, regions in (
        (large(W, 8), [9, 0], 7),
        ([*joining((W, 4), (B, 5)), region(W, 4, red=4), region(B, 1, red=1)], [9, 6], 4),
    ):
        game = position(*circle, courts=[paladins(red=1)])
        play(game, move_action(1))
        state = known(game)
        assert (state["phase"], len(state["regions"])) == ("roll", regions)
        assert (state["castles"], payoffs(game)) == (castles, [0, 0])


# ------------------------------------------------------------------------------------ replenishing
def replenishing(supply, courts, **options):
    """Player 0 is to roll; the supply and the courts hold this much of each clan.

    What is missing from ``paladins_per_clan``, 12, lies on the first region.
    """
    laid = np.repeat(np.eye(5, dtype=int), 3, axis=0)
    laid[0] += 12 - 3 - np.array(supply) - np.sum(courts, axis=0)
    circle = [{**region(), "paladins": one} for one in laid.tolist()]
    options |= {"phase": "roll", "courts": courts, "paladins_per_clan": 12}
    game = position(*circle, **options)
    assert known(game)["supply"] == supply
    return game


TURN, TAKEN = [RED, GREEN, GREEN], paladins(red=1, green=2)
DRY = {  # supply, red paladins at court, dice; then the reserve, red at court, the supply
    "paladins come in the colours rolled": (5, [0, 0], TURN, TAKEN, [0, 0], 4),
    "every court returns as many as the one with the fewest": (0, [4, 2], TURN, TAKEN, [2, 0], 3),
    "who holds a clan keeps it with an empty court": (0, [2, 2], TURN, TAKEN, [0, 0], 3),
    "all three courts return": (
        0, [4, 2, 1], [RED, RED, RED, GREEN], paladins(red=3, green=1), [3, 1, 0], 0),
    "courts return only when one is to be taken": (1, [4, 2], TURN, TAKEN, [4, 2], 0),
}  # fmt: skip


@pytest.mark.parametrize(
    ("supply", "at_court", "faces", "reserve", "left", "supply_left"), DRY.values(), ids=DRY
)
def test_a_supply_that_runs_dry_is_filled_from_the_courts(
    supply, at_court, faces, reserve, left, supply_left
):
    """Then nobody's control changes: player 1's of red, say, where the courts are level."""
    courts = [paladins(red=count, blue=count % 2) for count in at_court[:-1]]
    courts.append(paladins(red=at_court[-1], blue=2))
    red = 1 if at_court == [2, 2] else 0 if at_court[0] else NOBODY
    control = [red, NOBODY, len(courts) - 1, NOBODY, NOBODY]
    game = replenishing([supply, 5, 5, 5, 5], courts, players=len(courts), control=control)
    roll(game, *faces)
    state = known(game)
    assert state["reserves"][0] == reserve
    assert [court[RED] for court in state["courts"]] == left
    assert [court[BLUE] for court in state["courts"]] == [court[BLUE] for court in courts]
    assert (state["supply"][RED], state["control"]) == (supply_left, control)


def test_a_crown_becomes_any_colour():
    game = replenishing([5, 5, 5, 5, 5], [paladins()] * 2)
    roll(game, CROWN, GREEN, CROWN)
    assert known(game)["crowns"] == [2, 0] and known(game)["player"] == 0
    assert legal(game) == [crown_action(clan) for clan in range(5)]
    play(game, crown_action(BLUE), crown_action(GREEN))
    assert known(game)["reserves"][0] == paladins(blue=1, green=2)
    assert known(game)["crowns"] == [0, 0] and known(game)["player"] == 1


def test_a_die_whose_clan_cannot_be_taken_counts_as_a_crown():
    """A court that holds none returns none; a crown cannot choose the clan either."""
    game = replenishing([0, 5, 5, 5, 5], [paladins(red=4), paladins()])
    roll(game, RED, RED, GREEN)
    state = known(game)
    assert state["phase"] == "crown" and state["crowns"] == [2, 0]
    assert state["reserves"][0] == paladins(green=1)
    assert legal(game) == [crown_action(clan) for clan in (PINK, BLUE, YELLOW, GREEN)]
    assert [court[RED] for court in state["courts"]] == [4, 0]


def test_a_crown_may_choose_what_the_courts_return():
    """They do where the supply is dry, and not for its last paladin."""
    for supply, red_left, supply_left in ((0, [3, 0], 1), (1, [4, 1], 0)):
        game = replenishing([supply, 5, 5, 5, 5], [paladins(red=4), paladins(red=1)])
        roll(game, CROWN, GREEN, GREEN)
        assert crown_action(RED) in legal(game)
        assert [court[RED] for court in known(game)["courts"]] == [4, 1]
        play(game, crown_action(RED))
        assert [court[RED] for court in known(game)["courts"]] == red_left
        assert known(game)["supply"][RED] == supply_left


@pytest.mark.parametrize("pink", [0, 1])
def test_crowns_are_lost_when_no_clan_can_be_taken(pink):
    """At once, or when the others have emptied the supply."""
    game = replenishing([0, pink, 0, 0, 0], [paladins(red=3), paladins(green=2)])
    roll(game, *([CROWN] * 3 if pink else [RED, CROWN, GREEN]))
    if pink:
        assert legal(game) == [crown_action(PINK)]
        play(game, crown_action(PINK))
    state = known(game)
    assert (state["player"], state["phase"]) == (1, "move")  # player 1 has nothing to play either
    assert (state["reserves"], state["crowns"]) == ([paladins(pink=pink), paladins()], [0, 0])


def test_the_supply_may_run_dry_in_the_set_up():
    """With 3 of each clan, all laid out, there is nothing to be had: every die is lost."""
    game = set_up([RED] * 7, [CROWN] * 7, paladins_per_clan=3)
    assert known(game)["reserves"] == [[0] * 5] * 2
    assert (known(game)["round"], known(game)["phase"]) == (1, "disc")
    game = set_up([RED] * 7, paladins_per_clan=4)
    assert known(game)["reserves"][0] == paladins(red=1) and known(game)["crowns"] == [6, 0]
    others = [crown_action(clan) for clan in (PINK, BLUE, YELLOW, GREEN)]
    assert legal(game) == others
    play(game, *others)
    assert known(game)["crowns"] == [0, 0] and known(game)["player"] == 1


# ------------------------------------------------------------------------------------ deferring
def test_deferred_crowns_wait_for_the_own_next_action_turn():
    """The set-up's too; they are decided before paladins are played."""
    game = set_up([CROWN, CROWN, 1, 1, 2, 3, 4], [CROWN, 1, 2, 3, 4, 4, 4], crown_choice="deferred")
    assert (turn(game)[0], known(game)["crowns"]) == ("disc", [2, 1])
    play(game, disc_action(5), disc_action(1))
    assert (turn(game), known(game)["crowns"]) == (("crown", 1), [2, 1])
    play(game, crown_action(RED))
    assert turn(game)[0] == "place" and known(game)["placements_left"] == 3
    play(game, *[court_action(GREEN)] * 3, move_action(1))
    roll(game, CROWN, CROWN, RED)
    assert known(game)["crowns"] == [2, 2]
    for _ in range(2):
        assert turn(game) == ("crown", 0)
        play(game, crown_action(RED))
    assert turn(game)[0] == "place"
    assert known(game)["reserves"][0] == paladins(red=2, pink=2, blue=1, yellow=1, green=1)


def test_deferred_crowns_count_as_paladins_to_play():
    crowns = {"phase": "crown", "crown_choice": "deferred", "crowns": [2, 0], "round": 32}
    game = position(**crowns, reserves=[paladins(red=1)])
    play(game, crown_action(RED), crown_action(RED))
    assert known(game)["placements_left"] == 3


def test_a_deferred_crown_is_lost_at_the_start_of_its_owners_turn():
    """Until then it stays: the supply may hold something by that time. So does a die for one."""
    deferred = {"crown_choice": "deferred", "discs": [2, 1], "order": [1, 0], "crowns": [0, 2]}
    game = replenishing([0] * 5, [paladins(red=3), paladins(green=2)], **deferred)
    roll(game, CROWN, CROWN, RED)
    state = known(game)
    assert (state["round"], state["phase"], state["crowns"]) == (32, "disc", [3, 2])
    play(game, disc_action(3), disc_action(4))  # player 1 opens, and plays first
    assert (*turn(game), known(game)["crowns"]) == ("move", 1, [3, 0])


# ------------------------------------------------------------------------------------ the cut-off
def test_max_rounds_cuts_the_game_off_after_the_last_crown():
    """Nobody wins, however the castles stand."""
    last = {"phase": "roll", "player": 1, "max_rounds": 3, "round": 3, "order": [0, 1]}
    reserves = [paladins(red=7), paladins(blue=4)]
    game = position(region(), region(WHITE, 5, red=5), **last, reserves=reserves)
    roll(game, RED, CROWN, RED)
    assert turn(game)[0] == "crown"
    play(game, crown_action(RED))
    state = known(game)
    assert state["phase"] == "over" and state["result"] == {"reason": "max_rounds", "winners": []}
    assert state["round"] == 3 and state["castles"] == [5, 0]
    assert payoffs(game) == [0, 0]
    game = end_of_round(3, 0, max_rounds=3)  # which is played to its end
    roll(game, RED, RED, RED)
    assert turn(game) == ("place", 1)


def test_without_max_rounds_a_game_goes_on():
    """Past 65,535 rounds too, where a 16-bit count would start again with the set-up."""
    for number in (100, 65535):
        game = end_of_round(number, max_rounds=None)
        roll(game, RED, RED, RED)
        assert (known(game)["round"], known(game)["phase"]) == (number + 1, "disc")
        play(game, disc_action(1), disc_action(2))
        assert known(game)["placements_left"] == 3
