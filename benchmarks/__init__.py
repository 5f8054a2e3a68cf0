"""Timings, fuzzing and GPU checks that are run by hand, and the stand-ins that tests share."""
