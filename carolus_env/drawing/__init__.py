"""Boards as SVG, pixels, text and animations, drawn from states alone (docs/play.md)."""

from carolus_env.drawing.board import board_svg
from carolus_env.drawing.pictures import Picture, board_pixels, board_png, save_animation, show

__all__ = ["Picture", "board_pixels", "board_png", "board_svg", "save_animation", "show"]
