"""Pictures of a game, from its state alone."""

from carolus_env.drawing.board import board_svg

__all__ = ["board_svg"]
