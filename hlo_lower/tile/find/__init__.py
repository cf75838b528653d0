"""What is large, along which axes it can be cut, and what that costs."""
