"""Bricks that several systems share: attention that reads syntax, masks, stock encoders."""
