"""The commands: ``carolus train``, ``carolus evaluate`` and so on (``python -m carolus_env``)."""
