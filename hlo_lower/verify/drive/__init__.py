"""Inputs that drive a piece to all that it may come out as."""
