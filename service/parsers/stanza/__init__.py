"""Stanza: pipelines of neural models, an optional extra that brings torch."""
