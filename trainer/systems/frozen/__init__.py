"""Words as an encoder that does not learn sees them."""
