"""PPO over whole turns: the network, the bot, rollouts, gradients, workers, resuming, options."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("rich")

from carolus_env.bots.turns import network
from carolus_env.bots.turns.bot import TurnPolicy, TurnPolicyOptions
from carolus_env.bots.turns.inference import Head, Judge, judge_all
from carolus_env.bots.turns.model import TurnModel

from carolus_env import arena, bots, engine
from carolus_env.analysis.suite import data
from carolus_env.arena import placing
from carolus_env.bots import AgentError
from carolus_env.bots.value.ahead import COMPARED, disc_values
from carolus_env.commands import train
from carolus_env.engine.rules import DISC, DISCS, FIRST_DISC, MOVE, OVER, PLACE, TEAMS, Rules
from carolus_env.engine.streams import new_streams
from carolus_env.learners.turns.config import TurnConfig
from carolus_env.learners.turns.crew import Crew
from carolus_env.learners.turns.run import TurnRun
from carolus_env.networks.forward import Weights
from carolus_env.networks.inputs import inputs
from carolus_env.networks.network import LEAK, LINEAR, Size
from carolus_env.planning.plans import best_plans
from carolus_env.system.compiler import entry

every_number = pytest.mark.parametrize("players", [2, 3, 4])

STEPS = 150
"""More decisions than a game has."""

TINY = [
    *("--width", "16", "--hidden", "4", "--candidates", "6", "--workers", "2"),
    *("--games", "8", "--rollout", "16", "--batch", "32", "--steps", "512"),
    *("--curve-every", "128", "--eval-games", "4", "--final-games", "4", "--eval-every", "256"),
]


def tiny(folder, *more):
    return [*TINY, "--runs", str(folder), "--name", "r", *more]


def small(**options):
    """Options of a small network that one worker trains."""
    sizes = {"width": 16, "hidden": 4, "candidates": 6, "workers": 1}
    return TurnConfig(**{**sizes, "games": 6, "rollout": 24, "batch": 36, **options})


def some_weights(size, seed=3):
    """Weights of which none is 0."""
    weights, random = network.random_weights(size, seed), np.random.default_rng(seed)
    for name in weights:
        weights[name] += random.normal(0, 0.2, weights[name].shape).astype(np.float32)
    weights["sharpness"][:] = 1.5
    return weights


def positions(players, n=60, seed=2):
    """Games at decisions of every kind, some of them near the end."""
    states, streams = engine.new_games(Rules(players), n, seed=seed), new_streams(seed, n)
    planner, kept = bots.make("planner"), []
    for step in range(400):
        going = ~engine.is_over(states)
        if not going.any():
            break
        states, streams = states[going].copy(), streams[going].copy()
        if step % 11 == 5:
            kept.append(states[step % 7 :: 9].copy())
        engine.step(states, planner.act(states, streams))
    return np.concatenate(kept)


# ------------------------------------------------------------------------------------ the network


@entry
def _judge_one(states, judge):
    return judge_all(states[0], judge)


@every_number
def test_candidates_are_judged_as_the_plain_network_says(players):
    size = Size(players, 16, 4)
    weights = some_weights(size)
    judge = Judge.of(players, Weights.of(weights), Head.of(weights), 0, 8)
    phases, ends = set(), 0
    for state in positions(players):
        count = _judge_one(state.reshape(1).copy(), judge)
        phases.add(int(state["phase"]))
        team = int(state["team"][state["player"]])
        if state["phase"] in (PLACE, MOVE):
            listed = best_plans(state, 8)
        else:
            listed = [[a] for a in np.flatnonzero(engine.legal_masks(state.reshape(1))[0])]
        assert count == len(listed)
        for k, actions in enumerate(listed):
            after = state.reshape(1).copy()
            for action in actions:
                engine.step(after, np.array([action]), roll=False)
            if after[0]["phase"] == OVER:
                residual, won = 0.0, engine.win_shares(after)[0]
                firsts = [list(after[0]["team"]).index(t) for t in range(TEAMS[players])]
                values = won[firsts] * (players // TEAMS[players])
                ends += 1
            else:
                found, by_role = network.forward(weights, inputs(after))
                mover = int(after[0]["team"][after[0]["player"]])
                residual, teams = found[0], TEAMS[players]
                values = np.array([by_role[0, (t - mover) % teams] for t in range(teams)])
            np.testing.assert_allclose(judge.values[k, : len(values)], values, atol=2e-5)
            odds = network.log_odds(np.float32(values[team]))
            expected = residual + weights["sharpness"][0] * odds
            assert judge.logits[k] == pytest.approx(expected, abs=3e-4)
    assert len(phases) == 4
    assert ends > 0


def test_a_network_that_has_learnt_nothing_follows_its_value():
    weights = network.random_weights(Size(2), 1)
    assert not weights["residual"].any() and not weights["residual_bias"].any()
    assert weights["sharpness"][0] == network.SHARPNESS


# ------------------------------------------------------------------------------------ the bot


@every_number
def test_the_bot_plays_the_likeliest_candidate_and_says_its_policy(players):
    model = TurnModel(Size(players, 16, 4), some_weights(Size(players, 16, 4)))
    states = positions(players)
    streams = new_streams(1, len(states))
    opinion = TurnPolicy(model).opinion(states, streams)
    np.testing.assert_allclose(opinion.probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(opinion.values.sum(axis=1), 1, atol=1e-5)
    assert not opinion.probabilities[~engine.legal_masks(states).astype(bool)].any()
    before, actions = streams.copy(), TurnPolicy(model).act(states, streams)
    assert (streams == before).all(), "nothing is drawn"
    probability = opinion.probabilities[np.arange(len(states)), actions]
    assert (probability >= 1 / 16).all(), "the likeliest of at most 16 candidates begins so"


def test_at_temperature_one_choices_are_drawn_from_the_policy():
    model = TurnModel(Size(2, 16, 4), some_weights(Size(2, 16, 4)))
    bot = TurnPolicy(model, TurnPolicyOptions(temperature=1.0))
    for state in positions(2)[::11]:
        many = np.repeat(state.reshape(1), 3000)
        drawn = np.bincount(bot.act(many, new_streams(5, 3000)), minlength=95) / 3000
        policy = bot.opinion(many[:1], new_streams(1, 1)).probabilities[0]
        np.testing.assert_allclose(drawn, policy, atol=0.05)
    hot = TurnPolicy(model, TurnPolicyOptions(temperature=100.0))
    drawn = hot.act(many, new_streams(5, 3000))
    assert np.bincount(drawn).max() < 2900


@every_number
def test_looking_ahead_the_value_seen_there_decides_on_discs(players):
    size = Size(players, 16, 4)
    weights = some_weights(size)
    states = positions(players)
    states = states[states["phase"] == DISC]
    found = disc_values(states, Weights.of(weights), COMPARED[TEAMS[players]])
    opinions = {
        look: TurnPolicy(TurnModel(size, weights), TurnPolicyOptions(discs=look)).opinion(
            states, new_streams(1, len(states))
        )
        for look in ("turn", "now")
    }
    for state, values, policy in zip(states, found, opinions["turn"].probabilities, strict=True):
        seen = values[:, int(state["team"][state["player"]])]
        playable = ~np.isnan(seen)
        logits = weights["sharpness"][0] * network.log_odds(seen[playable].astype(np.float32))
        expected = np.exp(logits - logits.max())
        given = policy[FIRST_DISC : FIRST_DISC + DISCS]
        np.testing.assert_allclose(given[playable], expected / expected.sum(), atol=1e-4)
        assert not given[~playable].any()
    assert len(states) > 5
    now, turn = (opinions[look].probabilities.argmax(axis=1) for look in ("now", "turn"))
    assert (now != turn).any(), "it matters"


def test_models_are_files_that_ppo_plays(tmp_path):
    size = Size(3, 16, 4)
    TurnModel(size, some_weights(size), {"seed": 3}).save(tmp_path / "own")
    again = TurnModel.load(tmp_path / "own")
    assert (again.size, again.about) == (size, {"seed": 3})
    agent = bots.make(f"ppo:{tmp_path}/own,candidates=8")
    assert isinstance(agent, TurnPolicy)
    states = engine.new_games(Rules(3), 4, seed=1)
    agent.act(states, new_streams(1, 4))
    with pytest.raises(AgentError, match="has a model for 3 players, not for 2"):
        agent.act(engine.new_games(Rules(2), 4, seed=1), new_streams(1, 4))
    with pytest.raises(AgentError, match="candidates"):
        bots.make(f"ppo:{tmp_path}/own,candidates=3")


# ------------------------------------------------------------------------------------ rollouts


@every_number
def test_a_rollout_keeps_what_was_decided_and_works_out_what_it_was_worth(players):
    config = small(players=players, rollout=STEPS, gae_lambda=0.7, trace=0.4)
    crew = Crew(config)
    for name, array in some_weights(config.size).items():
        crew.weights[name][:] = array
    [worker] = crew._workers
    before = worker.states.copy()
    crew.play()
    memory, last, teams = worker.memory, worker.last, TEAMS[players]
    assert crew.told_of_games[0] == memory.ends.sum() > 0
    judge = Judge.of(players, Weights.of(crew.weights), Head.of(crew.weights), 0, 6)
    for g in range(config.games):
        state = before[g : g + 1].copy()
        rows = range(g * STEPS, g * STEPS + STEPS)
        for d in rows:  # played again, with the same choices
            count = _judge_one(state, judge)
            assert (count, state[0]["team"][state[0]["player"]]) == (
                memory.counts[d],
                memory.team[d],
            )
            policy = np.exp(judge.logits[:count] - judge.logits[:count].max())
            policy /= policy.sum()
            chosen = memory.chosen[d]
            assert memory.log_probs[d] == pytest.approx(np.log(policy[chosen]), abs=1e-4)
            expected = policy @ judge.values[:count]
            np.testing.assert_allclose(memory.expected[d], expected, atol=1e-5)
            plan = int(judge.lister.choices[chosen])
            while plan:
                engine.step(state, np.array([(plan & 127) - 1]))
                plan >>= 7
            assert memory.ends[d] == engine.is_over(state)[0]
            if memory.ends[d]:
                shares = engine.win_shares(state)[0]
                for team in range(teams):
                    seats = state[0]["team"][:players] == team
                    assert memory.shares[d, team] == pytest.approx(shares[:players][seats].sum())
                state = engine.next_games(state)
        assert state.tobytes() == worker.states[g : g + 1].tobytes()
        for team in range(teams):  # backwards, by the definitions
            for lam, found in ((0.4, "target"), (0.7, "advantage")):
                after = float(last[g, team])
                mixed = after
                for d in reversed(rows):
                    mixed = lam * mixed + (1 - lam) * after
                    if memory.ends[d]:
                        mixed = memory.shares[d, team]
                    after = float(memory.expected[d, team])
                    if found == "target":
                        assert memory.targets[d, team] == pytest.approx(mixed, abs=1e-5)
                    elif memory.team[d] == team:
                        assert memory.advantages[d] == pytest.approx(mixed - after, abs=1e-5)


# ------------------------------------------------------------------------------------ gradients


def plain_loss(weights, memory, decisions, loss, odds, players):
    """PPO's loss of some decisions in float64; ``odds`` are taken as given where they steer."""
    teams, total = TEAMS[players], 0.0
    for d in decisions:
        count, choice = memory.counts[d], memory.chosen[d]
        logits = np.zeros(count)
        for k in range(count):
            logits[k] = weights["sharpness"][0] * odds[d, k]
            if memory.over[d, k] >= 0:
                continue
            stage, rows = memory.stages[d, k], memory.rows[d, k, : memory.lengths[d, k]]
            sums = weights["rows"][rows].sum(axis=0) + weights["bias"]
            sums = sums + memory.numbers[d, k] @ weights["numbers"]
            first = np.where(sums > 0, sums, LEAK * sums)[:-LINEAR]
            second = first @ weights["hidden"][stage] + weights["hidden_bias"][stage]
            units = np.concatenate([np.where(second > 0, second, LEAK * second), sums[-LINEAR:]])
            logits[k] += units @ weights["residual"][stage] + weights["residual_bias"][stage]
            if k == choice:
                scores = units @ weights["out"][stage] + weights["out_bias"][stage]
                by_role = np.log(np.exp(scores) / np.exp(scores).sum())
                targets = [memory.targets[d, (memory.own[d, k] + r) % teams] for r in range(teams)]
                total -= loss.value * np.dot(targets, by_role)
        log_policy = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        policy = np.exp(log_policy)
        ratio = np.exp(log_policy[choice] - memory.log_probs[d])
        advantage = (memory.advantages[d] - loss.mean) * loss.scale
        kept = np.clip(ratio, 1 - loss.clip, 1 + loss.clip)
        total -= min(ratio * advantage, kept * advantage)
        total += loss.entropy * (policy @ log_policy)
    return total * loss.share


