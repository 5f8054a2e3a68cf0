"""Times as text, with a unit that keeps their digits: 1.2 ms, 13.45 us, 8.25 ns."""

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds_text(seconds: float) -> str:
    """Returns a time, given in seconds, with up to four significant digits and its unit: s, ms, us or ns."""
    scale, unit = next((pair for pair in UNITS if seconds >= pair[0]), (1e-9, "ns"))
    return f"{seconds / scale:.4g} {unit}"


def interval_text(interval_s: tuple[float, float]) -> str:
    """Returns both ends of an interval of times: '1.2 ms .. 1.3 ms'."""
    return f"{seconds_text(interval_s[0])} .. {seconds_text(interval_s[1])}"
