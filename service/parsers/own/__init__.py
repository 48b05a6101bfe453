"""Parsers that Parsebank trained: exported torch programs, run without the trainer's code."""