@every_number
def test_gradients_are_those_of_the_plain_loss(players):
    config = small(players=players, clip=0.1, rollout=40)
    crew = Crew(config)
    for name, array in some_weights(config.size).items():
        crew.weights[name][:] = array
    crew.play()
    for name, array in some_weights(config.size, 8).items():  # not those that played
        crew.weights[name] += np.float32(0.05) * (array - crew.weights[name])
    [worker] = crew._workers
    memory, decisions = worker.memory, np.arange(0, 240, 3)
    loss = crew._loss(0.01, 5.0, 0.1)._replace(clip=np.float32(0.1))
    crew._add_gradients([decisions], loss)
    clipped = crew.told[2]
    assert 0 < clipped < len(decisions)
    exact = {name: array.astype(np.float64) for name, array in crew.weights.items()}
    judge, odds = worker.judge, np.zeros(memory.over.shape)
    for d in decisions:  # the odds that the present weights give
        for k in range(memory.counts[d]):
            value = memory.over[d, k]
            if value < 0:
                seen = seen_of(memory, d, k, players)
                by_role = network.forward(crew.weights, seen)[1][0]
                value = by_role[(memory.team[d] - memory.own[d, k]) % TEAMS[players]]
            odds[d, k] = network.log_odds(np.float32(value))
    assert judge.head.sharpness is crew.weights["sharpness"]
    random, checked = np.random.default_rng(1), 0
    for name, gradient in crew._gradients.items():
        places = np.argwhere(gradient[0] != 0)
        assert len(places), name
        for place in random.permutation(places)[:5]:
            at = tuple(place)
            ends = []
            for change in (1e-5, -1e-5):
                moved = {**exact, name: exact[name].copy()}
                moved[name][at] += change
                ends.append(plain_loss(moved, memory, decisions, loss, odds, players))
            slope = (ends[0] - ends[1]) / 2e-5
            assert gradient[0][at] == pytest.approx(slope, rel=0.02, abs=2e-4), (name, at)
            checked += 1
    assert checked >= 40
    touched = np.zeros_like(worker.gradients.touched)
    for d in decisions:
        for k in np.flatnonzero(memory.over[d, : memory.counts[d]] < 0):
            touched[memory.rows[d, k, : memory.lengths[d, k]]] = True
    np.testing.assert_array_equal(worker.gradients.touched, touched)


