"""Environments, of decisions or turns: PettingZoo (``aec``), Gymnasium (``gym``), SB3 (``sb3``)."""
