"""Evaluation of searches and spaces: replays of recorded spaces, warm starts, mining of constraints."""
