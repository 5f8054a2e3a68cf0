"""Data races by vector clocks, and bank conflicts of shared memory."""
