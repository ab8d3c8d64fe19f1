"""Moves, games and positions in text that reads like the game; docs/notation.md has the grammar."""

from carolus_env.notation.moves import (
    NotationError,
    TurnText,
    event_text,
    game_text,
    legal_text,
    move_text,
    read_move,
    read_moves,
    region_text,
    roll_text,
    turn_texts,
)
from carolus_env.notation.positions import from_text, to_line

__all__ = [
    "NotationError",
    "TurnText",
    "event_text",
    "from_text",
    "game_text",
    "legal_text",
    "move_text",
    "read_move",
    "read_moves",
    "region_text",
    "roll_text",
    "to_line",
    "turn_texts",
]
