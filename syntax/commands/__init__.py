"""Output of commands, for all packages."""
