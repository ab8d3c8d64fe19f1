"""Boards as SVG, pixels, text and animations, drawn from states alone (docs/play.md)."""

from carolus_env.drawing.animation import save_animation
from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pictures import Picture, show
from carolus_env.drawing.pixels import board_pixels, board_png

__all__ = ["Picture", "board_pixels", "board_png", "board_svg", "save_animation", "show"]
