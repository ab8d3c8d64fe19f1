"""The tests' independent oracle: a slow, plain reading of Carolus Magnus.

Written from the rulebook and docs/rules.md only, in the standard library only. The fast engine is
compared against it, so nothing here is clever: every small function is one phrase of the rules.

``ReferenceGame`` plays a game from given chance results. ``legal_from_state`` derives the legal
actions from a game record's ``state`` object alone.
"""

from dataclasses import dataclass

TERRITORIES = 15
CLANS = range(5)
CROWN = 5  # the die's sixth face
NOBODY = -1

# Action numbers (docs/rules.md, "Actions").
FIRST_DISC = 0  # disc d is action d - 1
FIRST_CROWN = 5
FIRST_MOVE = 10  # n steps are action 9 + n
FIRST_PLACE = 15
PLACES_PER_CLAN = 16  # the own court, then at most 15 regions

# By number of players: the reserve, the dice (= paladins a turn), the castles that win.
SIZES = {2: (7, 3, 10), 3: (9, 4, 8), 4: (7, 3, 10)}

FEWEST_REGIONS = 4  # the game ends when fewer than this many are left
ROUNDS_PER_HAND = 5  # after as many rounds everybody takes the discs back


@dataclass
class Region:
    """One territory, or several merged ones: they count as one step and are settled as one."""

    territories: list[int]  # clockwise
    paladins: list[int]  # per clan
    owner: int = NOBODY  # the team whose castles stand here
    castles: int = 0


