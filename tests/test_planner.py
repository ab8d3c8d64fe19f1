"""The evaluation counts what it says, plans are all there is to do, and the planner sees them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import int64
from positions import (
    BLACK,
    BLUE,
    NOBODY,
    PINK,
    RED,
    WHITE,
    YELLOW,
    after,
    figure_6,
    known,
    paladins,
    play,
    position,
    region,
    roll,
)
from strategies import history, rules, seeds
from test_bots import middle_games

from carolus_env import bots, engine
from carolus_env.bots.planner import PlannerBot
from carolus_env.engine.rules import (
    CASTLES_TO_WIN,
    DICE,
    DISC,
    MOVE,
    PLACE,
    Rules,
    court_action,
    crown_action,
    disc_action,
    move_action,
    region_action,
)
from carolus_env.engine.streams import new_streams
from carolus_env.planning import heuristic, plans
from carolus_env.system.compiler import entry

every_number = pytest.mark.parametrize("players", [2, 3, 4])
NAMES = [feature.name for feature in heuristic.FEATURES]


@entry
def _list(states, width, weights, scratch, found, values):
    return plans.list_plans(states[0], width, weights, scratch, found, values)


def listed(game, width, most=50_000):
    """The plans of one game as lists of actions, and their values."""
    weights = heuristic.all_weights()[int(game["players"][0])].copy()
    result, values = np.zeros(most, np.int64), np.zeros(most)
    width = plans.WIDTHS.index(width)
    count = _list(game, width, weights, plans.PlanScratch.new(), result, values)
    return [plans.actions_of(int(plan)) for plan in result[:count]], values[:count]


def turns_of(players, phase, games=60):
    states = middle_games(Rules(players), games)
    return states[states["phase"] == phase]


# ------------------------------------------------------------------------------------ evaluation


def counted(state):
    """`FEATURES` by name and team, counted from the JSON of a position: another reading."""
    game = known(np.array([state]))
    rules = Rules.from_dict(game["rules"])
    seats, teams = range(rules.players), range(rules.teams)
    team = [rules.team(seat) for seat in seats]
    courts, control = game["courts"], game["control"]
    regions = game["regions"]
    result = {name: [0.0] * rules.teams for name in NAMES}

    on_regions = np.sum([region["paladins"] for region in regions], axis=0)
    for clan in range(5):
        holder = control[clan]
        others = [max(courts[o][clan] for o in seats if o != seat) for seat in seats]
        if holder != NOBODY:
            mine = team[holder]
            lead = min(courts[holder][clan] - others[holder], 6)
            result["clans"][mine] += 1
            result["influence"][mine] += on_regions[clan]
            result["lead"][mine] += lead
            result["lead_paladins"][mine] += lead * on_regions[clan] / 10
            result["backing"][mine] += game["reserves"][holder][clan]
        for seat in seats:
            if holder != NOBODY and team[holder] == team[seat]:
                continue
            playable = min(game["reserves"][seat][clan], rules.dice)
            if courts[seat][clan] + playable > others[seat]:
                result["takeable"][team[seat]] += 1
                result["takeable_paladins"][team[seat]] += on_regions[clan]

    to_act = []
    if game["round"] > 0 and game["phase"] not in ("disc", "over"):
        place = game["order"].index(game["player"])
        deferred = rules.crown_choice == "deferred" and game["phase"] == "crown"
        acting = game["phase"] in ("place", "move") or deferred
        to_act = game["order"][place + (0 if acting else 1) :]
    for seat in to_act:
        result["turns_left"][team[seat]] += 1
    for index, here in enumerate(regions):
        steps = index or len(regions)
        powers = [
            sum(
                count
                for clan, count in enumerate(here["paladins"])
                if control[clan] != NOBODY and team[control[clan]] == t
            )
            + here["castles"] * (here["owner"] == t)
            for t in teams
        ]
        margins = [powers[t] - max(powers[o] for o in teams if o != t) for t in teams]
        strongest = [t for t in teams if margins[t] > 0]
        heir = strongest[0] if strongest else here["owner"]
        size = max(here["castles"], 1)
        if heir != NOBODY:
            result[f"ahead_{steps}" if steps <= 3 else "ahead_far"][heir] += size
        reach = [game["discs_played"][seat] for seat in to_act if team[seat] == heir]
        if heir != here["owner"] and steps <= max(reach, default=0):
            result["gain"][heir] = max(result["gain"][heir], size)
        for t in teams:
            result["hold" if here["owner"] == t else "attack"][t] += np.clip(margins[t], -3, 3)
    for t in teams:
        castles, to_win = game["castles"][t], CASTLES_TO_WIN[rules.players]
        result["castles"][t] = castles
        result["castles_squared"][t] = castles**2 / to_win
        result["last_blow"][t] = float(
            result["gain"][t] > 0 and castles + result["gain"][t] >= to_win
        )
    for seat in seats:
        result["highest"][team[seat]] += max(game["discs_in_hand"][seat], default=0)
        result["reserve"][team[seat]] += sum(game["reserves"][seat]) + game["crowns"][seat]
    return np.array([[result[name][t] for name in NAMES] for t in teams])


@pytest.mark.parametrize(
    "rules", [Rules(2), Rules(3), Rules(4, partners="adjacent"), Rules(2, "deferred")]
)
def test_features_are_what_a_plain_reading_counts(rules):
    states = middle_games(rules, 30)
    features = heuristic.features(states)
    for row in range(0, len(states), 3):
        wanted = counted(states[row])
        np.testing.assert_allclose(features[row, : len(wanted)], wanted, err_msg=str(NAMES))
        assert not features[row, len(wanted) :].any()


@every_number
def test_chances_sum_to_one_and_of_a_finished_game_say_who_won(players):
    teams = Rules(players).teams
    states = middle_games(Rules(players))
    chances = heuristic.chances(states)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances[:, :teams] > 0).all() and not chances[:, teams:].any()
    engine.forfeit(states)
    chances = heuristic.chances(states)
    losers = (engine.returns(states) < 0).any(axis=1)
    parts = (engine.returns(states) * (teams - 1) + 1) / teams
    for seat in range(players):
        team = states["team"][:, seat]
        won = chances[np.arange(len(states)), team]
        np.testing.assert_allclose(won, parts[:, seat], atol=1e-12)
    assert losers.all()


def test_weights_are_named_as_the_features(tmp_path, monkeypatch):
    path = Path(heuristic.__file__).with_name("weights.json")
    weights = json.loads(path.read_text())["weights"]
    for players in (2, 3, 4):
        assert heuristic.all_weights()[players].tolist() == list(weights[str(players)].values())
    weights["3"]["luck"] = 1.0
    (tmp_path / "weights.json").write_text(json.dumps({"weights": weights}))
    monkeypatch.setattr(heuristic, "__file__", str(tmp_path / "heuristic.py"))
    with pytest.raises(ValueError, match=r"weights.json: weights must be of .* got .*luck"):
        heuristic.all_weights.__wrapped__()


# ------------------------------------------------------------------------------------ plans


def positions_after_turns(game):
    """Every position that the player's turn can lead to, one legal action after the other."""
    result, open_ones = {}, [game]
    while open_ones:
        one = open_ones.pop()
        if int(one["phase"][0]) not in (PLACE, MOVE) or one["player"] != game["player"]:
            result[one.tobytes()] = one
            continue
        for action in engine.legal_actions(one):
            open_ones.append(after(one, [action]))
        open_ones = list({one.tobytes(): one for one in open_ones}.values())
    return result


