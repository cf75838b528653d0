"""Which values live at the same time, and how many bytes they take."""
