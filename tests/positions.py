"""Positions to play from: set up by what matters, the rest filled up; the rulebook's figures.

The text and its figures show a few territories, two courts, some reserves; whatever else a
position needs is invented here and says nothing about the rules: the colour of a filler paladin,
the round, the discs that are not named.

White is team 0 and player 0, black is team 1 and player 1. The dice are given, never drawn.
"""

import numpy as np

from carolus_env import engine
from carolus_env.engine import chance
from carolus_env.engine.chance import new_streams
from carolus_env.engine.rules import CROWN_CHOICE, Rules, move_action
from carolus_env.records.position import from_bytes, from_dict, to_dict

RED, PINK, BLUE, YELLOW, GREEN = range(5)
WHITE, BLACK, GRAY = range(3)
NOBODY = -1
# A position of three players as `notation` writes it.
LINE = (
    "3 crown_choice=deferred | 7 | 1 place 2 | 3 | "
    "A2r3b2g1 p1 B1b4y1 C3r1p6y3g2 y1 A1r2g3 b1 y1g1 B2r2p2b2 r1 r10p10b11y12g13 | "
    "R2b1G3 P3B1 Y4 | r3p1b1y1g1+2 r2p2b1y1g1 r2p2b2y1g1+1 | 2:1/234 1:3/125 0:5/124 | "
    "00000000000000ff"
)
EACH_CLAN_THREE_TIMES = [clan for clan in range(5) for _ in range(3)]


def paladins(**of_each):
    """``paladins(red=2)`` is ``[2, 0, 0, 0, 0]``."""
    return [of_each.pop(name, 0) for name in ("red", "pink", "blue", "yellow", "green")]


def region(owner=NOBODY, size=1, **of_each):
    return {"owner": owner, "size": size, "paladins": paladins(**of_each)}


def position(
    *special,
    courts=(),
    reserves=(),
    control=None,
    discs=None,
    order=None,
    phase="move",
    player=0,
    placements_left=0,
    round=31,
    crowns=None,
    spent=(),
    **rules,
):
    """A game with these regions from the Emperor's on; the rest of it is filled up.

    ``discs`` are those on the table (0: not yet), ``spent`` the numbers that every player has
    played in earlier rounds. In round 31 the supply can have been empty before, so that reserves
    may be of any size. The other regions, and those given without paladins, get some of the
    clan that the circle has fewest of. Missing courts and reserves are empty.
    """
    rules = Rules(**rules)
    seats = range(rules.players)
    regions = [{**one, "paladins": list(one["paladins"])} for one in special]
    regions += [region() for _ in range(15 - sum(one["size"] for one in regions))]
    for one in regions:
        if not any(one["paladins"]):
            laid = np.sum([other["paladins"] for other in regions], axis=0)
            one["paladins"][laid.argmin()] = one["size"]
    number = 0
    for one in regions:
        one["castles"] = one["size"] if one["owner"] != NOBODY else 0
        one["territories"] = [number + k for k in range(one.pop("size"))]
        number += len(one["territories"])
    courts = [list(court) for court in courts] + [[0] * 5 for _ in seats[len(courts) :]]
    reserves = [list(own) for own in reserves] + [[0] * 5 for _ in seats[len(reserves) :]]
    if control is None:
        control = [leader([court[clan] for court in courts]) for clan in range(5)]
    used = [one["paladins"] for one in regions] + courts + reserves
    discs = list(discs or range(1, rules.players + 1))
    spent = spent or range(5, 5 - (round - 1) % 5, -1)
    hands = [[d for d in range(1, 6) if d != disc and d not in spent] for disc in discs]
    return from_dict(
        {
            "rules": rules.to_dict(),
            "round": round,
            "phase": phase,
            "player": player,
            "regions": regions,
            "courts": courts,
            "control": control,
            "reserves": reserves,
            "crowns": crowns or [0] * rules.players,
            "supply": [rules.paladins_per_clan - sum(row[c] for row in used) for c in range(5)],
            "discs_in_hand": hands,
            "discs_played": discs,
            "order": order or sorted(seats, key=discs.__getitem__),
            "placements_left": placements_left,
        }
    )


