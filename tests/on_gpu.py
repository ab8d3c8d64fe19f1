"""Whole games within one CUDA kernel, by the kernels that the engine plays with.

Run by tests/test_cuda.py in a process of its own, since the environment says where it runs:

    python tests/on_gpu.py play START.npz END.npz    # on a GPU, or in Numba's simulator of one
    python tests/on_gpu.py compile                   # prints the GPU's code (PTX); needs no GPU
"""

import sys
from types import SimpleNamespace

import numba
import numpy as np
from numba import cuda

from carolus_env.engine import observation
from carolus_env.engine.kernels import generator, legal, turns
from carolus_env.engine.rules import ACTIONS, MAX_PLAYERS, OVER, TERRITORIES
from carolus_env.engine.state import STATE

CAPABILITY = (8, 0)  # compiled for; newer GPUs take the code too


def full_games(states, streams, territories, masks, observations, payoffs, decisions):
    """Game ``g`` in thread ``g``, from the set-up to the end.

    Leaves the mask of the last decision, what seat 0 sees at the end, the payoffs, and the number
    of decisions: -1 where the random choice, the mask and `is_legal` were not of one mind.
    """
    g = cuda.grid(1)
    if g >= states.shape[0]:
        return
    s = states[g]
    turns.set_up(s, territories, g)
    while s["phase"] != OVER:
        streams[g] = generator.step(streams[g])
        number = legal.legal_set(s)
        action = legal.random_action(number, generator.mix(streams[g]))
        legal.write_mask(number, masks, g)
        if masks[g, action] != 1 or not legal.is_legal(s, action):
            decisions[g] = -1
            return
        turns.play(s, action)
        turns.roll_on(s)
        decisions[g] += 1
    observation.write_observation(s, 0, observations, g)
    turns.write_returns(s, payoffs, g)


def play(start: str, end: str) -> None:
    """Play the games in the one file, and write what comes out into the other."""
    with np.load(start) as given:
        states, streams = given["states"], given["streams"]
    n, players = len(states), int(states["players"][0])
    result = {
        "states": states,
        "streams": streams,
        "territories": np.zeros((n, TERRITORIES), np.int64),
        "masks": np.zeros((n, ACTIONS), np.int8),
        "seen": np.zeros((n, observation.length(players)), np.uint8),
        "payoffs": np.zeros((n, MAX_PLAYERS)),
        "decisions": np.zeros(n, np.int64),
    }
    threads = 32
    cuda.jit(full_games)[-(-n // threads), threads](*result.values())
    np.savez(end, **result)


def ptx() -> str:
    """The code of `whole_games` and all that it calls."""
    from numba.cuda import dispatcher

    if not cuda.is_available():  # functions within it are compiled for the GPU at hand: say which
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    one = [numba.from_dtype(STATE)[::1], numba.uint64[::1]]
    two = [dtype[:, ::1] for dtype in (numba.int64, numba.int8, numba.uint8, numba.float64)]
    code, _ = cuda.compile_ptx(full_games, (*one, *two, numba.int64[::1]), cc=CAPABILITY)
    return code


if __name__ == "__main__":
    if sys.argv[1] == "play":
        play(*sys.argv[2:])
    else:
        print(ptx())
