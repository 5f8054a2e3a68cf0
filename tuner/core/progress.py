"""The step that this process works on now, and what happens while a program is compiled.

A step is written where a parent process reads it after a crash or a kill: a compiler that crashes inside of a
pass raises nothing in Python, and a process that is killed reports nothing. So long steps are named before
they begin. Without a reader, naming a step costs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

# the steps in which a candidate's own code runs
KERNEL = "the kernel"
TIMING = "timing of the kernel"

LINE_END = "\n"
Reader = Callable[[str], object]  # takes a step, such as "pass convert-scf-to-cf"; "" between steps

_reader: Reader | None = None
_current = ""


def report_steps_to(reader: Reader) -> None:
    """Sets the function that is called with the name of each step that this process begins, from now on."""
    global _reader
    _reader = reader


def current_step() -> str:
    """Returns the name of the step that this process is at; "" between steps."""
    return _current


@contextmanager
def step(name: str) -> Iterator[None]:
    """Context manager: its body is the step ``name``, as in "timed out after 10 s in NAME".

    Inner steps replace the name while they run.
    """
    outer = _current
    enter_step(name)
    try:
        yield
    finally:
        enter_step(outer)


def code_generation(llvm_text: str) -> AbstractContextManager[None]:
    """Context manager: its body compiles ``llvm_text`` to machine code.

    The step's name has the number of lines.
    """
    return step(f"LLVM code generation of {llvm_text.count(LINE_END):,} lines")


def enter_step(name: str) -> None:
    """Makes ``name`` the current step and reports it.

    The enclosing ``step`` block restores the previous name when it ends.
    """
    global _current
    _current = name
    if _reader is not None:
        _reader(name)


# What happens while a program is compiled, in order, for who shows its progress.


@dataclass(frozen=True)
class FusionsFound:
    """An event: ``count`` fusions are to be compiled, not counting those whose compilation has ended."""

    count: int


@dataclass(frozen=True)
class FusionStarted:
    """An event: the compilation of a fusion begins."""

    ops: str  # names of its operations


@dataclass(frozen=True)
class FusionEnded:
    """An event: the compilation of a fusion has ended, with its code or without."""


@dataclass(frozen=True)
class WeightsPacked:
    """An event: of ``total_bytes`` bytes of packed weights, ``done_bytes`` have been written so far."""

    done_bytes: int
    total_bytes: int


CompileEvent = FusionsFound | FusionStarted | FusionEnded | WeightsPacked
CompileObserver = Callable[[CompileEvent], None]


def ignore_compile_event(_event: CompileEvent) -> None:
    """Does nothing: the observer where nobody is shown the progress."""
