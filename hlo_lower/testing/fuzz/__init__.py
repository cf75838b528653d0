"""Random legal scatters: drawn, lowered, run, judged, and shrunk where they fail."""
