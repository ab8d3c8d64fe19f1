"""The evaluation counts what it says, plans are all there is to do, and the planner sees them."""

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
    GREEN,
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
from strategies import every_number, history, rules, seeds
from test_bots import middle_games

from agents import fit_planner
from carolus_env import bots, engine, evaluation
from carolus_env.bots import PlannerBot
from carolus_env.engine.chance import new_streams
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
from carolus_env.planning import heuristic, plans
from carolus_env.system.arrays import allocate
from carolus_env.system.compiler import entry

NAMES = [feature.name for feature in heuristic.FEATURES]


@entry
def _list(states, width, weights, scratch, found, values):
    return plans.list_plans(states[0], width, weights, scratch, found, values)


def counted(state):
    """`FEATURES` by name and team, counted from the JSON of a position: another reading."""
    game = known(np.array([state]))
    rules = Rules.from_dict(game["rules"])
    seats, teams = range(rules.players), range(rules.teams)
    team = [rules.team(seat) for seat in seats]
    courts, control, regions = game["courts"], game["control"], game["regions"]
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
        deferred = rules.crown_choice == "deferred" and game["phase"] == "crown"
        acting = game["phase"] in ("place", "move") or deferred
        to_act = game["order"][game["order"].index(game["player"]) + (not acting) :]
    for seat in to_act:
        result["turns_left"][team[seat]] += 1
    for index, here in enumerate(regions):
        steps = index or len(regions)
        powers = [here["castles"] * (here["owner"] == t) for t in teams]
        for clan, count in enumerate(here["paladins"]):
            if control[clan] != NOBODY:
                powers[team[control[clan]]] += count
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
        castles, to_win, gain = game["castles"][t], CASTLES_TO_WIN[rules.players], result["gain"][t]
        result["castles"][t] = castles
        result["castles_squared"][t] = castles**2 / to_win
        result["last_blow"][t] = float(gain > 0 and castles + gain >= to_win)
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
    teams, states = Rules(players).teams, middle_games(Rules(players))
    chances = heuristic.chances(states)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert (chances[:, :teams] > 0).all() and not chances[:, teams:].any()
    engine.forfeit(states)
    won = np.take_along_axis(heuristic.chances(states), states["team"][:, :players].astype(int), 1)
    payoffs = engine.returns(states)
    np.testing.assert_allclose(won, (payoffs * (teams - 1) + 1) / teams, atol=1e-12)
    assert (payoffs < 0).any(axis=1).all()


def test_weights_of_other_names_than_the_features_are_refused(tmp_path, monkeypatch):
    weights = json.loads(Path(heuristic.__file__).with_name("weights.json").read_text())["weights"]
    for players in (2, 3, 4):
        assert heuristic.all_weights()[players].tolist() == list(weights[str(players)].values())
    weights["3"]["luck"] = 1.0
    (tmp_path / "weights.json").write_text(json.dumps({"weights": weights}))
    monkeypatch.setattr(heuristic, "__file__", str(tmp_path / "heuristic.py"))
    with pytest.raises(ValueError, match=r"weights.json: weights must be of .* got .*luck"):
        heuristic.all_weights.__wrapped__()


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
    parts, options = (), {"discs": [2, 1]}
    if circle == "narrow":  # five steps come round a circle of four
        parts = (region(WHITE, 6, red=6), region(), region(BLACK, 7, blue=7), region())
        options = {"discs": [5, 4], "round": 33, "spent": [1, 2]}
    game = position(
        *parts,
        courts=[paladins(red=2), paladins(red=1, blue=2)],
        reserves=[paladins(red=1, blue=2), paladins(green=2)],
        phase="place",
        placements_left=2,
        order=[1, 0],
        **options,
    )
    listed, values, ends = check_listing(game, "all", heuristic.all_weights()[2].copy())
    reached = [end.tobytes() for end in ends]
    assert len(listed) == len(set(map(tuple, listed)))
    if circle == "wide":  # where regions merge, paladins of several may come together
        assert len(reached) == len(set(reached))
    assert set(reached) == set(positions_after_turns(game))
    np.testing.assert_allclose(heuristic.chances(ends)[:, 0], 1 / (1 + np.exp(-values)))


PLANS = allocate(plans.PlanScratch)  # one for all: nothing may be left over from another position


@entry
def _value(states, team, weights, features, scores, values):
    for g in range(states.shape[0]):
        heuristic.write_scores(states[g], weights, features, scores)
        values[g] = heuristic.advantage(scores, team, int64(states[g]["teams"]))


