"""What the command lines of all packages share."""
