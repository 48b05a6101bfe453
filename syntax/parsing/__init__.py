"""Parts that a parser of running text shares with its training: pieces, edit scripts, files."""
