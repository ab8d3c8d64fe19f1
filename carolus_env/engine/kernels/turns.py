"""The course of a game: set-up, opening phase, action phase, rounds, the end.

A game stops at each decision and at each roll (``phase`` says which). `play` carries out a
decision, `take_roll` a roll; both continue until the next decision or roll is due.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from carolus_env.engine import rules
from carolus_env.engine.kernels import courts, generator, legal
from carolus_env.engine.kernels.regions import region_at, settle_region
from carolus_env.system.arrays import F32, F64, U8, U64, Bits, Int, int64
from carolus_env.system.compiler import inlined, kernel

ALL_DISCS = (1 << rules.DISCS) - 1

# Dice are the low digits, to base 6, of one random number below the largest multiple of 6^9 that
# 64 bits hold: exactly uniform for up to nine dice.
_FAIR_LIMIT = np.uint64((1 << 64) // rules.FACES**9 * rules.FACES**9 - 1)
_SIDES = np.uint64(rules.FACES)

# ------------------------------------------------------------------------------------ set-up


@kernel
def draw(s: np.void) -> Bits:
    """Draw 64 random bits from the game's own generator."""
    s["generator"] = generator.step(s["generator"])
    return generator.mix(s["generator"])


@kernel
def lay_out(s: np.void) -> None:
    """Place one paladin on each territory, of the clan in ``region_first``, from the supply."""
    s["regions"] = rules.TERRITORIES
    s["emperor"] = 0
    for clan in range(rules.CLANS):
        s["supply"][clan] = s["paladins_per_clan"] - rules.PALADINS_LAID_OUT
    for territory in range(rules.TERRITORIES):
        for clan in range(rules.CLANS):
            s["region_paladins"][clan, territory] = s["region_first"][territory] == clan
        s["region_first"][territory] = territory
        s["region_owner"][territory] = rules.NOBODY
        s["region_castles"][territory] = 0


@kernel
def shuffle_territories(s: np.void) -> None:
    """Write three paladins of each clan in random order into ``region_first``, for `lay_out`."""
    clans = s["region_first"]
    for territory in range(rules.TERRITORIES):
        clans[territory] = territory // rules.PALADINS_LAID_OUT
    for last in range(rules.TERRITORIES - 1, 0, -1):
        other = generator.below(draw(s), last + 1)
        swapped = clans[last]
        clans[last] = clans[other]
        clans[other] = swapped


@kernel
def seat_players(s: np.void, first_player: Int) -> None:
    """Set the opening order of round 1 and of the set-up: clockwise from the first player.

    A negative one is drawn.
    """
    players = int64(s["players"])
    if first_player < 0:
        first_player = generator.below(draw(s), players)
    for seat in range(players):
        s["order"][seat] = (first_player + seat) % players
        s["discs_in_hand"][seat] = ALL_DISCS
    for clan in range(rules.CLANS):
        s["control"][clan] = rules.NOBODY
    s["round"] = 0
    s["turn"] = 0
    await_roll(s)


@inlined
def write_seats(s: np.void, player: Any, seats: Any) -> None:
    """Write the seats in ``player``'s order: its own, then clockwise; a partner comes third."""
    players = int64(s["players"])
    if players < rules.MAX_PLAYERS or s["partners_adjacent"] == 0:
        for role in range(players):
            seats[role] = (player + role) % players
        return
    pair = player & 2
    seats[0], seats[2] = player, player ^ 1
    seats[1], seats[3] = 2 - pair, 3 - pair


@kernel
def set_up(s: np.void) -> None:
    """Play the set-up of a blank game by its own generator, up to the first decision."""
    shuffle_territories(s)
    lay_out(s)
    seat_players(s, rules.NOBODY)
    roll_on(s)


# ------------------------------------------------------------------------------------ rolling


@kernel
def await_roll(s: np.void) -> None:
    """Roll for the player to move: the whole reserve in the set-up, else one turn's dice."""
    players = int64(s["players"])
    s["player"] = s["order"][s["turn"]]
    s["phase"] = rules.ROLL
    s["dice_due"] = rules.RESERVE[players] if s["round"] == 0 else rules.DICE[players]


@kernel
def draw_dice(s: np.void) -> Bits:
    """Draw a random number whose lowest digits to base 6 are fair dice."""
    number = draw(s)
    while number > _FAIR_LIMIT:
        number = draw(s)
    return number


@kernel
def roll_dice(s: np.void) -> None:
    """Roll the dice that are due by the game's own generator, and take what they show."""
    number = draw_dice(s)
    player = int64(s["player"])
    for _ in range(int64(s["dice_due"])):
        courts.take_face(s, player, int64(number % _SIDES))
        number = number // _SIDES
    decide_rolled_crowns(s)


@kernel
def draw_faces(s: np.void, faces: U8, row: Int) -> None:
    """Write what `roll_dice` would roll into ``faces[row]``; nothing is taken."""
    number = draw_dice(s)
    for die in range(int64(s["dice_due"])):
        faces[row, die] = number % _SIDES
        number = number // _SIDES


