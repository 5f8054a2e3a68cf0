"""Hashes of the output for fixed candidates and programs: equal hashes show that the output is unchanged."""