class ReferenceGame:
    """One game, driven by chance results (`roll`) and decisions (`play`) given from outside.

    `phase` is "crown", "disc", "place" or "move" while a decision is due, "roll" while dice are
    due, and "over" in the end. `player` is the seat that rolls or decides (None at the end).
    """

    def __init__(self, rules: dict, territories: list[int], first_player: int) -> None:
        self.players: int = rules["players"]
        self.deferred: bool = rules["crown_choice"] == "deferred"
        self.max_rounds: int | None = rules["max_rounds"]
        self.reserve_size, self.dice, self.castles_to_win = SIZES[self.players]
        self.rules = rules
        self.team = [team_of(player, rules) for player in range(self.players)]
        self.teams = range(max(self.team) + 1)

        # The circle, clockwise from the region where the Emperor stands: circle[0] is his.
        self.circle = [
            Region([number], [int(clan == c) for c in CLANS])
            for number, clan in enumerate(territories)
        ]
        self.supply = [rules["paladins_per_clan"] - 3 for _ in CLANS]
        self.courts = [[0 for _ in CLANS] for _ in range(self.players)]
        self.reserves = [[0 for _ in CLANS] for _ in range(self.players)]
        self.crowns = [0] * self.players  # not yet decided
        self.control = [NOBODY for _ in CLANS]
        self.discs_in_hand = [[1, 2, 3, 4, 5] for _ in range(self.players)]
        self.discs_played = [0] * self.players
        self.placements_left = 0
        self.round = 0  # rounds begun
        self.result: dict | None = None  # as a record has it

        # The order of the present rolls, discs or action turns, and how many of them are done.
        self.order = [(first_player + i) % self.players for i in range(self.players)]
        self.done = 0
        self.opening_order = self.order
        self.player: int | None
        self.phase: str
        self.dice_due: int
        self._dice_are_due(self.reserve_size)

    # ------------------------------------------------------------------ what a driver asks

    def legal(self) -> list[int]:
        """The legal actions, ascending; none while dice are due and after the end."""
        return legal_from_state(self.state(), self.rules)

    def roll(self, faces: list[int]) -> None:
        """The dice that are due show these faces (clans 0-4, 5 for a crown)."""
        self.dice_due = 0
        for face in faces:
            if face != CROWN and self._can_be_taken(face):
                self._take(face)
            else:  # a colour that cannot be taken counts as a crown
                self.crowns[self.player] += 1
        if self.deferred:
            self._roll_is_finished()  # its crowns wait for the owner's next action turn
        else:
            self._decide_next_crown()

    def play(self, action: int) -> None:
        """The player to move takes this legal action."""
        if self.phase == "disc":
            self._play_disc(action - FIRST_DISC + 1)
        elif self.phase == "crown":
            self.crowns[self.player] -= 1
            self._take(action - FIRST_CROWN)
            self._decide_next_crown()
        elif self.phase == "place":
            clan, place = divmod(action - FIRST_PLACE, PLACES_PER_CLAN)
            self._play_paladin(clan, place)
        else:
            self._move_emperor(action - FIRST_MOVE + 1)

    def state(self) -> dict:
        """The record's `state` object, in fresh lists.

        The record has it just before a decision; at other times `phase` is "roll" or "over".
        """
        return {
            "round": self.round,
            "phase": self.phase,
            "player": self.player,
            "regions": [
                {
                    "territories": list(region.territories),
                    "paladins": list(region.paladins),
                    "owner": region.owner,
                    "castles": region.castles,
                }
                for region in self.circle
            ],
            "courts": [list(court) for court in self.courts],
            "control": list(self.control),
            "reserves": [list(reserve) for reserve in self.reserves],
            "crowns": list(self.crowns),
            "supply": list(self.supply),
            "discs_in_hand": [list(hand) for hand in self.discs_in_hand],
            "discs_played": list(self.discs_played),
            "castles": [self._castles_in_play(team) for team in self.teams],
            "placements_left": self.placements_left,
        }

    # ------------------------------------------------------------------ dice, crowns, supply

    def _dice_are_due(self, dice: int) -> None:
        """The next player in order throws (set-up), or the present one does (replenish)."""
        self.player = self.order[self.done]
        self.phase = "roll"
        self.dice_due = dice

    def _can_be_taken(self, clan: int) -> bool:
        """The supply holds at least one of the clan, or every court does."""
        return self.supply[clan] > 0 or all(court[clan] > 0 for court in self.courts)

    def _take(self, clan: int) -> None:
        """A paladin goes from the supply to the reserve of the player whose dice these are."""
        if self.supply[clan] == 0:
            self._courts_return(clan)
        self.supply[clan] -= 1
        self.reserves[self.player][clan] += 1

    def _courts_return(self, clan: int) -> None:
        """Every court returns the same number: as many as the court with the fewest holds."""
        number = min(court[clan] for court in self.courts)
        for court in self.courts:
            court[clan] -= number
            self.supply[clan] += number

    def _decide_next_crown(self) -> None:
        """Ask for the player's next crown; with none (left), go on to what comes after crowns."""
        if self.crowns[self.player] > 0:
            if any(self._can_be_taken(clan) for clan in CLANS):
                self.phase = "crown"
                return
            # No clan can be taken. This crown is lost, and so are the others: losing one
            # returns nothing to the supply.
            self.crowns[self.player] = 0
        if self.deferred:  # deferred crowns are decided before playing paladins
            self._start_playing_paladins()
        else:  # crowns decided on the roll end it
            self._roll_is_finished()

    def _roll_is_finished(self) -> None:
        """A player has the set-up's reserve, or has replenished and so ended the turn."""
        self.done += 1
        if self.done < self.players:
            if self.round == 0:
                self._dice_are_due(self.reserve_size)
            else:
                self._start_action_turn()
        elif self.round == 0:
            self._start_round()
        else:
            self._end_round()

    # ------------------------------------------------------------------ rounds, opening phase

    def _start_round(self) -> None:
        self.round += 1
        self.discs_played = [0] * self.players
        self.order = self.opening_order
        self.done = 0
        self._ask_for_disc()

    def _ask_for_disc(self) -> None:
        self.player = self.order[self.done]
        self.phase = "disc"

    def _play_disc(self, disc: int) -> None:
        self.discs_in_hand[self.player].remove(disc)
        self.discs_played[self.player] = disc
        self.done += 1
        if self.done < self.players:
            self._ask_for_disc()
            return
        # Lower number first. The sort is stable, so of equal numbers the one played earlier
        # this round comes first.
        self.order = sorted(self.opening_order, key=lambda player: self.discs_played[player])
        self.done = 0
        self._start_action_turn()

    def _end_round(self) -> None:
        self.opening_order = self.order  # the next opening order is this action order
        if self.round % ROUNDS_PER_HAND == 0:
            self.discs_in_hand = [[1, 2, 3, 4, 5] for _ in range(self.players)]
        if self.round == self.max_rounds:
            self._end_game("max_rounds", [])
        else:
            self._start_round()

    # ------------------------------------------------------------------ action phase

    def _start_action_turn(self) -> None:
        self.player = self.order[self.done]
        if self.deferred:
            self._decide_next_crown()
        else:
            self._start_playing_paladins()

    def _start_playing_paladins(self) -> None:
        """As many as there are dice, fewer only if the reserve holds fewer."""
        self.placements_left = min(self.dice, sum(self.reserves[self.player]))
        self.phase = "place" if self.placements_left > 0 else "move"

    def _play_paladin(self, clan: int, place: int) -> None:
        """From the reserve to the own court (place 0) or to region place - 1."""
        self.reserves[self.player][clan] -= 1
        if place == 0:
            self.courts[self.player][clan] += 1
            self._check_control(clan)
        else:
            self.circle[place - 1].paladins[clan] += 1
        self.placements_left -= 1
        if self.placements_left == 0:
            self.phase = "move"

    def _check_control(self, clan: int) -> None:
        """Strictly more than every other court, the partner's included; else nothing changes."""
        own = self.courts[self.player][clan]
        others = [self.courts[p][clan] for p in range(self.players) if p != self.player]
        if own > max(others):
            self.control[clan] = self.player

    def _move_emperor(self, steps: int) -> None:
        steps %= len(self.circle)  # he may come round to where he started, and go further
        self.circle = self.circle[steps:] + self.circle[:steps]
        self._settle()
        if self._game_ends():
            return
        self._dice_are_due(self.dice)  # replenish

    def _strength(self, team: int, region: Region) -> int:
        """Paladins of the clans that the team's members control, plus the team's castles."""
        controlled = [
            clan
            for clan in CLANS
            if self.control[clan] != NOBODY and self.team[self.control[clan]] == team
        ]
        castles = region.castles if region.owner == team else 0
        return sum(region.paladins[clan] for clan in controlled) + castles

    def _settle(self) -> None:
        """Settle the region where the Emperor stops: a castle, a take-over, or nothing."""
        region = self.circle[0]
        strengths = [self._strength(team, region) for team in self.teams]
        highest = max(strengths)
        if highest == 0 or strengths.count(highest) > 1:
            return
        strongest = strengths.index(highest)
        if strongest == region.owner:
            return
        region.owner = strongest
        region.castles = max(1, region.castles)  # a first castle, or every castle replaced
        self._merge()

    def _merge(self) -> None:
        """The Emperor's region swallows either neighbour that belongs to the same team."""
        owner = self.circle[0].owner
        # At least 4 regions are here, so the two neighbours are different ones.
        if self.circle[1].owner == owner:
            clockwise = self.circle.pop(1)
            self.circle[0] = joined(self.circle[0], clockwise)
        if self.circle[-1].owner == owner:
            counter_clockwise = self.circle.pop()
            self.circle[0] = joined(counter_clockwise, self.circle[0])

    # ------------------------------------------------------------------ end of the game

    def _castles_in_play(self, team: int) -> int:
        return sum(region.castles for region in self.circle if region.owner == team)

    def _game_ends(self) -> bool:
        """Enough castles win at once; otherwise too few regions end the game."""
        castles = [self._castles_in_play(team) for team in self.teams]
        most = max(castles)
        winners = [team for team in self.teams if castles[team] == most]
        if most >= self.castles_to_win:
            # One settling adds castles to one team only, so there is one winner.
            self._end_game("castles", winners)
        elif len(self.circle) < FEWEST_REGIONS:
            self._end_game("regions", winners)
        return self.result is not None

    def _end_game(self, reason: str, winners: list[int]) -> None:
        self.result = {
            "reason": reason,
            "winners": winners,
            "castles": [self._castles_in_play(team) for team in self.teams],
            "regions": len(self.circle),
            "rounds": self.round,
            "returns": [payoff(team, winners, len(self.teams)) for team in self.team],
        }
        self.phase = "over"
        self.player = None


