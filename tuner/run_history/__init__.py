"""Queries of stored runs: the best trial and its script, past trials, differences between trials."""
