"""Published systems, a folder each: options, encoder, recipes, switches."""
