"""The elements of index tensors as linear forms of their positions and of known symbols."""