@kernel
def take_roll(s: np.void, faces: U8, row: Int) -> None:
    """Take the dice of ``faces[row]``, one face each. Their order never matters."""
    player = int64(s["player"])
    for die in range(int64(s["dice_due"])):
        courts.take_face(s, player, int64(faces[row, die]))
    decide_rolled_crowns(s)


@kernel
def decide_rolled_crowns(s: np.void) -> None:
    """Take the dice; decide crowns now unless the option defers them."""
    s["dice_due"] = 0
    if s["crown_deferred"] == 1 or not crown_is_due(s):
        end_turn(s)


@kernel
def crown_is_due(s: np.void) -> bool:
    """Ask the player for a crown's clan; crowns that can take no clan at all are lost."""
    player = int64(s["player"])
    if s["crowns"][player] == 0:
        return False
    if legal.clans_to_take(s) == 0:
        s["crowns"][player] = 0
        return False
    s["phase"] = rules.CROWN_CHOICE
    return True


@kernel
def decide_crown(s: np.void, clan: Int) -> None:
    """Take a paladin of the clan for a crown; after the last crown the game goes on."""
    player = int64(s["player"])
    s["crowns"][player] -= 1
    courts.take_paladin(s, player, clan)
    if not crown_is_due(s):
        if s["crown_deferred"] == 1:
            begin_placing(s)
        else:
            end_turn(s)


# ------------------------------------------------------------------------------------ opening phase


@kernel
def begin_round(s: np.void) -> None:
    """Make the last round's action order the next round's opening order."""
    s["round"] += 1
    for seat in range(int64(s["players"])):
        s["discs_played"][seat] = 0
    s["turn"] = 0
    s["player"] = s["order"][0]
    s["phase"] = rules.DISC


@kernel
def play_disc(s: np.void, number: Int) -> None:
    """Play the disc; after the last player's the turns begin in the order of the discs."""
    player = int64(s["player"])
    s["discs_in_hand"][player] = int64(s["discs_in_hand"][player]) & ~(1 << (number - 1))
    s["discs_played"][player] = number
    s["turn"] += 1
    if s["turn"] < s["players"]:
        s["player"] = s["order"][s["turn"]]
    else:
        sort_order(s)
        s["turn"] = 0
        begin_turn(s)


@kernel
def sort_order(s: np.void) -> None:
    """Sort by disc: lower number first; of two equal numbers, the one played earlier."""
    players = int64(s["players"])
    seats = 0  # in action order, eight bits each
    for place in range(players):
        disc = int64(s["discs_played"][s["order"][place]])
        before = 0
        for other in range(players):
            number = int64(s["discs_played"][s["order"][other]])
            before += int64(number < disc) | (int64(number == disc) & int64(other < place))
        seats |= int64(s["order"][place]) << (8 * before)
    for place in range(players):
        s["order"][place] = (seats >> (8 * place)) & 255


# ------------------------------------------------------------------------------------ action phase


@kernel
def begin_turn(s: np.void) -> None:
    """Start the turn of the next player in action order, with its deferred crowns."""
    s["player"] = s["order"][s["turn"]]
    if s["crown_deferred"] == 0 or not crown_is_due(s):
        begin_placing(s)


@kernel
def begin_placing(s: np.void) -> None:
    """Let the player place as many paladins as the rules say, or as the reserve holds."""
    paladins = min(rules.DICE[int64(s["players"])], courts.reserve_size(s, int64(s["player"])))
    s["placements_left"] = paladins
    s["phase"] = rules.PLACE if paladins > 0 else rules.MOVE


@kernel
def place_paladin(s: np.void, clan: Int, destination: Int) -> None:
    """Place it in the court (destination 0), or on region destination - 1 from the Emperor's."""
    player = int64(s["player"])
    s["reserves"][player, clan] -= 1
    if destination == 0:
        courts.place_in_court(s, player, clan)
    else:
        s["region_paladins"][clan, region_at(s, destination - 1)] += 1
    remaining = int64(s["placements_left"]) - 1
    s["placements_left"] = remaining
    s["phase"] = rules.PLACE if remaining > 0 else rules.MOVE


@kernel
def move_emperor(s: np.void, steps: Int) -> None:
    """Move, settle the region where he stops, and roll unless that ended the game."""
    s["emperor"] = region_at(s, steps)
    if settle_region(s):
        team = int64(s["region_owner"][s["emperor"]])
        if s["castles"][team] >= rules.CASTLES_TO_WIN[int64(s["players"])]:
            end_game(s, rules.BY_CASTLES, 1 << team)
            return
        if s["regions"] < rules.MIN_REGIONS:
            end_game(s, rules.BY_REGIONS, teams_with_most_castles(s))
            return
    await_roll(s)


