"""Whether the elements of index tensors are distinct, and in which order they come."""
