"""Loops and branches: their kind and its rules."""