@kernel
def end_turn(s: np.void) -> None:
    """Let the next player roll (set-up) or act; after the last one the round is complete."""
    s["turn"] += 1
    if s["turn"] < s["players"]:
        if s["round"] == 0:
            await_roll(s)
        else:
            begin_turn(s)
        return
    if s["round"] > 0 and s["round"] % rules.DISCS == 0:
        for seat in range(int64(s["players"])):
            s["discs_in_hand"][seat] = ALL_DISCS
    if s["round"] > 0 and s["round"] == s["max_rounds"]:
        end_game(s, rules.BY_MAX_ROUNDS, 0)
    else:
        begin_round(s)


@kernel
def acts_this_round(s: np.void, place: Int) -> bool:
    """Return whether the player at ``place`` in the order still has an action turn this round."""
    phase = s["phase"]
    if s["round"] == 0 or phase in (rules.DISC, rules.OVER):
        return False
    deferred = phase == rules.CROWN_CHOICE and s["crown_deferred"] == 1
    own_turn = deferred or phase in (rules.PLACE, rules.MOVE)
    return place >= int64(s["turn"]) + (0 if own_turn else 1)


# ------------------------------------------------------------------------------------ the end


@kernel
def teams_with_most_castles(s: np.void) -> Int:
    """Return the bits of the teams with the most castles in play."""
    most, teams = 0, 0
    for team in range(int64(s["teams"])):
        castles = int64(s["castles"][team])
        if castles > most:
            most, teams = castles, 0
        if castles == most:
            teams |= 1 << team
    return teams


@kernel
def end_game(s: np.void, reason: Int, winners: Int) -> None:
    """End the game; ``winners`` has a bit for each team."""
    s["phase"] = rules.OVER
    s["reason"] = reason
    s["winners"] = winners
    s["player"] = 0
    s["turn"] = 0
    s["placements_left"] = 0
    s["dice_due"] = 0


@kernel
def forfeit(s: np.void) -> None:
    """Let the team to move lose; the others share the win. Not a rule: an environment's option."""
    loser = int64(s["team"][s["player"]])
    end_game(s, rules.BY_FORFEIT, ((1 << int64(s["teams"])) - 1) & ~(1 << loser))


@kernel
def sharing_teams(s: np.void) -> Int:
    """Return the number of teams that have won or share the win."""
    winners = int64(s["winners"])
    return (winners & 1) + (winners >> 1 & 1) + (winners >> 2 & 1)


@kernel
def team_win_share(s: np.void, team: Int) -> float:
    """Return the win share of a team; where nobody has won, all teams have the same."""
    sharing = sharing_teams(s)
    if sharing == 0:
        return 1.0 / int64(s["teams"])
    return (int64(s["winners"]) >> team & 1) / sharing


@kernel
def payoff(s: np.void, seat: Int) -> float:
    """Return (n s - 1) / (n - 1), s the win share of the player's team and n the teams.

    In whole numbers up to one division, which every processor rounds in the same way.
    """
    teams, sharing = int64(s["teams"]), sharing_teams(s)
    if sharing == 0:
        return 0.0
    wins = int64(s["winners"]) >> int64(s["team"][seat]) & 1
    return (teams * wins - sharing) / (sharing * (teams - 1))


@kernel
def add_returns(s: np.void, returns: F64 | F32, row: Int) -> None:
    """Add the payoff of each player to what is there, as far as there are columns."""
    for seat in range(min(int64(s["players"]), returns.shape[1])):
        returns[row, seat] += payoff(s, seat)


# ------------------------------------------------------------------------------------ playing on


@kernel
def play(s: np.void, action: Int) -> None:
    """Carry out a legal action, of which `rules.action_parts` has the meaning.

    Stops at the next decision, roll, or the end.
    """
    if action >= rules.FIRST_PLACE:
        placed = action - rules.FIRST_PLACE
        place_paladin(s, placed // rules.DESTINATIONS, placed % rules.DESTINATIONS)
    elif action >= rules.FIRST_MOVE:
        move_emperor(s, action - rules.FIRST_MOVE + 1)
    elif action >= rules.FIRST_CROWN:
        decide_crown(s, action - rules.FIRST_CROWN)
    else:
        play_disc(s, action - rules.FIRST_DISC + 1)


@kernel
def roll_on(s: np.void) -> None:
    """Roll by the game's own generator until a decision is due or the game is over."""
    while s["phase"] == rules.ROLL:
        roll_dice(s)


@kernel
def roll_dealt(s: np.void, dice: U64, row: Int) -> None:
    """Do as `roll_on` where each seat rolls by a separate generator, ``dice[row, seat]``.

    The game's own generator, from which a player could predict rolls, is set to 0.
    """
    while s["phase"] == rules.ROLL:
        seat = int64(s["player"])
        s["generator"] = dice[row, seat]
        roll_dice(s)
        dice[row, seat] = s["generator"]
    s["generator"] = 0
