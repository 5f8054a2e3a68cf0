"""Checks of stored results, measured again: still as fast, still correct; of scripts that are submitted."""

# What other packages may import; the rest is inside.
__all__ = ["audit", "gate", "reevaluation", "script_check", "submission", "submission_document"]
