"""What the store's parses show: statistics, agreement of parsers, typology, exports."""
