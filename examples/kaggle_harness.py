"""The loop of Kaggle's game harness over games of Carolus, and what a game costs.

    python examples/kaggle_harness.py --players 3 --games 20
    python examples/kaggle_harness.py --answers decision --show
    python examples/kaggle_harness.py --url http://localhost:8000/v1 --model NAME

Each answer is asked for with `get_legal_moves`, `generate_prompt` and `parse_response`; one that is
not legal is asked for again with what was wrong. Without --url the answers are those of a bot,
written in the notation, so that nothing is sent anywhere. With --url a language model answers at
every seat; --key names the environment variable with the endpoint's key.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import carolus_env as ce
from carolus_env.integrations.language import harness, turns
from carolus_env.integrations.language.chat import Chat
from carolus_env.notation import tell_turns
from carolus_env.records import make_record, start_of

Model = Callable[[str, np.void], str]
"""Answers a prompt; the position is for bots, which cannot read."""


@dataclass
class Costs:
    """What games have cost."""

    answers: list[int] = field(default_factory=list)
    """Of each game."""
    prompts: list[int] = field(default_factory=list)
    """Characters of each prompt."""
    responses: list[int] = field(default_factory=list)
    """Characters of each response."""
    refused: int = 0
    """Responses that were no legal move."""


def bot_model(spec: str, answers: str) -> Model:
    """A bot that answers as a language model does: a sentence, then JSON."""
    bot = ce.make(spec)
    stream = ce.new_streams(0, 1)

    def model(prompt: str, state: np.void) -> str:
        game, actions = np.array([state]), list[int]()
        while not actions or (answers == "turn" and turns.goes_on(game, state)):
            actions.append(int(bot.act(game, stream)[0]))
            ce.step(game, np.array(actions[-1:]), roll=False)
        move = json.dumps({"move": turns.turn_text(state, actions)})
        return f"This seems best to me.\n```json\n{move}\n```"

    return model


def chat_model(url: str, name: str, key: str) -> Model:
    """A language model at an endpoint."""
    chat = Chat(url, name, key)
    return lambda prompt, state: chat.ask(prompt)


def play(model: Model, rules: ce.Rules, seed: int, answers: str, tries: int, costs: Costs) -> str:
    """Play a game; how it ended, in a line."""
    game, count = ce.Game(rules, seed=seed), 0
    start = ce.new_games(rules, 1, seed=seed, roll=False)
    actions: list[int] = []
    while not game.over:
        observation = harness.observe(game.states[0], answers)
        legal = harness.get_legal_moves(observation)
        record = make_record(start, actions)
        history = [
            f"player {told.seat}: {told.text}"
            for told in tell_turns(start_of(record), record["events"])
        ]
        response = action = None
        for _ in range(tries):
            prompt = harness.generate_prompt(observation, history, response, action)
            response = model(prompt, game.states[0].copy())
            costs.prompts.append(len(prompt))
            costs.responses.append(len(response))
            parsed = harness.parse_response(response, legal)
            count += 1
            if parsed.actions:
                break
            action = parsed.raw_action
            costs.refused += 1
        else:
            costs.answers.append(count)
            return f"player {game.player} gave no legal move in {tries} tries: {parsed.error}"
        for number in parsed.actions:
            game.play(number)
            actions.append(number)
    costs.answers.append(count)
    return str(game.outcome)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--players", type=int, default=3, help="2, 3 or 4 (default: 3)")
    add("--games", type=int, default=1)
    add("--seed", type=int, default=1, help="of the first game")
    add("--answers", choices=harness.ANSWERS, default="turn", help="what one answer decides")
    add("--tries", type=int, default=3, help="for one answer")
    add("--bot", default="planner", help="whose moves are the answers (default: planner)")
    add("--url", help="of a chat endpoint, whose model answers instead")
    add("--model", default="", help="its name there")
    add("--key", default="", help="environment variable that holds the endpoint's key")
    add("--show", action="store_true", help="print a prompt from the middle of the first game")
    args = parser.parse_args()
    try:
        model = bot_model(args.bot, args.answers)
        if args.url:
            model = chat_model(args.url, args.model, args.key)
    except ValueError as error:
        parser.error(str(error))
    shown: list[str] = []

    def noted(prompt: str, state: np.void) -> str:
        shown.append(prompt)
        return model(prompt, state)

    costs, rules = Costs(), ce.Rules(players=args.players)
    for k in range(args.games):
        print(play(noted, rules, args.seed + k, args.answers, args.tries, costs))
    if args.show:
        print(shown[costs.answers[0] // 2])
    print(
        f"{args.players} players, {args.games} games: {np.mean(costs.answers):.1f} answers a game "
        f"({min(costs.answers)} to {max(costs.answers)}), {costs.refused} refused; "
        f"{np.mean(costs.prompts):.0f} characters a prompt, at most {max(costs.prompts)}; "
        f"{np.mean(costs.responses):.0f} a response"
    )


if __name__ == "__main__":
    main()