def seen_of(memory, d, k, players):
    """What the network saw of a candidate, as `inputs` gives it."""
    from carolus_env.networks.inputs import InputArrays

    rows = np.full((1, memory.rows.shape[2]), -1, np.int32)
    rows[0, : memory.lengths[d, k]] = memory.rows[d, k, : memory.lengths[d, k]]
    return InputArrays(rows, memory.numbers[d, k][None], memory.stages[d, k][None])


def test_a_step_is_adams_and_leaves_rows_alone_that_nothing_was_learnt_about():
    crew = Crew(small(workers=2))
    crew.play()
    before = {name: array.copy() for name, array in crew.weights.items()}
    loss = crew._loss(0.0, 1.0, 0.0)
    crew._add_gradients([np.arange(30), np.arange(20)], loss)
    gradients = {name: array.sum(axis=0) for name, array in crew._gradients.items()}
    touched = crew._touched.any(axis=0)
    assert 0 < touched.sum() < len(touched) / 2
    crew._step(0.01)
    for name, gradient in gradients.items():
        mean, square = 0.1 * gradient, 0.001 * gradient.astype(float) ** 2
        rate = 0.01 * np.sqrt(1 - 0.999) / (1 - 0.9)
        wanted = before[name] - rate * mean / (np.sqrt(square) + 1e-6)
        np.testing.assert_allclose(crew.weights[name], wanted, atol=2e-6)
        assert not crew._gradients[name].any()
    np.testing.assert_array_equal(crew.weights["rows"][~touched], before["rows"][~touched])
    assert not crew._touched.any()


