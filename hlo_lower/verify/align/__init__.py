"""What both modules have, and the regions in which they differ."""