def leader(of_a_clan):
    """Who holds strictly more than everybody else; nobody if nobody does."""
    most = max(of_a_clan)
    return of_a_clan.index(most) if of_a_clan.count(most) == 1 else NOBODY


def play(game, *actions):
    """Decide, and stop at a roll."""
    for action in actions:
        engine.step(game, np.array([action]), roll=False)


def after(game, actions):
    """The position after these decisions, before the dice; the game stays as it is."""
    game = game.reshape(1).copy()
    play(game, *actions)
    return game


def exact_value(game, known, every_roll=True, crowns=None):
    """The payoffs of two players' best play of a game, by the engine's explicit chance alone.

    In the last round nobody plays what is rolled then, so one outcome may stand for all. The bot
    ``crowns`` chooses what crowns become, as inside the tree of a search.
    """
    key = game.tobytes()
    if key in known:
        return known[key]
    if engine.is_over(game)[0]:
        result = engine.returns(game)[0]
    elif chance.roll_due(game)[0]:
        faces, _, chances = chance.chance_outcomes(game["dice_due"][0])
        if game["round"][0] == game["max_rounds"][0] and not every_roll:
            faces, chances = faces[:1], [1.0]
        likelihood = {}
        for rolled, probability in zip(faces, chances, strict=True):
            after = game.copy()
            chance.apply_roll(after, rolled)
            data = after.tobytes()
            likelihood[data] = likelihood.get(data, 0.0) + probability
        values = [exact_value(from_bytes(data), known, every_roll, crowns) for data in likelihood]
        result = np.dot([*likelihood.values()], values)
    else:
        player, result = int(game["player"][0]), np.full(2, -2.0)
        asked = crowns is not None and game["phase"][0] == CROWN_CHOICE
        for action in crowns.act(game, new_streams(0, 1)) if asked else engine.legal_actions(game):
            after = game.copy()
            engine.step(after, np.array([action]), roll=False)
            value = exact_value(after, known, every_roll, crowns)
            result = max(result, value, key=lambda payoffs: payoffs[player])
    known[key] = result
    return result


def roll(game, *faces):
    chance.apply_roll(game, np.array(faces))


def known(game):
    return to_dict(game[0])


def legal(game):
    return engine.legal_actions(game).tolist()


def payoffs(game):
    return engine.returns(game)[0].tolist()


def emperor_stops_at(game, steps=1):
    """The region where he stops, settled, and the castles of the teams."""
    play(game, move_action(steps))
    state = known(game)
    return state["regions"][0], state["castles"]


def new_game(first_player=0, **rules):
    return engine.new_games(
        Rules(**rules), 1, territories=EACH_CLAN_THREE_TIMES, first_player=first_player, roll=False
    )


def set_up(*rolls, first_player=0, **rules):
    """A new game after these rolls of the set-up, at the first decision."""
    game = new_game(first_player, **rules)
    for faces in rolls:
        roll(game, *faces)
    return game


def figure_5(player=WHITE, **changes):
    """Courts as in the text; of the reserves it gives white 2 red and 3 yellow, black 3 red."""
    return position(
        *changes.pop("circle", ()),
        courts=[
            paladins(red=7, pink=8, blue=6, yellow=5, green=3),
            paladins(red=6, pink=5, blue=8, yellow=6, green=5),
        ],
        reserves=[
            paladins(red=2, yellow=3, pink=2),  # 2 pink are invented
            paladins(red=3, blue=2, green=2),  # and so are 2 blue and 2 green
        ],
        **{"phase": "place", "placements_left": 3, "round": 12, "spent": [5], **changes},
        player=player,
    )


def figure_6(player=WHITE, **changes):
    """Courts of figure 5. White has played disc 3, and the Emperor stands at A.

    The text gives the paladins at C and the castles: 6 for black with B, so A has 2 and C 3.
    The paladins at A, B and D are invented, as black's majority at B and white's at D ask.
    """
    circle = (
        region(BLACK, 2, blue=2),
        region(WHITE, 1, blue=1, green=1),
        region(BLACK, 3, yellow=3, green=2, blue=1, red=2, pink=1),
        region(WHITE, 1, red=1),
    )
    discs = [3, 4] if player == WHITE else [4, 3]
    return figure_5(player, circle=circle, discs=discs, **changes)
