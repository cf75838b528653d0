"""What a value is: where it comes from, what it is numbered, what may be asked of it and at what price."""
