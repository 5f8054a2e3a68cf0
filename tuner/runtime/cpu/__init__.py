"""Thread teams, guarded arrays and the roofline of this processor."""
