"""Linalg on tensors: what a module becomes for a target whose dialect is linalg."""
