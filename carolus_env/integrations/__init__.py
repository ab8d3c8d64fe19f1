"""OpenSpiel, RLlib, networks of other libraries as agents, and programs in any language.

Nothing here is imported with the package: a module needs the library it is for
(docs/integrations.md).
"""
