"""What is asked of stored runs: the best, its script, trials, differences between them."""
