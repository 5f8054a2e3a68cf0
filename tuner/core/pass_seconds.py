"""Seconds of the compiler's passes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PassSeconds:
    """The total of one pass over all its runs while one candidate was compiled."""

    name: str
    seconds: float
    runs: int


@dataclass(frozen=True)
class CompileSeconds:
    """Seconds per pass of compiling one candidate, and the compiler and machine that they hold for."""

    compiler: str  # Compiler.fingerprint
    machine: str  # Machine.name of the compiling machine
    passes: tuple[PassSeconds, ...]  # the longest first
