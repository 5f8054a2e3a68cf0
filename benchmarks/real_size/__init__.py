"""Models of the size that users have: time to compile, memory, and calls next to other ways to run them."""
