"""Studies: folders of runs of one recipe that are named by their settings.

A study trains what has no result yet, so that one that was interrupted goes on where it stopped.
"""
