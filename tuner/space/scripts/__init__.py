"""Strategies (templates, plain schedules), the choice of a run's strategies, headers of exported scripts."""
