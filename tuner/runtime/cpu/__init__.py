"""Thread teams, guarded arrays, host conditions and the roofline of this machine's processor."""