# ------------------------------------------------------------------------------------ workers


def learnt(config, updates=2):
    crew = Crew(config)
    for _ in range(updates):
        crew.play()
        crew.learn(0.004, 0.01)
    return crew


def same(first, second):
    return all((first.weights[name] == second.weights[name]).all() for name in first.weights)


def test_the_result_depends_on_the_seed_and_the_number_of_workers():
    first = learnt(small(workers=2))
    assert same(first, learnt(small(workers=2)))
    for other in (small(workers=2, seed=2), small(), small(workers=3)):
        assert not same(first, learnt(other))


def test_warming_up_teaches_nothing():
    warm = Crew(small(workers=2))
    warm.warm_up()
    assert (warm.cpu_seconds == 0).all() and not warm.told.any()
    for _ in range(2):
        warm.play()
        warm.learn(0.004, 0.01)
    assert same(warm, learnt(small(workers=2)))


def test_every_decision_of_a_rollout_is_learnt_from_once_an_epoch():
    crew = learnt(small(workers=2, games=7, rollout=11, batch=10, epochs=3), updates=1)
    assert crew.told[0] == 3 * 77


def test_a_run_can_begin_with_a_model(tmp_path):
    trained = learnt(small())
    TurnModel(small().size, trained.weights).save(tmp_path / "own")
    assert same(Crew(small(start=str(tmp_path / "own"))), trained)
    with pytest.raises(ValueError, match="is a model of Size"):
        small(start=str(tmp_path / "own"), width=24).check()


