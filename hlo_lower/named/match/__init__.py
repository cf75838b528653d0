"""Matchers: one named op each."""
