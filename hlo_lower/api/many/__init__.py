"""Selection: which modules a report is about, and their classification and conversion, in one process or in many."""