@pytest.mark.parametrize("circle", ["wide", "narrow"])
def test_plans_of_any_width_are_all_that_a_turn_can_do_each_once(circle):
    if circle == "narrow":  # five steps come round a circle of four
        parts = (region(WHITE, 6, red=6), region(), region(BLACK, 7, blue=7), region())
        options = {"discs": [5, 4], "order": [1, 0], "round": 3, "spent": [1, 2]}
    else:
        parts, options = (), {"discs": [2, 1], "order": [1, 0]}
    game = position(
        *parts,
        courts=[paladins(red=2), paladins(red=1, blue=2)],
        reserves=[paladins(red=1, blue=2), paladins(green=2)],
        phase="place",
        placements_left=2,
        **options,
    )
    wanted = positions_after_turns(game)
    result, values = listed(game, "all")
    reached = [after(game, actions).tobytes() for actions in result]
    assert len(result) == len(set(map(tuple, result)))
    if circle == "wide":  # where regions merge, paladins of several may come together
        assert len(reached) == len(set(reached))
    assert set(reached) == set(wanted)
    assert values.tolist() == sorted(values, reverse=True)
    worth = heuristic.chances(np.concatenate([after(game, actions) for actions in result]))[:, 0]
    np.testing.assert_allclose(worth, 1 / (1 + np.exp(-values)))


