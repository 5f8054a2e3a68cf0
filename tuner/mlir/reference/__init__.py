"""What a group of operations computes, in float64 by numpy, with a bound of the rounding errors."""
