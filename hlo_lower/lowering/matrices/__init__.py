"""What an op of linear algebra computes, and stacks of matrices, for the rules that write it out row by row."""
