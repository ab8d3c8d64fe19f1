"""A language model as a player: a program that speaks the lines of JSON of docs/write_a_bot.md.

    carolus evaluate "exe:python3 language_model.py http://localhost:8000/v1 NAME" random --games 20
    carolus play --bot "exe:python3 language_model.py https://HOST/v1 NAME --key MY_KEY,seconds=300"

The address is that of an OpenAI-compatible endpoint, without ``/chat/completions``. Nothing is sent
anywhere else: no redirect is followed, and no proxy used. ``--key`` names the environment variable
that holds the key. The model is asked for each decision that is not forced: again, with what was
wrong, if its answer is no legal move; again after a second, then two, if the request fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib import request

import carolus_env as ce
from carolus_env.notation import NotationError, from_text, read_move

PROMPT = """\
CAROLUS MAGNUS, a board game for {rules.players} players in {rules.teams} teams: {members}.

The board is a circle of 15 territories, numbered 0 to 14 clockwise. A region is one territory, or
several that have merged, named by its first and last: 7, 4-6, 14-0. Paladins of five clans (red,
pink, blue, yellow, green) stand on the regions, and the Emperor (E) on one of them. Each player has
a court, a reserve of paladins, and discs 1 to 5. Only the dice are unknown.

The goal: a team with {rules.castles_to_win} castles wins at once. Else, with fewer than 4 regions
left, the game ends at once and the team with the most castles wins. {limit}

A round: in playing order, each player plays a disc, of another number than those played before, if
possible. The lowest disc acts first. Each player in turn then
1. plays {rules.dice} paladins from the reserve, each to the player's court or onto a region;
2. moves the Emperor clockwise, 1 step to as many as the disc's number (a region is a step), and
   settles the region where he stops;
3. rolls {rules.dice} dice: paladins for the reserve. A crown is a paladin of a clan that the player
   chooses{when}. After every fifth round the discs come back.

Control: who has more paladins of a clan in court than every other player takes control of the clan,
and keeps it until another player has more than everybody else.

Settling: a team's strength in a region is the number of paladins there of the clans that its
players control, plus its castles there. The strictly strongest team becomes the owner: it builds a
castle where there is none, or replaces each castle by its own. The region then merges for good with
neighbours that have castles of that team. On a tie, or if the owner is strongest, nothing changes.

The position, one letter a clan, a capital where its player controls it; castles have the letter of
their team:

{board}

As player {player} of team {team}, choose one of these moves: dN plays disc N, E+N moves the Emperor
N steps, clan>place plays a paladin. What it changes follows: ! takes control, # ends the game.

{moves}

Think, then end your answer with the move alone, in this form: {{"move": "E+1"}}"""


def prompt_of(asked: dict[str, Any]) -> str:
    """Return the prompt for a request: rules, position, legal moves."""
    states = from_text(asked["position"])
    rules, player = ce.rules_of(states[0]), int(states["player"][0])
    teams = ["ABC"[rules.team(seat)] for seat in range(rules.players)]
    return PROMPT.format(
        rules=rules,
        members=", ".join(f"player {seat} in {team}" for seat, team in enumerate(teams)),
        limit=f"After round {rules.max_rounds} nobody wins." if rules.max_rounds else "",
        when="" if rules.crown_choice == "on_roll" else " at the start of the next turn",
        board=ce.Game(state=states),
        player=player,
        team=teams[player],
        moves=", ".join(asked["moves"]),
    )


def choose(asked: dict[str, Any], ask: Callable[[list[dict[str, str]]], str], tries: int) -> int:
    """Return the model's action; an error when all tries fail."""
    if len(asked["legal"]) == 1:
        return int(asked["legal"][0])
    state, chat = from_text(asked["position"])[0], [{"role": "user", "content": prompt_of(asked)}]
    for left in reversed(range(tries)):
        try:
            answer = ask(chat)
            moves = re.findall(r'"move"\s*:\s*"([^"]*)"', answer)
            if not moves:
                raise NotationError('there is no {"move": "..."} in the answer')
            if len(actions := read_move(state, moves[-1])) == 1:
                return actions[0]
            raise NotationError(f"{moves[-1]} is more than one decision")
        except OSError:  # no connection, no answer in time, a status
            if not left:
                raise
            time.sleep(tries - left)
        except NotationError as error:
            if not left:
                raise
            again = f"That was refused: {error}. Answer again, in the same form."
            said = zip(("assistant", "user"), (answer, again), strict=True)
            chat[1:] = [{"role": role, "content": text} for role, text in said]
    raise ValueError("tries must be at least 1")


class NoRedirect(request.HTTPRedirectHandler):
    """Takes a redirect for an error: it would get the key."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


def main() -> None:
    """Answer each line until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="of the endpoint, as http://localhost:8000/v1")
    parser.add_argument("model", help="name of the model there")
    parser.add_argument("--key", metavar="NAME", help="environment variable with the key")
    parser.add_argument("--tries", type=int, default=3, help="for a decision, in its time limit")
    options = parser.parse_args()
    opener = request.build_opener(request.ProxyHandler({}), NoRedirect())
    headers = {"Content-Type": "application/json"}
    if options.key:
        headers["Authorization"] = f"Bearer {os.environ[options.key]}"

    for line in sys.stdin:
        asked = json.loads(line)

        def ask(chat: list[dict[str, str]], seconds: float = asked.get("seconds", 60)) -> Any:
            body = json.dumps({"model": options.model, "messages": chat}).encode()
            post = request.Request(f"{options.url.rstrip('/')}/chat/completions", body, headers)
            with opener.open(post, timeout=0.9 * seconds / options.tries) as answer:
                return json.load(answer)["choices"][0]["message"]["content"] or ""

        answer = {**asked, "name": options.model}
        if "protocol" not in asked:
            try:
                answer = {"id": asked["id"], "action": choose(asked, ask, options.tries)}
            except Exception as error:  # the command names it, with the position
                answer = {"id": asked["id"], "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
