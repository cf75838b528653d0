"""Named ops taken out of a module as composites, and composites written out again."""
