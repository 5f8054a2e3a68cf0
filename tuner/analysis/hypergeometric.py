"""The hypergeometric distribution: the probability to draw items of one kind only, without replacement."""

from math import lgamma


def log_chance_of_one_kind(drawn: int, kind: int, every: int) -> float:
    """Returns the natural logarithm of the probability that ``drawn`` random items are all of one kind.

    ``kind`` of the ``every`` items are of this kind: log(C(kind, drawn) / C(every, drawn)). Items are drawn
    without replacement; ``drawn`` is at most ``kind``.
    """
    return (
        _log_factorial(kind)
        - _log_factorial(kind - drawn)
        + _log_factorial(every - drawn)
        - _log_factorial(every)
    )


def _log_factorial(number: int) -> float:
    return lgamma(number + 1)
