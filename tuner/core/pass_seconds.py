"""How long a compiler's passes take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PassSeconds:
    """All runs of one pass while one candidate was compiled."""

    name: str
    seconds: float
    runs: int


@dataclass(frozen=True)
class CompileSeconds:
    """Where the seconds of compiling one candidate went, and what they are true of."""

    compiler: str  # Compiler.fingerprint
    machine: str  # Machine.name of the one that compiled
    passes: tuple[PassSeconds, ...]  # the longest first
