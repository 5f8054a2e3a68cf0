"""Analytical models: what the hardware can hold, and the cycles that a schedule would take."""
