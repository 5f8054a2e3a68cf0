"""The machine code (SASS) of GPU kernels as text and instructions.

nvdisasm's listing of a cubin is parsed to instructions with their control codes, and loops. A control code is
part of each 128-bit instruction since Volta: the stall count (cycles before the warp may issue the next
instruction), and the barriers that the instruction sets and waits for. NVIDIA does not document control
codes; see Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from tuner.core.compiled_code import KernelCode
from tuner.gpu.target.compiler import locate

# Bits of the high word of an instruction.
STALL_BIT = 41
WRITE_BARRIER_BIT = 46
WAITS_BIT = 52
NO_BARRIER = 7
LABEL = re.compile(r"^(\.L_x_\d+):")
FUNCTION = re.compile(r"^\.text\.(\w+):")
INSTRUCTION = re.compile(
    r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?"
    r"(?P<text>[A-Z][^;]*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/$"
)
HIGH_WORD = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/$")
TARGET = re.compile(r"\((\.L_x_\d+)\)")
REGISTER = re.compile(r"\bR(\d+)(\.reuse)?")
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class MachineInstruction:
    """One SASS instruction of a kernel, with its control code: stall cycles and scheduling barriers."""

    address: int  # in bytes, from the start of its kernel
    text: str  # without the predicate that guards it
    stall_cycles: int = 1
    sets: int | None = None  # the barrier that signals that its result is ready
    waits: tuple[int, ...] = ()  # barriers that the instruction waits for

    @property
    def name(self) -> str:
        """Returns the mnemonic with its modifiers: "HMMA.16816.F32"."""
        return self.text.split()[0]

    @property
    def mnemonic(self) -> str:
        """Returns the mnemonic without its modifiers: "HMMA" for "HMMA.16816.F32"."""
        return self.name.partition(".")[0]

    @property
    def words(self) -> int:
        """Returns how many 4-byte words per lane a load or store moves: 4 for .128, 2 for .64, else 1.

        Also 1 for loads and stores of matrices (LDSM, STSM), whatever they move.
        """
        parts = self.name.split(".")
        if "128" in parts:
            return 4
        if "64" in parts:
            return 2
        return 1

    @property
    def sources(self) -> tuple[tuple[int, bool], ...]:
        """Returns (register number, has ``.reuse``) of each register but the first, the destination.

        ``.reuse``: the operand is kept in a cache for the next instruction.
        """
        return tuple((int(number), bool(reused)) for number, reused in REGISTER.findall(self.text)[1:])

    @property
    def slots(self) -> tuple[tuple[int, bool] | None, ...]:
        """Returns (register number, has ``.reuse``) per source operand; None for one without register."""
        operands = self.text.partition(" ")[2].split(",")[1:]
        matches = map(REGISTER.search, operands)
        return tuple((int(match[1]), bool(match[2])) if match else None for match in matches)


@dataclass(frozen=True)
class Kernel:
    """The machine code (SASS) of one GPU kernel: its instructions in order, and its labels."""

    name: str
    code: tuple[MachineInstruction, ...]
    labels: tuple[tuple[str, int], ...]  # (label, address)

    def loops(self) -> tuple[tuple[int, int], ...]:
        """Returns each loop as (first index, index after the last); of loops with one start the longest.

        Backward branches over an EXIT, which end code that retries a wait, and branches to themselves are not
        loops.
        """
        index_of = {instruction.address: index for index, instruction in enumerate(self.code)}
        addresses = dict(self.labels)
        ends: dict[int, int] = {}  # by the first instruction
        for index, branch in enumerate(self.code):
            target = TARGET.search(branch.text)
            if branch.name.startswith("BRA") and target and addresses[target[1]] <= branch.address:
                start = index_of[addresses[target[1]]]
                is_inside = all(instruction.name != "EXIT" for instruction in self.code[start:index])
                if start < index and is_inside:
                    ends[start] = index + 1
        return tuple(ends.items())


def read_kernels(listing: str) -> tuple[Kernel, ...]:
    """Parses a listing that ``nvdisasm -c -hex`` printed; returns its kernels in order."""
    found: list[tuple[str, list[MachineInstruction], dict[str, int]]] = []
    pending: list[str] = []  # labels of the next instruction
    for line, below in pairwise((*listing.splitlines(), "")):
        if function := FUNCTION.match(line):
            found.append((function[1], [], {}))
        elif label := LABEL.match(line):
            pending.append(label[1])
        elif (instruction := INSTRUCTION.match(line)) and found:
            _, code, labels = found[-1]
            code.append(_instruction(int(instruction["address"], 16), instruction["text"], below))
            labels |= dict.fromkeys(pending, code[-1].address)
            pending.clear()
    return tuple(Kernel(name, tuple(code), tuple(labels.items())) for name, code, labels in found)


def _instruction(address: int, text: str, below: str) -> MachineInstruction:  # below: the next line
    word = HIGH_WORD.match(below)
    assert word is not None, f"found {below!r}, allowed the high word of an instruction"
    bits = int(word[1], 16)
    barrier = bits >> WRITE_BARRIER_BIT & 7
    waits = tuple(number for number in range(6) if bits >> WAITS_BIT & 1 << number)
    return MachineInstruction(
        address, text, bits >> STALL_BIT & 15, None if barrier == NO_BARRIER else barrier, waits
    )


def listing_of(cubin: bytes, nvdisasm: Path) -> str:
    """Runs nvdisasm on a cubin; returns its listing.

    Raises CalledProcessError if nvdisasm fails, TimeoutExpired after TIMEOUT_S.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvdisasm), "-c", "-hex", file.name]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout


def sass(program: KernelCode | None) -> str:
    """Returns a program's SASS text, kernel by kernel.

    "" if there is no program, no cubin or no nvdisasm, or if nvdisasm fails.
    """
    tool = nvdisasm()
    if tool is None or program is None or not program.binary:
        return ""
    try:
        kernels = read_kernels(listing_of(program.binary, tool.path))
    except subprocess.SubprocessError:
        return ""
    lines = []
    for kernel in kernels:
        lines.append(f"<{kernel.name}>:\n")
        lines += [f"  {instruction.text}\n" for instruction in kernel.code]
    return "".join(lines)


nvdisasm = cache(lambda: locate("nvdisasm"))
