"""Determines which copies between host and device memory a function needs, and inserts the copies."""
