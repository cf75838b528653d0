"""Loops over tiles as they are written."""
