"""What a module is rewritten to before it is tiled."""
