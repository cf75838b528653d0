"""What can be known without running: ranges and forms of index tensors, and what a scatter's region computes."""
