"""Forms that a consumer refuses or gets wrong: what each is, and its cure."""
