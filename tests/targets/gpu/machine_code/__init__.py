"""Counts of machine code under test. Listings are written by hand; real ones need nvdisasm."""
