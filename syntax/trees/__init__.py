"""Trees, sentences and parses; CoNLL-U; scores of parses."""
