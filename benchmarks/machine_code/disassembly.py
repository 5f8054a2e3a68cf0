"""Reads the machine code of a cubin by nvdisasm: instructions with their control codes, and loops.

A control code is part of each instruction of 128 bits since Volta: the stall count (cycles before the warp
may issue the next instruction), barriers that are set and waited for. NVIDIA documents none of it; see Jia et
al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import pairwise

from tuner.targets.gpu.cuda_tools import Tool

TIMEOUT_S = 60.0
STALL_BIT = 41  # of the high word of an instruction; 4 bits
LABEL = re.compile(r"^(\.L_x_\d+):")
FUNCTION = re.compile(r"^\.text\.(\w+):")
INSTRUCTION = re.compile(
    r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?"
    r"(?P<text>[A-Z][^;]*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/$"
)
HIGH_WORD = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/$")
TARGET = re.compile(r"\((\.L_x_\d+)\)")
PRODUCTS = ("HMMA", "HGMMA", "FFMA", "DFMA", "DMMA")


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction of a kernel."""

    address: int  # in bytes, from the start of its kernel
    text: str  # without the predicate that guards it
    stall_cycles: int

    @property
    def name(self) -> str:
        """Returns the mnemonic with its modifiers."""
        return self.text.split()[0]

    @property
    def is_product(self) -> bool:
        """Tells whether it multiplies and adds up, which is what a matmul is there for."""
        return self.name.startswith(PRODUCTS)


@dataclass(frozen=True)
class Kernel:
    """The code of one kernel."""

    name: str
    code: tuple[MachineInstruction, ...]
    labels: tuple[tuple[str, int], ...]  # (label, address)

    def main_loop(self) -> tuple[int, int] | None:
        """Returns (first, behind the last) of the loop with most products, of the shortest of those."""
        loops = [(self._index(to), end + 1) for end, to in self._jumps_back()]
        counted = [
            (sum(each.is_product for each in self.code[start:end]), start - end, (start, end))
            for start, end in loops
        ]
        return max((each for each in counted if each[0]), default=(0, 0, None))[2]

    def _jumps_back(self) -> list[tuple[int, int]]:
        """Returns (index of a branch, address it jumps back to)."""
        addresses = dict(self.labels)
        found = []
        for index, each in enumerate(self.code):
            target = TARGET.search(each.text)
            if each.name.startswith("BRA") and target and addresses[target[1]] <= each.address:
                found.append((index, addresses[target[1]]))
        return found

    def _index(self, address: int) -> int:
        return next(index for index, each in enumerate(self.code) if each.address == address)


def disassemble(cubin: bytes, tool: Tool) -> tuple[Kernel, ...]:
    """Returns the kernels of a cubin. Raises CalledProcessError where nvdisasm cannot read it."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool.path), "-c", "-hex", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return read_kernels(done.stdout)


def read_kernels(listing: str) -> tuple[Kernel, ...]:
    """Reads what ``nvdisasm -c -hex`` prints."""
    found: list[tuple[str, list[MachineInstruction], dict[str, int]]] = []
    pending: list[str] = []  # labels of the next instruction
    for line, below in pairwise((*listing.splitlines(), "")):
        if function := FUNCTION.match(line):
            found.append((function[1], [], {}))
        elif label := LABEL.match(line):
            pending.append(label[1])
        elif (instruction := INSTRUCTION.match(line)) and found:
            _, code, labels = found[-1]
            address = int(instruction["address"], 16)
            code.append(MachineInstruction(address, instruction["text"], _stall_cycles(below)))
            labels |= dict.fromkeys(pending, address)
            pending.clear()
    return tuple(Kernel(name, tuple(code), tuple(labels.items())) for name, code, labels in found)


def _stall_cycles(line: str) -> int:
    """Returns the stall count in the second line of an instruction: the high word."""
    word = HIGH_WORD.match(line)
    assert word is not None, f"found {line!r}, allowed the high word of an instruction"
    return int(word[1], 16) >> STALL_BIT & 15
