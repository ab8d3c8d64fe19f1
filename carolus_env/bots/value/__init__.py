"""Bots that judge the position after a turn by a network: its inputs, its files, its choice."""
