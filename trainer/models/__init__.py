"""Encoders that read syntax, and the bricks they are made of; `trainer.models.build` lists them."""
