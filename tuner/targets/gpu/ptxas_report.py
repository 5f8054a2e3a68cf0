"""Parses the report of ``ptxas -v`` on each kernel."""

import re
from dataclasses import dataclass, field

ENTRY = re.compile(r"Compiling entry function '(\S+)' for ")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?(.*)")
STATIC_SHARED = re.compile(r"(\d+) bytes smem")
# "warning : ..." and advice such as "info : (C7519) Potential Performance Loss: ..."
NOTE = re.compile(r"ptxas\s*(?:warning\s*:\s*|info\s*:\s*(?=\(C\d+\)))(.*)")
# "ptxas k.ptx, line 4; error   : ..." or "ptxas fatal   : ..."
FAULT = re.compile(r"ptxas(?:.*, (line \d+);)? *(?:error|fatal) *: (.*)")


@dataclass(frozen=True)
class KernelReport:
    """The resources of one kernel as ``ptxas -v`` reports them: registers, spills, shared memory, notes."""

    kernel: str
    registers: int
    barriers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_shared_bytes: int
    notes: tuple[str, ...]


@dataclass
class _Section:
    """The part of a kernel's report that has been parsed so far."""

    kernel: str
    stack: tuple[int, int, int] = (0, 0, 0)
    used: tuple[int, int, int] | None = None  # registers, barriers, static shared bytes
    notes: list[str] = field(default_factory=list)


def read_report(text: str) -> tuple[KernelReport, ...]:
    """Returns the resources of each kernel in the output ``text`` of ``ptxas -v``, in its order.

    A note before the first kernel is given to each kernel. Raises ValueError where the number of registers of
    a kernel is missing.
    """
    sections: list[_Section] = []
    general: list[str] = []
    for line in text.splitlines():
        if entry := ENTRY.search(line):
            sections.append(_Section(entry[1]))
        elif note := NOTE.match(line):
            (sections[-1].notes if sections else general).append(note[1].strip())
        elif sections:
            _read_figures(sections[-1], line)
    return tuple(_finish(section, general) for section in sections)


def first_fault(text: str) -> str:
    """Returns the first error in ptxas's output ``text`` as one line, without the name of the temporary file.

    Without an error, the first line of the text that is not blank; "no message" for a blank text.
    """
    for line in text.splitlines():
        if fault := FAULT.match(line):
            return f"{fault[1]}: {fault[2]}" if fault[1] else str(fault[2])
    return text.strip().partition("\n")[0] or "no message"


def _read_figures(section: _Section, line: str) -> None:
    if stack := STACK.search(line):
        section.stack = (int(stack[1]), int(stack[2]), int(stack[3]))
    elif used := USED.search(line):
        shared = STATIC_SHARED.search(used[3])
        section.used = (int(used[1]), int(used[2] or 0), int(shared[1]) if shared else 0)


def _finish(section: _Section, general: list[str]) -> KernelReport:
    if section.used is None:
        raise ValueError(f"ptxas -v: found no registers of {section.kernel}, allowed 'Used N registers'")
    registers, barriers, shared = section.used
    return KernelReport(
        section.kernel, registers, barriers, *section.stack, shared, (*general, *section.notes)
    )