PLANS = plans.PlanScratch.new()  # one for all: nothing may be left over from another position


@entry
def _value(states, team, weights, features, scores, values):
    for g in range(states.shape[0]):
        heuristic.write_scores(states[g], weights, features, scores)
        values[g] = heuristic.advantage(scores, team, int64(states[g]["teams"]))


def plain_plans(game, width):
    """Every plan in the order in which they are tried, as actions."""
    state = game[0]
    regions, left = int(state["regions"]), int(state["placements_left"])
    reserve = state["reserves"][state["player"]]
    stops = range(1, 1 + min(int(state["discs_played"][state["player"]]), regions))
    targets = range(1 + (len(stops) if width == "stop" else regions))
    pairs = list(itertools.product(np.flatnonzero(reserve).tolist(), targets))
    for placed in itertools.combinations_with_replacement(pairs, left):
        went = {target for _, target in placed if target}
        clans = np.bincount([clan for clan, _ in placed] or [0], minlength=5) if left else 0
        if (clans > reserve).any() or (width != "all" and len(went) > 1):
            continue
        for stop in stops:
            if width != "stop" or went <= {stop}:
                actions = [
                    region_action(clan, target % regions) if target else court_action(clan)
                    for clan, target in placed
                ]
                yield [*actions, move_action(stop)]


def plain_listing(game, width, weights):
    """All plans, their values and the positions after them, each played out; best first."""
    actions = np.array(list(plain_plans(game, width)))
    ends = np.repeat(game, len(actions))
    for step in actions.T:
        engine.step(ends, np.ascontiguousarray(step), roll=False)
    values, team = np.zeros(len(ends)), int(game["team"][0, game["player"][0]])
    _value(ends, team, weights, np.zeros((4, len(NAMES))), np.zeros(3), values)
    order = np.argsort(-values, kind="stable")
    return actions[order].tolist(), values[order], ends[order]


def check_listing(game, width, weights, most=7):
    """Plans are listed as if each was played out, to the last bit; returns the positions after."""
    wanted, worth, ends = plain_listing(game, width, weights)
    for longest in (len(wanted), most):
        result, values = np.zeros(longest, np.int64), np.zeros(longest)
        before = game.copy()
        count = _list(game, plans.WIDTHS.index(width), weights, PLANS, result, values)
        assert game.tobytes() == before.tobytes()
        assert count == min(len(wanted), longest)
        assert values[:count].tolist() == worth[:longest].tolist()
        assert [plans.actions_of(int(plan)) for plan in result[:count]] == wanted[:longest]
    return ends


def in_turns(states):
    return states[np.isin(states["phase"], (PLACE, MOVE))]


@settings(max_examples=40, deadline=None)
@given(rules, seeds, st.sampled_from(plans.WIDTHS), st.booleans())
def test_plans_are_listed_as_if_each_was_played_out(rules, seed, width, fitted):
    random = np.random.default_rng(seed)
    weights = heuristic.all_weights()[rules.players].copy()
    if not fitted:  # every feature counts, and rounding by as much as weights are large
        weights[:] = random.normal(size=len(weights)) * 10.0 ** random.integers(-6, 9)
    turns = in_turns(history(rules, seed, games=2, limit=300).reshape(-1))
    for game in turns[random.permutation(len(turns))[:4]]:
        one = np.array([game])
        if width == "all":  # to look at fewer
            one["placements_left"] = np.minimum(one["placements_left"], 2)
        check_listing(one, width, weights)