def plain_plans(game, width):
    """Every plan in the order in which they are tried, as actions."""
    state = game[0]
    regions, left = int(state["regions"]), int(state["placements_left"])
    reserve = state["reserves"][state["player"]].tolist()
    stops = range(1, 1 + min(int(state["discs_played"][state["player"]]), regions))
    targets = range(1 + (len(stops) if width == "stop" else regions))
    pairs = list(itertools.product(np.flatnonzero(reserve).tolist(), targets))
    for placed in itertools.combinations_with_replacement(pairs, left):
        went = {target for _, target in placed if target}
        if width != "all" and len(went) > 1:
            continue
        clans = [clan for clan, _ in placed]
        if any(clans.count(clan) > reserve[clan] for clan in clans):
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
    """Plans are listed as if each was played out, to the last bit; returns `plain_listing`."""
    wanted, worth, ends = plain_listing(game, width, weights)
    for longest in (len(wanted), most):
        result, values = np.zeros(longest, np.int64), np.zeros(longest)
        before = game.copy()
        count = _list(game, plans.WIDTHS.index(width), weights, PLANS, result, values)
        assert game.tobytes() == before.tobytes()
        assert count == min(len(wanted), longest)
        assert values[:count].tolist() == worth[:longest].tolist()
        assert [plans.actions_of(int(plan)) for plan in result[:count]] == wanted[:longest]
    return wanted, worth, ends


@settings(max_examples=40, deadline=None)
@given(rules, seeds, st.sampled_from(plans.WIDTHS), st.booleans())
def test_plans_are_listed_as_if_each_was_played_out(rules, seed, width, fitted):
    random = np.random.default_rng(seed)
    weights = heuristic.all_weights()[rules.players].copy()
    if not fitted:  # every feature counts, and rounding by as much as weights are large
        weights[:] = random.normal(size=len(weights)) * 10.0 ** random.integers(-6, 9)
    states = history(rules, seed, games=2, limit=300).reshape(-1)
    turns = states[np.isin(states["phase"], (PLACE, MOVE))]
    for game in turns[random.permutation(len(turns))[:4]].reshape(-1, 1):
        if width == "all":  # to look at fewer
            game["placements_left"] = np.minimum(game["placements_left"], 2)
        check_listing(game, width, weights)


