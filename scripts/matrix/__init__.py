"""What `scripts/consumer_matrix.py` is made of, one idea per file."""
