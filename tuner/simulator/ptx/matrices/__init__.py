"""Matrix fragments of mma and wgmma: which lane holds which element."""
