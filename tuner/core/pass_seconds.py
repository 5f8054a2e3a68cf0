"""How long a compiler's passes take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PassSeconds:
    """All runs of one pass while one candidate was compiled."""

    name: str
    seconds: float
    runs: int
