"""Symbolic shapes: what the dims of a module's arguments are called, and binding them to sizes."""
