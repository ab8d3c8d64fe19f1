"""Language models as players: rules and positions in words, answers in the notation.

- `prompts`: the rules, a position and what is asked, in words;
- `turns`: whole turns in the notation, read; what was wrong, in the game's words;
- `harness`: ``get_legal_moves``, ``generate_prompt``, ``parse_response``, as Kaggle's game harness;
- `chat`: a client of an OpenAI-compatible chat endpoint, with the standard library alone;
- `agent`: the agent ``llm:``, which asks such an endpoint.

docs/language.md shows them.
"""
