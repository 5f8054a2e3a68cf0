"""How often each instruction stands in PTX, LLVM dialect or assembly."""

import re
from collections import Counter

PTX_MARK = ".visible .entry"
# An instruction of PTX, with its guard; the first two parts name the operation: ld.shared, mma.sync, add.
PTX_INSTRUCTION = re.compile(r"^\s+(?:@!?%\w+\s+)?([a-z]\w*(?:\.[a-z]\w*)?)[^;\n]*;", re.MULTILINE)
PTX_TYPE = re.compile(r"\.(?:[bsuf]\d+|pred|bf16|tf32)$")
LLVM_OPERATION = re.compile(r"^\s+(?:%[\w:]+ = )?llvm\.([a-z_]+(?:\.[a-z_]+)*)", re.MULTILINE)
ASSEMBLY = re.compile(r"^  (?:(?:data16|cs|lock|rep|notrack) )*([A-Za-z]\S*)", re.MULTILINE)  # indented
DECLARED = ("mlir.constant", "mlir.poison", "mlir.undef", "mlir.zero")  # compile to no instruction

Mix = tuple[tuple[str, int], ...]  # (instruction, occurrences in the text), most frequent first


def instruction_mix(text: str) -> Mix:
    """Returns (operation, occurrences) in PTX or LLVM-dialect text, the most frequent first."""
    if PTX_MARK in text:
        names = [PTX_TYPE.sub("", name) for name in PTX_INSTRUCTION.findall(text)]
    else:
        names = [name for name in LLVM_OPERATION.findall(text) if name not in DECLARED]
    return _counted(names)


def assembly_mix(text: str) -> Mix:
    """Returns (instruction, occurrences) in an assembly, the most frequent first.

    ``text``: the assembly, in which instructions are indented by two spaces.
    """
    return _counted(ASSEMBLY.findall(text))


def _counted(names: list[str]) -> Mix:
    return tuple(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))
