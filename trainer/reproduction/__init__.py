"""Published figures, computed again: ``parsebank reproduce`` and `docs/reproduction.md`."""
