"""Reports on a store: statistics, agreement of parsers, word order, exports."""
