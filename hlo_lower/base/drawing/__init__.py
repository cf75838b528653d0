"""Drawings, as SVG and as characters: what is taken of a tensor, a loop over tiles, memory over program order."""
