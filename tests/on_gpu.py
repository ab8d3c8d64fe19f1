"""Games on a GPU beside those of the engine: everything that a batch shows must be equal.

    python tests/on_gpu.py                 # on a GPU: 10,000 games for each number of players
    python tests/on_gpu.py --games 40 --decisions 30 --players 3

Run by tests/test_cuda.py in a process of its own, since the environment says where it runs: with
``NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1`` in Numba's simulator of a GPU. ``make gpu`` runs it
on a GPU. It needs no library of tests.
"""

import argparse
import itertools

import numpy as np

import carolus_env as ce
from carolus_env.engine.rules import ROLL

KINDS = [
    ce.Rules(2),
    ce.Rules(3),
    ce.Rules(4),
    ce.Rules(2, paladins_per_clan=6, max_rounds=4),
    ce.Rules(3, crown_choice="deferred"),
    ce.Rules(4, partners="adjacent", max_rounds=3),
    ce.Rules(4, crown_choice="deferred", paladins_per_clan=60),
]
"""All rule options, ends of every kind among them."""


def contents(batch):
    """Everything that a batch shows, and its streams, as arrays on the host."""
    names = ("observations", "masks", "rewards", "terminated", "truncated", "states")
    parts = {name: getattr(batch, name) for name in names}
    parts["streams"] = batch.generators
    return {name: np.asarray(part) for name, part in parts.items() if part is not None}


def check_same(here, there, when):
    """Fail where a batch on a GPU is not byte for byte the one on the CPU."""
    mine, other = contents(here), contents(there)
    assert mine.keys() == other.keys()
    for name, part in mine.items():
        assert part.dtype == other[name].dtype, (when, name)
        assert part.tobytes() == other[name].tobytes(), f"{name} differ after {when}"


def compare(rules, games, decisions, observation, seed=5):
    """Play the same games on both, by steps and by a rollout; returns the number that ended."""
    here = ce.GameBatch(rules, games, seed=seed, observation=observation)
    there = ce.GameBatch(rules, games, seed=seed, observation=observation, device="cuda")
    check_same(here, there, "the start")
    types, ended = itertools.cycle((np.int64, np.uint8, np.int32)), 0
    for step in range(decisions):
        actions, sampled = here.sample(), there.sample()
        assert np.array_equal(np.asarray(sampled), actions), f"samples differ in step {step}"
        turn = here.step(actions)
        there.step(actions.astype(next(types)) if step % 2 else sampled)
        ended += int(turn.terminated.sum() + turn.truncated.sum())
        check_same(here, there, f"step {step}")
    for each in (decisions, 1, 0):
        mine, other = here.rollout(each), there.rollout(each)
        ended += mine.games
        assert mine[:2] == other[:2], f"a rollout counts {mine} and {other}"
        assert mine.returns.tolist() == other.returns.tolist()
        check_same(here, there, "a rollout")
    streams = [ce.new_streams(seed, games) for _ in range(2)]
    played = [
        ce.playout(b.states, s, repeats=2) for b, s in zip((here, there), streams, strict=True)
    ]
    assert all(np.array_equal(a, np.asarray(b)) for a, b in zip(*played, strict=True))
    assert streams[0].tobytes() == streams[1].tobytes()
    check_same(there, there.clone(), "cloning")
    return ended


def check_refusals(games=40):
    """An illegal action is refused as by the engine, at once or by the next call that waits."""
    there = ce.GameBatch(ce.Rules(), games, seed=0, device="cuda")
    actions = np.asarray(there.sample()).copy()
    row = games - 2
    actions[row] = np.flatnonzero(np.asarray(there.masks)[row] == 0)[0]
    actions[row + 1] = -5
    before = contents(there)["states"].tobytes()
    errors = []
    for check in (True, False):
        try:
            there.step(actions, check=check)
            assert not check
            there.step(there.sample())  # does nothing
            there.check()
        except ce.IllegalActionError as error:
            errors.append((str(error), error.game, error.action))
        assert check == (contents(there)["states"].tobytes() == before)
    assert errors[0] == errors[1] and errors[0][1] == row, errors
    for read in (there.sample, there.masks.copy, lambda: there.states["player"]):
        there.step(actions)
        try:
            raise AssertionError(
                f"{read} does not tell of an illegal action: {read().copy_to_host()}"
            )
        except ce.IllegalActionError:
            pass
    there.check()
    there.step(there.sample())
    there.rollout(3)


