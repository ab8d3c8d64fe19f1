"""Adapters to other libraries, to play, train and search. Each module imports its own.

Nothing here is imported with the package, since each module needs the library it is for
(docs/integrations.md has their versions, and what works).
"""
