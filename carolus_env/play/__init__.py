"""Playing with people: `session` holds a game, `server` and its page show it."""
