"""Classify."""
