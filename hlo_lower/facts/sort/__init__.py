"""What a sort sorts by, which of its rows are read, and what its sizes ask for."""
