"""Hashes of what the tuner makes of fixed candidates and programs: equal ones show that nothing changed."""
