"""Bots decide as they always did; a change of play is made on purpose and hashed anew."""

import json

import numpy as np
import pytest
from signatures import BOTS, EACH, SIGNATURES, positions, signature

from carolus_env import bots, engine


@pytest.fixture(scope="module")
def fixed():
    return positions()


def test_there_are_so_many_positions_of_every_phase_and_option(fixed):
    for players, states in fixed.items():
        assert len(states) == EACH and (states["players"] == players).all()
        assert engine.legal_masks(states).any(axis=1).all()
        assert len(np.unique(states["phase"])) == 4
        assert set(states["crown_deferred"].tolist()) == {0, 1}
    assert set(fixed[4]["partners_adjacent"].tolist()) == {0, 1}


@pytest.mark.parametrize("spec", BOTS)
def test_a_bot_decides_as_it_did(spec, fixed):
    """On purpose? Then `make signatures`."""
    assert signature(bots.make(spec), fixed) == json.loads(SIGNATURES.read_text())[spec]
