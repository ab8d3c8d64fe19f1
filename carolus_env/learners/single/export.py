"""A model as ONNX, for other languages and runtimes.

    python -m carolus_env.learners.single.export MODEL OUT.onnx

Inputs: ``observation`` ``(N, length)`` float32, the whole numbers of a uint8 observation of
`carolus_env.observe` (not the scaled ones), and ``mask`` ``(N, 95)`` bool, True where an action is
legal. Outputs, float32: ``log_policy`` ``(N, 95)``, minus infinity where the mask is False, and
``chances`` ``(N, teams)``, each team's win probability: the team of the player to move
first, then clockwise.

The file's metadata holds the model's JSON, under ``carolus``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from torch import nn

from carolus_env.bots import Model, ModelError
from carolus_env.bots.neural import model, network
from carolus_env.engine import observation
from carolus_env.engine.rules import ACTIONS
from carolus_env.system.files import write_file

OPSET = 18


class _Network(nn.Module):
    """Observations and masks to log probabilities and win probabilities."""

    def __init__(self, policy: Model) -> None:
        super().__init__()
        self.players = policy.size.players
        weights = {name: torch.from_numpy(w.copy()) for name, w in policy.weights.items()}
        self.weights = nn.ParameterDict(weights)

    def forward(
        self, observation: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits, scores = network.forward(dict(self.weights), observation, self.players, torch)
        policy = torch.log_softmax(logits.masked_fill(~mask, -torch.inf), dim=1)
        return policy, torch.softmax(scores, dim=1)


def to_onnx(policy: Model) -> bytes:
    """The model as an ONNX file."""
    length = observation.length(policy.size.players)
    example = torch.ones(3, length), torch.ones(3, ACTIONS, dtype=torch.bool)
    inputs, outputs = ["observation", "mask"], ["log_policy", "chances"]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The tracing exporter is the old one, but it needs no further package and takes a
        # fifteenth of the time. A test shows that the graph holds for any batch size.
        warnings.simplefilter("ignore")
        made = Path(folder) / "model.onnx"
        torch.onnx.export(
            _Network(policy).eval(),
            example,
            made,
            dynamo=False,
            opset_version=OPSET,
            input_names=inputs,
            output_names=outputs,
            dynamic_axes={name: {0: "N"} for name in (*inputs, *outputs)},
        )
        graph = onnx.load(made)
    about = {
        "players": policy.size.players,
        "network_version": network.VERSION,
        "observation_version": observation.VERSION,
        "about": dict(policy.about),
    }
    graph.metadata_props.add(key="carolus", value=json.dumps(about))
    onnx.checker.check_model(graph, full_check=True)
    return graph.SerializeToString()


def main(
    arguments: Sequence[str] | None = None,
    program: str = "python -m carolus_env.learners.single.export",
) -> int:
    """Run the command, which the user called ``program``; returns the exit code."""
    parser = argparse.ArgumentParser(program, description="Write a model as ONNX.")
    parser.add_argument("model", help="2p, 3p or 4p (shipped models), or a path")
    parser.add_argument("out", help="the file to write")
    options = parser.parse_args(arguments)
    try:
        policy = model.find(options.model)
        write_file(options.out, to_onnx(policy))
    except (ModelError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {policy.size.players} players, opset {OPSET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
