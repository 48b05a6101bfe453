"""What a parser that reads wordpieces and its training share: pieces, and scripts of edits."""
