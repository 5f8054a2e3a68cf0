"""The hypergeometric distribution: the probability to draw items of one kind only, without replacement."""

from math import lgamma


def log_chance_of_one_kind(drawn: int, kind: int, every: int) -> float:
    """Returns the logarithm of C(kind, drawn) / C(every, drawn); ``drawn`` is at most ``kind``."""
    return (
        _log_factorial(kind)
        - _log_factorial(kind - drawn)
        + _log_factorial(every - drawn)
        - _log_factorial(every)
    )


def _log_factorial(number: int) -> float:
    return lgamma(number + 1)
