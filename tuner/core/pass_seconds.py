"""Seconds of the compiler's passes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PassSeconds:
    """The seconds of one compiler pass, summed over all its runs in the compilation of one candidate."""

    name: str
    seconds: float
    runs: int


@dataclass(frozen=True)
class CompileSeconds:
    """Seconds of each compiler pass in the compilation of one candidate, with compiler and machine."""

    compiler: str  # Compiler.fingerprint
    machine: str  # Machine.name of the compiling machine
    passes: tuple[PassSeconds, ...]  # the longest first
