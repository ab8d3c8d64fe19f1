"""Checks of other libraries with the installed package; docs/integrations.md has the results."""