# ------------------------------------------------------------------------------------ a run


@pytest.mark.parametrize(
    ("players", "rules"),
    [
        (2, []),
        pytest.param(
            3, ["--crown-choice", "deferred", "--max-rounds", "30"], marks=pytest.mark.slow
        ),
        (4, ["--partners", "adjacent", "--paladins-per-clan", "30"]),
    ],
)
def test_a_run_leaves_the_files_of_the_documentation(tmp_path, players, rules, capsys):
    assert train.main(tiny(tmp_path, "--players", str(players), *rules)) == 0
    folder = tmp_path / "r"
    assert {path.name for path in folder.iterdir()} == {
        *("config.json", "curve.json", "curve.png", "result.json", "resume", "tensorboard"),
        *("best.json", "best.safetensors", "final.json", "final.safetensors"),
    }
    config = json.loads((folder / "config.json").read_text())["config"]
    assert (config["learner"], config["players"], config["workers"]) == ("ppo", players, 2)
    curve = json.loads((folder / "curve.json").read_text())
    assert [point["decisions"] for point in curve["evaluation"]] == [0, 256, 512]
    assert [point["decisions"] for point in curve["training"]] == [128, 256, 384, 512]
    for point in curve["training"]:
        assert 0 < point["loss"] < 2
        assert 0 < point["entropy"] < np.log(6)
        assert 0 <= point["clipped"] < 1
    final = TurnModel.load(folder / "final")
    assert (final.size.players, final.size.width, final.about["decisions"]) == (players, 16, 512)
    shown = " ".join(capsys.readouterr().out.split())  # lines may wrap
    assert f"{players} players, 512 decisions, 2 workers" in shown
    assert "after the same time --learner value is stronger" in shown
    assert re.search(r"after 256 decisions: Elo -?\d+ \(-?\d+ to -?\d+; planner: 0\), \d", shown)
    assert "/best: Elo " in shown
    following = f"evaluate.py ppo:{folder}/best planner --players {players}"
    assert "".join(following.split()) in "".join(shown.split())


def test_a_run_measures_its_loss_on_the_half_of_the_suite_that_learners_may_see(
    tmp_path, monkeypatch, capsys
):
    whole = data.shipped(2)
    discs = [one for one in whole.decisions if one.kind == "disc"]  # all listed: no rollouts
    few = [one for half in data.HALVES for one in discs if one.half == half][::40]
    assert {one.half for one in few} == set(data.HALVES)
    suite = dataclasses.replace(whole, decisions=tuple(few))
    monkeypatch.setattr(placing, "shipped", lambda players: suite)
    assert train.main(tiny(tmp_path, "--eval-suite", "learn")) == 0
    folder = tmp_path / "r"
    result = json.loads((folder / "result.json").read_text())
    best = bots.make(f"ppo:{folder}/best,candidates=6")
    wanted = placing.measure(suite, best, "learn").summary()["disc"]
    assert result["loss"] == pytest.approx([wanted.mean, wanted.low, wanted.high])
    curve = json.loads((folder / "curve.json").read_text())
    assert all(0 <= point["loss"][0] <= 1 for point in curve["evaluation"])
    assert "loss a decision" in capsys.readouterr().out


