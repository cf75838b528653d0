"""Between which numbers the elements of index tensors lie."""
