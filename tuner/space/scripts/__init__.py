"""Scripts of strategies: templates and plain schedules, their knobs, the choice of them, exported scripts."""

# What other packages may import; the rest is inside.
__all__ = ["choice", "header", "matchers", "script_halves", "script_text", "strategy"]