def test_some_thousand_decisions_beat_the_untrained_network(tmp_path):
    config = small(games=64, rollout=32, batch=64, steps=40_000, eval_games=2, eval_every=10**6)
    run = TurnRun(config, tmp_path)
    untrained = run.agent(run.snapshot())
    assert run.train()
    assert run.curve.training[-1]["loss"] < np.log(2)
    pair = run.agent(run.snapshot()), untrained
    assert arena.play_pairing(pair, Rules(2), 60, seed=5).ci95[0][0] > 0.6


def test_tensorboard_holds_losses_rates_and_times(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train.main(tiny(tmp_path)) == 0
    events = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
    events.Reload()
    scalars = set(events.Tags()["scalars"])
    assert scalars >= {"train/value_loss", "train/entropy", "train/clip_fraction", "games/rounds"}
    shares = [
        events.Scalars(f"time/share_of_{name}")[-1].value
        for name in ("rollouts", "gradients", "steps")
    ]
    assert sum(shares) == pytest.approx(1, abs=1e-5) and min(shares) > 0


# ------------------------------------------------------------------------------------ resuming


@pytest.mark.slow
def test_resume_may_train_longer(tmp_path):
    assert train.main(tiny(tmp_path)) == 0
    folder = tmp_path / "r"
    before = TurnModel.load(folder / "final").weights
    assert train.main(["--resume", str(folder), "--steps", "640"]) == 0
    after = TurnModel.load(folder / "final")
    assert after.about["decisions"] == 640
    assert any((before[name] != after.weights[name]).any() for name in before)


def test_a_checkpoint_of_another_network_is_refused(tmp_path, capsys):
    assert train.main(tiny(tmp_path)) == 0
    path = tmp_path / "r" / "config.json"
    about = json.loads(path.read_text())
    about["config"]["width"] = 24
    path.write_text(json.dumps(about))
    capsys.readouterr()
    assert train.main(["--resume", str(tmp_path / "r")]) == 2
    error = capsys.readouterr().err
    assert "the checkpoint does not fit these options (ValueError: weights/rows must be" in error


# ------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--games", "0"], "games must be at least 1, got 0"),
        (["--games", "1"], "games must be at least one for each of 2 workers, got 1"),
        (["--workers", "999"], "threads must be a whole number from 1 to 256, got 999"),
        (["--width", "4"], "width must be"),
        (["--width", "18"], "width must be a multiple of 4, got 18"),
        (["--candidates", "3"], "candidates"),
        (["--plans", "some"], "plans"),
        (["--learning-rate", "0"], r"learning_rate must lie in \(0, 1\), got 0\.0"),
        (["--trace", "1.5"], r"trace must lie in \[0, 1\], got 1\.5"),
        (["--clip", "0"], r"clip must lie in \(0, 1\], got 0\.0"),
        (["--entropy", "-1"], r"entropy must lie in \[0, 100\], got -1\.0"),
        (["--seed", "-1"], "seed must be at least 0, got -1"),
        (["--start", "nowhere"], "nowhere.json: cannot be read"),
    ],
)
def test_a_wrong_option_is_reported_before_anything_starts(tmp_path, capsys, options, text):
    assert train.main(tiny(tmp_path, *options)) == 2
    assert re.search(text, capsys.readouterr().err)
    assert not (tmp_path / "r").exists()


def test_the_rate_falls_geometrically():
    config = TurnConfig(learning_rate=0.1, learning_rate_end=0.001)
    assert [config.learning_rate_at(share) for share in (0, 0.5, 1, 2)] == pytest.approx(
        [0.1, 0.01, 0.001, 0.001]
    )


def test_options_are_a_dataclass_with_the_defaults_of_a_run(tmp_path):
    job = train.read_job(["--runs", str(tmp_path), "--name", "a"])
    assert dataclasses.replace(job.config, runs="runs", name=None) == TurnConfig()
