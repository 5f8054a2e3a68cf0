"""What a fusion computes, in float64 by numpy, with a bound of the rounding errors."""
