"""A model that answers prompts by their text alone: it reads what is asked, and its reserve."""

from __future__ import annotations

import json
import re


def moves_for(prompt):
    """A legal whole turn, for a prompt that asks for one: paladins to court, the Emperor a step."""
    asked = prompt[prompt.rindex("\nNow ") :]
    discs = re.search(r"One of (d[1-5](?:, d[1-5])*)", asked)
    if discs:
        return discs[1].split(", ")[0]
    seat = re.search(r"You are player (\d)", prompt)[1]
    moves = []
    reserve = dict(counts(re.search(rf"Reserves:\n(?:.*\n)*?player {seat}: (.*)", prompt)[1]))
    if crowns := re.search(r"the clan of your (?:(\d) )?crown", asked):
        clans = re.search(r"can become (.*?)\.", asked)[1].split(", ")
        left = counts(re.search(r"\nsupply: (.*)", prompt)[1])
        courts = re.search(r"Courts .*:\n((?:player .*\n)+)", prompt)[1].splitlines()
        for clan in clans:  # when the supply holds none, all courts return as many as one of them
            returned = len(courts) * min(counts(court).get(clan, 0) for court in courts)
            left[clan] = left.get(clan, 0) + returned
        for _ in range(int(crowns[1] or 1)):
            clan = max(clans, key=left.get)
            left[clan] -= 1
            reserve[clan] = reserve.get(clan, 0) + 1
            moves.append(f"crown={clan}")
    if paladins := re.search(r"play (\d) paladin", asked):
        held = [clan for clan, number in reserve.items() for _ in range(number)]
        moves += [f"{clan}>court" for clan in held[: int(paladins[1])]]
    if "move the Emperor" in asked:
        moves.append("E+1")
    return ", ".join(moves)


def counts(text):
    """``{"red": 2}`` of ``2 red, 1 blue* and 2 crowns to decide``."""
    result = re.findall(r"(\d+) (red|pink|blue|yellow|green)", text)
    return {clan: int(number) for number, clan in result}


def answer(move):
    """What a model says around its move."""
    return f"I think {{this}} is best.\n```json\n{json.dumps({'move': move})}\n```\nThank you."