def check_refresh(games=40):
    """Set-ups and ended games, put there by hand, are games that wait for a decision."""
    states = ce.new_games(ce.Rules(), games, seed=4, roll=False)
    ce.engine.forfeit(states, rows=np.arange(0, games, 3))
    here = ce.GameBatch(ce.Rules(), games, seed=0, observation="uint8")
    there = ce.GameBatch(ce.Rules(), games, seed=0, observation="uint8", device="cuda")
    here.states[:] = states
    there.states.copy_to_device(states)
    for batch in (here, there):
        batch.refresh()
    check_same(here, there, "refreshing")
    assert here.masks.any(axis=1).all() and not (here.states["phase"] == ROLL).any()
    assert here.rollout(20).games == there.rollout(20).games
    check_same(here, there, "a rollout after refreshing")
    others = ce.new_games(ce.Rules(3), games, seed=4)
    for call in (lambda: there.states.copy_to_device(others), there.refresh):
        try:
            call()
        except ValueError as error:
            assert "states must be games of 2 players" in str(error)
        else:
            raise AssertionError("games of other players must be refused")
        there.states.array.copy_to_device(others)


def check_libraries(games=1000):
    """PyTorch and JAX read the arrays in place, and PyTorch's current stream is respected."""
    import torch

    there = ce.GameBatch(ce.Rules(3), games, seed=2, observation="uint8", device="cuda")
    here = ce.GameBatch(ce.Rules(3), games, seed=2, observation="uint8")
    masks, observations = torch.from_dlpack(there.masks), torch.from_dlpack(there.observations)
    players = torch.from_dlpack(there.states["player"])
    courts = torch.from_dlpack(there.states["courts"])
    ended = torch.from_dlpack(there.terminated)
    assert masks.data_ptr() == there.masks.__cuda_array_interface__["data"][0]
    side = torch.cuda.Stream()
    for step in range(100):
        with torch.cuda.stream(side) if step > 50 else torch.cuda.default_stream():
            if step == 51:
                side.wait_stream(torch.cuda.default_stream())
            torch.cuda._sleep(1_000_000)  # what follows must wait for it
            actions = (masks != 0).float().argmax(dim=1)
            there.step(actions)
            copies = [part.cpu().numpy() for part in (masks, observations, players, courts, ended)]
        here.step(actions.cpu().numpy())
        states = here.states
        mine = (here.masks, here.observations, states["player"], states["courts"], here.terminated)
        assert all(np.array_equal(a, b) for a, b in zip(mine, copies, strict=True)), step
    there.states.copy_to_device(here.states[::-1].copy())
    there.refresh()
    assert np.array_equal(np.asarray(there.masks), here.masks[::-1])
    print("PyTorch reads and writes in place")
    try:
        import jax
    except ImportError:
        return
    array = jax.dlpack.from_dlpack(there.masks)
    assert np.array_equal(np.asarray(array), np.asarray(there.masks))
    there.step(jax.numpy.argmax(array, axis=1), check=True)
    print("JAX reads in place:", array.unsafe_buffer_pointer() == masks.data_ptr())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--kinds", type=int, nargs="*", default=range(len(KINDS)))
    parser.add_argument("--libraries", action="store_true", help="also check PyTorch and JAX")
    options = parser.parse_args()
    for number in options.kinds:
        rules = KINDS[number]
        observation = ("uint8", "float32", None)[number % 3]
        ended = compare(rules, options.games, options.decisions, observation)
        print(f"equal: {rules}, observations {observation}, {ended:,} games ended", flush=True)
    if options.libraries:
        check_libraries()
    check_refusals()
    check_refresh()
    print("illegal actions are refused", flush=True)


if __name__ == "__main__":
    main()
