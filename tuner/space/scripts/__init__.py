"""Strategies (templates, plain schedules), the choice of a run's strategies, headers of exported scripts."""

# What other packages may import; the rest is inside.
__all__ = ["choice", "header", "matchers", "script_halves", "strategy"]
