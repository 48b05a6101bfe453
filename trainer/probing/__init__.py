"""Probes of the states of all layers of an encoder: ``parsebank probe``."""
