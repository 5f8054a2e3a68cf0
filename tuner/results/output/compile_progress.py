"""Live progress of compiling a program on stderr: a bar on a terminal, else at most one line."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuner.core.progress import (
    CompileEvent,
    CompileObserver,
    FusionEnded,
    FusionsFound,
    FusionStarted,
    WeightsPacked,
)
from tuner.core.serialization import count_text
from tuner.results.output.formatting import one_line
from tuner.results.output.progress import PLAIN_EVERY_S, print_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

MIB = 1 << 20
NEARLY_DONE = 0.8  # of a compilation: a log gets no line of the rest


class CompileState:
    """What is done of compiling a program: its fusions, then its weights, which are packed."""

    def __init__(self) -> None:
        self._fusions = 0
        self._ended = 0
        self._weights = WeightsPacked(0, 0)
        self._ops = ""  # of the fusion that began last
        self._began_s = time.monotonic()  # of the fusions, then of the weights

    def take(self, event: CompileEvent) -> None:
        match event:
            case FusionsFound(count):
                self._fusions = self._ended + count
            case FusionStarted(ops):
                self._ops = ops
            case FusionEnded():
                self._ended += 1
            case WeightsPacked():
                if not self._weights.total_bytes:
                    self._began_s = time.monotonic()
                self._weights = event

    @property
    def share(self) -> float:
        """Returns how much is done, 0 to 1: of the fusions, and once these are compiled of the weights."""
        if self._weights.total_bytes:
            return self._weights.done_bytes / self._weights.total_bytes
        return self._ended / max(1, self._fusions)

    @property
    def line(self) -> str:
        """Returns what is done: "3 of 12 fusions compiled, 8 s left, now linalg.matmul"."""
        parts = []
        if self._fusions:
            parts.append(f"{self._ended} of {count_text(self._fusions, 'fusion')} compiled")
        total_bytes = self._weights.total_bytes
        if total_bytes:
            parts.append(f"{self._weights.done_bytes / MIB:,.0f} of {total_bytes / MIB:,.0f} MiB packed")
        if 0 < self.share < 1:
            elapsed_s = time.monotonic() - self._began_s
            parts.append(f"{elapsed_s * (1 / self.share - 1):.0f} s left")
        if self._ops and not total_bytes:
            parts.append(f"now {self._ops}")
        return ", ".join(parts)


@contextlib.contextmanager
def compile_progress() -> Iterator[CompileObserver]:
    """Context manager: gives an observer that shows on stderr how much of a program is compiled.

    On a terminal a bar is updated in place, from the first fusion or weight on; otherwise at most one line is
    printed, after 5 s (PLAIN_EVERY_S).
    """
    if not sys.stderr.isatty():
        yield PlainCompileProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("compiling"),
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
    )
    bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
    with contextlib.ExitStack() as shown:
        yield LiveCompileProgress(bar, shown)


class LiveCompileProgress:
    """Updates a bar in place; the bar is entered into ``shown`` at the first event."""

    def __init__(self, bar: "Progress", shown: contextlib.ExitStack) -> None:
        self._bar = bar
        self._shown = shown
        self._state = CompileState()
        self._task: TaskID | None = None

    def __call__(self, event: CompileEvent) -> None:
        self._state.take(event)
        if self._task is None:
            self._shown.enter_context(self._bar)
            self._task = self._bar.add_task("", total=1.0)
        self._bar.update(self._task, completed=self._state.share, description=one_line(self._state.line))


class PlainCompileProgress:
    """Prints, at most once, how much is compiled, after PLAIN_EVERY_S (5) seconds.

    For a stderr without terminal.
    """

    def __init__(self) -> None:
        self._state = CompileState()
        self._due_s = time.monotonic() + PLAIN_EVERY_S

    def __call__(self, event: CompileEvent) -> None:
        self._state.take(event)
        is_ended = isinstance(event, FusionEnded) or self._state.share >= NEARLY_DONE
        if not is_ended and time.monotonic() >= self._due_s:
            self._due_s = math.inf
            print_line(f"compiling: {self._state.line}")