def team_of(player: int, rules: dict) -> int:
    """Everybody alone, but with 4 players two partnerships: opposite or adjacent seats."""
    if rules["players"] < 4:
        return player
    return player // 2 if rules["partners"] == "adjacent" else player % 2


def joined(first: Region, second: Region) -> Region:
    """One region of two neighbours of one owner; `second` lies clockwise of `first`."""
    return Region(
        first.territories + second.territories,
        [a + b for a, b in zip(first.paladins, second.paladins, strict=True)],
        first.owner,
        first.castles + second.castles,
    )


def payoff(team: int, winners: list[int], teams: int) -> float:
    """(n*s - 1) / (n - 1) for a share s of the win; 0 for everybody in a cut-off game."""
    if not winners:
        return 0.0
    share = 1 / len(winners) if team in winners else 0
    return (teams * share - 1) / (teams - 1)


def legal_from_state(state: dict, rules: dict) -> list[int]:
    """The legal actions, ascending, read off a record's `state` object and nothing else."""
    player = state["player"]
    phase = state["phase"]
    actions: set[int] = set()
    if phase == "disc":
        hand = set(state["discs_in_hand"][player])
        fresh = hand - set(state["discs_played"])
        actions = {disc - 1 for disc in (fresh if fresh else hand)}
    elif phase == "crown":
        for clan in range(5):
            fewest = min(state["courts"][seat][clan] for seat in range(rules["players"]))
            if state["supply"][clan] + fewest >= 1:
                actions.add(5 + clan)
    elif phase == "place":
        regions = len(state["regions"])
        for clan, number in enumerate(state["reserves"][player]):
            if number >= 1:
                # 0 is the court, 1 + r is region r: regions + 1 places in all.
                actions |= {15 + 16 * clan + place for place in range(regions + 1)}
    elif phase == "move":
        # No more steps than the own disc; steps past a full circle are allowed too.
        actions = {9 + steps for steps in range(1, state["discs_played"][player] + 1)}
    return sorted(actions)
