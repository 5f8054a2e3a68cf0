"""The instruction sets that code in LLVM dialect needs, read from its text: MLIR is not loaded."""

import re

# Pattern that an intrinsic's name begins with, after "llvm." -> instruction set (tuner.core.instruction_sets)
SETS = {
    r"x86\.avx512bf16\.": "avx512-bf16",
    r"x86\.avx512\.vpdp(?:busd|wssd)": "vnni",  # of 256 bits: AVX-VNNI has it as well
    r"x86\.avx512\.(?!vpdp)|x86\.avx512\.vpdp\w+\.512": "avx512",
    r"x86\.avx2\.": "avx2",
    r"x86\.tdpbf16ps": "amx-bf16",
    r"x86\.tdpb[su][su]d": "amx-int8",
    r"aarch64\.neon\.[su]dot\.": "dotprod",
    r"aarch64\.neon\.(?:[su]mmla|usmmla|usdot)\.": "i8mm",
    r"aarch64\.neon\.bf(?:dot|mmla|mlal)": "arm-bf16",
}
ROUNDING = re.compile(r"llvm\.fptrunc [^\n]*bf16\b")  # left in code for processors with AVX512-BF16 alone


def instructions_needed(llvm_text: str) -> tuple[str, ...]:
    """Returns the instruction sets, such as ("amx-bf16",), of the intrinsics that a module calls.

    Rounding to bf16 needs "avx512-bf16". LLVM compiles all else in the code, such as vectors of any width,
    for every processor.
    """
    called = set(re.findall(r'"llvm\.((?:x86|aarch64)\.[\w.]+)"', llvm_text))
    if ROUNDING.search(llvm_text):
        called.add("x86.avx512bf16.rounding")
    needed = []
    for pattern, name in SETS.items():
        if any(re.match(pattern, intrinsic) for intrinsic in called):
            needed.append(name)
    return tuple(needed)
