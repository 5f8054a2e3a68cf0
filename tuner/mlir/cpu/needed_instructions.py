"""Which instruction sets code in LLVM dialect needs: those of the intrinsics that it calls.

All else in the code, such as vectors of any width, LLVM compiles for every processor.
"""

import re

# Part of an intrinsic's name -> instruction set, as in tuner.core.instruction_sets
SETS = {
    r"avx512bf16\.": "avx512-bf16",
    r"avx512\.vpdp(?:busd|wssd)": "vnni",  # of 256 bits: AVX-VNNI has it as well
    r"avx512\.(?!vpdp)|avx512\.vpdp\w+\.512": "avx512",
    r"avx2\.": "avx2",
    r"tdpbf16ps": "amx-bf16",
    r"tdpb[su][su]d": "amx-int8",
}


def instructions_needed(llvm_text: str) -> tuple[str, ...]:
    """Returns the names of the instruction sets without which code in LLVM dialect cannot run.

    ``llvm_text`` is a module. Example: ("amx-bf16",). Intrinsics of sets that tuner does not know do not
    count.
    """
    called = set(re.findall(r'"llvm\.x86\.([\w.]+)"', llvm_text))
    return tuple(name for part, name in SETS.items() if any(re.match(part, each) for each in called))