@pytest.mark.parametrize(
    "rules",
    [
        *(Rules(2), Rules(3), Rules(4), Rules(4, partners="adjacent"), Rules(3, "deferred")),
        Rules(2, "deferred", paladins_per_clan=200),
    ],
    ids=str,
)
def test_plans_are_listed_exactly_where_regions_merge_and_games_end(rules):
    """The last turns of games between good players: there most plans change owners."""
    states, streams = engine.new_games(rules, 12, seed=1), new_streams(1, 12)
    bot, seen = bots.make("planner"), []
    while len(states):
        seen.append(states.copy())
        engine.step(states, bot.act(states, streams))
        going = ~engine.is_over(states)
        states, streams = states[going].copy(), streams[going].copy()
    turns = np.concatenate(seen)
    turns = turns[np.isin(turns["phase"], (PLACE, MOVE)) & (turns["placements_left"] == rules.dice)]
    late = turns[np.argsort(turns["regions"], kind="stable")].reshape(-1, 1)
    weights = heuristic.all_weights()[rules.players].copy()
    for game in late[:4]:
        check_listing(game, "one", weights)
    ends, merged = [], 0
    for game in late[:: max(1, len(late) // 40)]:
        ends.append(check_listing(game, "stop", weights)[2])
        merged += (ends[-1]["regions"] < game["regions"]).sum()
    ends = np.concatenate(ends)
    assert len(ends) > 4000 and merged > 400 and engine.is_over(ends).sum() > 20


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
    *_, ends = check_listing(game, width, heuristic.all_weights()[2].copy())
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
    assert plans.actions_of(-packed) == [], "it ends"


def decisions(game, bot="planner"):
    """What the bot plays until its turn, or its disc or crown, is over; and the game after it."""
    bot, stream, made, game = bots.make(bot), new_streams(1, 1), [], game.copy()
    phase, player = game["phase"][0], game["player"][0]
    while not made or (game["phase"][0] in (PLACE, MOVE) and phase in (PLACE, MOVE)):
        if game["player"][0] != player:
            break
        made.append(int(bot.act(game, stream)[0]))
        play(game, made[-1])
    return made, game


SEARCHERS = ["planner", "mcts:sims=200", "mcts:seconds=0.05"]
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


@every_number
@every_searcher
def test_a_game_won_in_one_is_won(bot, players):
    """White has one castle less than wins; two steps on, the red paladins are enough with one."""
    to_win = CASTLES_TO_WIN[players]
    game = position(
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
    )
    _, game = decisions(game, bot)
    assert engine.is_over(game)[0]
    assert engine.returns(game)[0, 0] == 1


@pytest.mark.parametrize("bot", ["planner:plans=one", *SEARCHERS[1:]])
def test_the_only_defence_is_found(bot):
    """White has to go one step; then black, with nine castles, builds the tenth one step on.

    Unless white lays the red paladin there: two against two.
    """
    game = position(
        *(region(WHITE, 4, red=4), region(yellow=1), region(red=1, blue=2)),
        region(BLACK, 9, blue=7, pink=2, green=3, yellow=2),
        courts=[paladins(red=4), paladins(blue=4)],
        reserves=[paladins(red=1, pink=1, green=1), paladins(green=1)],
        phase="place",
        placements_left=1,
        discs=[1, 2],
        round=33,
        spent=[4, 5],
    )
    made, _ = decisions(game, bot)
    assert made == [region_action(RED, 2), move_action(1)]
    for placed, lost in ((RED, False), (GREEN, True)):
        end = after(game, [region_action(placed, 2), move_action(1)])
        roll(end, BLUE, BLUE, BLUE)
        play(end, court_action(GREEN), move_action(1))
        assert engine.is_over(end)[0] == lost


@every_searcher
def test_the_disc_that_moves_first_and_the_crown_that_wins_control_are_chosen(bot):
    """Whoever moves first joins the own regions, and with fewer than four the game ends.

    Disc 3 wins, too: black may then move first, but not far enough. Red lies everywhere; white is
    one short of it and black has none in the reserve.
    """
    game = position(
        *(region(WHITE, 7, red=7), region(red=2), region(BLACK, 6, blue=6), region(blue=2)),
        courts=[paladins(red=3), paladins(blue=3)],
        reserves=[paladins(green=1, pink=1, yellow=1), paladins(green=1, pink=1, yellow=1)],
        phase="disc",
        discs=[0, 0],
        order=[0, 1],
        round=33,
        spent=[2, 4],
    )
    assert known(game)["discs_in_hand"] == [[1, 3, 5], [1, 3, 5]]
    assert decisions(game, bot)[0] in ([disc_action(1)], [disc_action(3)])
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
    assert decisions(game, bot)[0] == [crown_action(RED)]


@every_number
def test_the_planner_plays_the_plan_it_values_most(players):
    states = middle_games(Rules(players), 60)
    for game in states[states["phase"] == PLACE][:10].reshape(-1, 1):
        _, values, _ = plain_listing(game, "stop", heuristic.all_weights()[players].copy())
        _, end = decisions(game)
        team = int(end["team"][0, int(game["player"][0])])
        chance = heuristic.chances(end)[0, team]
        assert chance == pytest.approx(1 / (1 + np.exp(-values[0])), abs=1e-9)


@every_number
def test_planner_beats_greedy(players):
    pair = bots.make("planner"), bots.make("greedy")
    result = evaluation.play_pairing(pair, Rules(players), 60, seed=3)
    assert result.win_rate[0] > 0.9


def test_a_planner_of_other_weights_plays_differently():
    states, castles = middle_games(Rules(2)), np.zeros((5, len(NAMES)))
    castles[:, NAMES.index("castles")] = 1
    planners, streams = (PlannerBot(), PlannerBot(weights=castles)), new_streams(1, len(states))
    fitted, other = (bot.act(states, streams) for bot in planners)
    assert (fitted != other).mean() > 0.2
    assert {DISC, PLACE} <= set(states["phase"][fitted != other].tolist())


@pytest.mark.parametrize("teams", [2, 3])
def test_the_fit_recovers_the_weights_that_made_the_results(teams):
    random = np.random.default_rng(teams)
    weights = np.array([0.8, -0.5, 0.0, 0.2])
    features = random.normal(size=(20_000, teams, 4)) * [1, 2, 1, 5]
    scores = features @ weights
    winners = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    shares = np.eye(teams)[winners]
    result, loss = fit_planner.fit(
        fit_planner.Positions(features.astype(np.float32), shares.astype(np.float32))
    )
    np.testing.assert_allclose(result, weights, atol=0.04)
    assert 0 < loss < np.log(teams)


def test_a_feature_that_is_equal_for_all_teams_has_no_weight():
    features = np.ones((100, 2, 3), np.float32)
    features[:, 0, 1] = 2
    shares = np.tile(np.array([0.75, 0.25], np.float32), (100, 1))
    result, _ = fit_planner.fit(fit_planner.Positions(features, shares))
    np.testing.assert_allclose(result, [0, np.log(3), 0], atol=0.05)
    assert result[0] == result[2] == 0


@pytest.mark.parametrize("players", [2, 3])
def test_games_give_positions_and_their_winners(players):
    rules, weights = Rules(players=players), heuristic.all_weights().copy()
    features, shares = fit_planner.play(rules, [weights, weights], 1, range(4))
    assert features.shape == (len(shares), rules.teams, len(heuristic.FEATURES))
    assert shares.shape == (len(features), rules.teams)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert len(features) > 4 * players * 5
    again, _ = fit_planner.play(rules, [weights, weights], 1, range(4))
    assert again.tobytes() == features.tobytes()


def test_the_script_prints_the_weights(capsys):
    words = "--players 2 --games 4 --rounds 1 --match-games 2"
    assert fit_planner.main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "2 players, fit 1: " in printed
    assert all(feature.name in printed for feature in heuristic.FEATURES)
    assert "against greedy: " in printed


def test_weights_of_any_size_give_the_same_choices_and_those_without_a_sum_are_refused():
    states, fitted = middle_games(Rules(2), 4), heuristic.all_weights()
    streams = new_streams(1, len(states))
    chosen = [PlannerBot(weights=k * fitted).act(states, streams).tolist() for k in (1, 1e12)]
    assert chosen[0] == chosen[1]
    for wrong in (np.nan, np.inf, 1e300):
        with pytest.raises(ValueError, match=r"weights must be of size 1e.100 at most"):
            PlannerBot(weights=np.where(fitted == fitted.max(), wrong, fitted))