@pytest.mark.parametrize(
    "rules",
    [
        Rules(2),
        Rules(3),
        Rules(4),
        Rules(4, partners="adjacent"),
        Rules(2, "deferred", paladins_per_clan=200),
        Rules(3, "deferred"),
    ],
    ids=str,
)
def test_plans_are_listed_exactly_where_regions_merge_and_games_end(rules):
    """The last turns of games between good players: there most plans change owners."""
    states, streams = engine.new_games(rules, 12, seed=1), new_streams(1, 12)
    bot, seen = bots.make("planner"), []
    for _ in range(400):
        rows = np.flatnonzero(~engine.is_over(states))
        if not rows.size:
            break
        seen.append(states[rows].copy())
        drawn = streams[rows]
        engine.step(states, bot.act(states[rows], drawn), rows=rows)
        streams[rows] = drawn
    turns = in_turns(np.concatenate(seen))
    turns = turns[turns["placements_left"] == rules.dice]
    late = turns[np.argsort(turns["regions"], kind="stable")]
    weights = heuristic.all_weights()[rules.players].copy()
    merged, over, listed_plans = 0, 0, 0
    for game in late[:: max(1, len(late) // 40)]:
        ends = check_listing(np.array([game]), "stop", weights)
        listed_plans += len(ends)
        merged += (ends["regions"] < game["regions"]).sum()
        over += engine.is_over(ends).sum()
    for game in late[:4]:
        check_listing(np.array([game]), "one", weights)
    assert listed_plans > 4000 and merged > 400 and over > 20


@pytest.mark.parametrize("width", plans.WIDTHS)
def test_plans_are_listed_exactly_where_a_merged_region_may_go_to_another(width):
    """One red paladin wins the region ahead, which merges; only with more would it stay white's."""
    game = position(
        region(),
        region(),
        region(WHITE, 1, blue=4),
        region(BLACK, 1, blue=3),
        region(pink=1),
        region(red=1, blue=1),
        courts=[paladins(red=3), paladins(blue=3)],
        reserves=[paladins(red=3, green=2), paladins(blue=2)],
        phase="place",
        placements_left=3,
        discs=[2, 3],
        order=[0, 1],
    )
    ends = check_listing(game, width, heuristic.all_weights()[2].copy())
    merged = ends[ends["regions"] < game["regions"][0]]
    blacks = heuristic.features(merged)[:, 1, NAMES.index("ahead_far")]
    assert len(np.unique(blacks)) > 1


@given(st.lists(st.floats(-60, 60), min_size=3, max_size=3), st.integers(0, 2))
def test_the_bound_of_an_advantage_is_one(scores, team):
    for teams in (2, 3):
        if team < teams:
            value, most = np.zeros(1), np.zeros(1)
            _bound(np.array(scores), team, teams, value, most)
            assert value[0] <= most[0] <= value[0] + (0.15 if teams == 3 else 0)


@entry
def _bound(scores, team, teams, value, most):
    first, second = heuristic.rivals(team, teams)
    value[0] = heuristic.advantage(scores, team, teams)
    most[0] = heuristic.advantage_at_most(scores, team, first, second)


@given(st.lists(st.integers(0, 94), min_size=1, max_size=5))
def test_a_plan_is_its_actions(actions):
    packed = 0
    for place, action in enumerate(actions):
        packed = plans.pack(packed, action, place)
    assert plans.actions_of(packed) == actions
    assert plans.first_of(packed) == actions[0]
    assert plans.actions_of(plans.rest_of(packed)) == actions[1:]


# ------------------------------------------------------------------------------------ the planner


def decisions(game, bot="planner"):
    """What the bot plays until its turn is over, as actions."""
    bot, stream, made = bots.make(bot), new_streams(1, 1), []
    game = game.copy()
    player = game["player"][0]
    while int(game["phase"][0]) in (PLACE, MOVE) and game["player"][0] == player:
        made.append(int(bot.act(game, stream)[0]))
        play(game, made[-1])
    return made, game


SEARCHERS = ["planner", "mcts:sims=200", "mcts:sims=200,chance=explicit", "mcts:seconds=0.05"]
every_searcher = pytest.mark.parametrize("bot", SEARCHERS)


@every_searcher
def test_the_counterattack_of_figure_6_is_found(bot):
    """Two yellow paladins to the court; the third at C may be a pink one, which white has too."""
    made, game = decisions(figure_6(), bot)
    third = [action for action in made[:-1] if action != court_action(YELLOW)]
    assert third in ([region_action(YELLOW, 2)], [region_action(PINK, 2)])
    assert made[-1] == move_action(2)
    assert known(game)["castles"] == [5, 2]
    assert known(game)["control"][YELLOW] == WHITE


def won_in_one(players=2, **options):
    """White has one castle less than wins; two steps on, the red paladins are enough with one."""
    to_win = CASTLES_TO_WIN[players]
    return position(
        region(WHITE, to_win - 1, blue=to_win - 1),
        region(BLACK, pink=1),
        region(red=1, yellow=1),
        courts=[paladins(red=2, blue=2), paladins(yellow=2, pink=2)],
        reserves=[paladins(red=1, green=2, pink=1), paladins(yellow=2)],
        phase="place",
        placements_left=DICE[players] - 1,
        discs=[3, 4, 5, 2][:players],
        order=[0, 1, 2, 3][:players] if players < 4 else [3, 0, 1, 2],
        players=players,
        **options,
    )


@every_number
@every_searcher
def test_a_game_won_in_one_is_won(bot, players):
    _, game = decisions(won_in_one(players), bot)
    assert engine.is_over(game)[0]
    assert engine.returns(game)[0, 0] == 1


def defend_or_lose():
    """White has to go one step; then black, with nine castles, builds the tenth one step on.

    Unless white lays the red paladin there: two against two.
    """
    return position(
        region(WHITE, 4, red=4),
        region(yellow=1),
        region(red=1, blue=2),
        region(BLACK, 9, blue=7, pink=2, green=3, yellow=2),
        courts=[paladins(red=4), paladins(blue=4)],
        reserves=[paladins(red=1, pink=1, green=1), paladins(green=1)],
        phase="place",
        placements_left=1,
        discs=[1, 2],
        round=3,
        spent=[4, 5],
    )


@pytest.mark.parametrize("bot", ["planner:plans=one", *SEARCHERS[1:]])
def test_the_only_defence_is_found(bot):
    made, _ = decisions(defend_or_lose(), bot)
    assert made == [region_action(RED, 2), move_action(1)]
    for placed, lost in ((RED, False), (4, True)):
        game = after(defend_or_lose(), [region_action(placed, 2), move_action(1)])
        roll(game, BLUE, BLUE, BLUE)
        play(game, court_action(4), move_action(1))
        assert engine.is_over(game)[0] == lost


def first_or_never():
    """Whoever moves first joins the own regions, and with fewer than four the game ends."""
    return position(
        region(WHITE, 7, red=7),
        region(red=2),
        region(BLACK, 6, blue=6),
        region(blue=2),
        courts=[paladins(red=3), paladins(blue=3)],
        reserves=[paladins(green=1, pink=1, yellow=1), paladins(green=1, pink=1, yellow=1)],
        phase="disc",
        discs=[0, 0],
        order=[0, 1],
        round=3,
        spent=[2, 4],
    )


@every_searcher
def test_the_disc_that_moves_first_is_played_where_all_depends_on_it(bot):
    game = first_or_never()
    hand = known(game)["discs_in_hand"]
    assert hand == [[1, 3, 5], [1, 3, 5]]
    assert int(bots.make(bot).act(game, new_streams(1, 1))[0]) == disc_action(1)


@every_searcher
def test_a_crown_becomes_the_clan_that_wins_control(bot):
    """Red lies everywhere; white is one short of it and black has none in the reserve."""
    game = position(
        *[region(red=2) for _ in range(8)],
        courts=[paladins(red=2), paladins(red=2, blue=9, pink=9, green=9, yellow=9)],
        reserves=[paladins(blue=2, pink=2), paladins(blue=2, pink=2)],
        control=[BLACK] * 5,
        phase="crown",
        crowns=[1, 0],
        discs=[4, 3],
        order=[1, 0],
    )
    assert int(bots.make(bot).act(game, new_streams(1, 1))[0]) == crown_action(RED)


@every_number
def test_the_planner_plays_the_plan_it_values_most(players):
    weights = heuristic.all_weights()
    for game in turns_of(players, PLACE)[:10]:
        one = np.array([game])
        _, values = listed(one, "stop")
        _, end = decisions(one)
        team = int(end["team"][0, int(one["player"][0])])
        chance = heuristic.chances(end, weights.copy())[0, team]
        assert chance == pytest.approx(1 / (1 + np.exp(-values[0])), abs=1e-9)


@every_number
def test_planner_beats_greedy(players):
    from carolus_env import evaluation

    rules = Rules(players)
    pair = [bots.make("planner"), bots.make("greedy")]
    results = evaluation.play_games(evaluation.pairing_tables(rules, 60), pair, rules, seed=3)
    assert evaluation.pairing_result(("planner", "greedy"), results).win_rate[0] > 0.9


def test_a_planner_of_other_weights_plays_differently():
    states, castles = middle_games(Rules(2)), np.zeros((5, len(NAMES)))
    castles[:, NAMES.index("castles")] = 1
    fitted, other = (
        bot.act(states, new_streams(1, len(states)))
        for bot in (PlannerBot(), PlannerBot(weights=castles))
    )
    assert (fitted != other).mean() > 0.2
    assert {DISC, PLACE} <= set(states["phase"][fitted != other].tolist())
