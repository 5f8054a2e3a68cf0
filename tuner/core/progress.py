"""What this process works on at the moment, written where a parent process reads it after a crash or a kill.

A compiler that crashes inside of a pass raises nothing in Python, and one that is killed says nothing either.
So long steps are named before they begin. Without a reader, naming a step costs nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# the steps in which a candidate's own code runs
KERNEL = "the kernel"
TIMING = "timing of the kernel"

LINE_END = "\n"
Reader = Callable[[str], object]  # takes a step, such as "pass convert-scf-to-cf"; "" between steps

_reader: Reader | None = None
_current = ""


def report_steps_to(reader: Reader) -> None:
    """Makes ``reader`` receive the name of each step of this process, from now on."""
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
    """Context manager: its body compiles ``llvm_text`` to machine code, a step that names how long it is."""
    return step(f"LLVM code generation of {llvm_text.count(LINE_END):,} lines")


def enter_step(name: str) -> None:
    """Says that the step ``name`` begins now, within the step of the ``step`` block around."""
    global _current
    _current = name
    if _reader is not None:
        _reader(name)
