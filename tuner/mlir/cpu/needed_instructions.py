"""The instruction sets that code needs, read from text: of LLVM dialect, or of a transform script.

MLIR is not loaded. Transform ops choose the instruction by which they multiply with ``instruction_of``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.instruction_sets import (
    AMX_BF16,
    AMX_INT8,
    ARM_BF16,
    AVX2,
    AVX512,
    AVX512_BF16,
    DOTPROD,
    I8MM,
    VNNI,
)

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


# Transform scripts.

AARCH64_LANES = 4  # sums of a register of 128 bits
USUAL_LANES = 16  # of an op that does not give them
ZMM_LANES = 16  # of 512 bits


@dataclass(frozen=True)
class KnownInstruction:
    """An instruction that multiplies, which the attribute ``instruction`` of a transform op names."""

    element: str  # of A and B as they are stored: "i8"
    instruction_set: str  # without which it cannot run; "": LLVM compiles it for every processor
    lanes: int = 0  # sums of the only register that it has; 0: of several


INSTRUCTIONS = {
    "vpdpbusd": KnownInstruction("i8", VNNI),
    "vpmaddwd": KnownInstruction("i8", AVX2),
    "sdot": KnownInstruction("i8", DOTPROD, AARCH64_LANES),
    "smmla": KnownInstruction("i8", I8MM, AARCH64_LANES),
    "bfdot": KnownInstruction("bf16", ARM_BF16, AARCH64_LANES),
    "bfmmla": KnownInstruction("bf16", ARM_BF16, AARCH64_LANES),
    "vdpbf16ps": KnownInstruction("bf16", AVX512_BF16, ZMM_LANES),
    "fma": KnownInstruction("bf16", ""),
    "tile_mulf": KnownInstruction("bf16", AMX_BF16),
    "tile_muli": KnownInstruction("i8", AMX_INT8),
}
Attributes = Mapping[str, int | str]  # of a transform op: name -> value
PATTERN = "transform.apply_patterns.x86.vector_contract_to_{}_dot_product"
PACKED = PATTERN.format("packed_type")
QUANTIZED_MATMUL = "tuner.quantized_matmul"
IN_TILES = ("tuner.amx_block", "tuner.convolution_tiles", PATTERN.format("amx"))
MULTIPLYING_OPS = (
    *(*IN_TILES, PACKED, QUANTIZED_MATMUL),
    *("tuner.convolution_block", "tuner.matrix_block", "tuner.pair_block", "tuner.vnni_block"),
)
ELEMENTS = {"tuner.pair_block": "bf16", "tuner.vnni_block": "i8"}  # of ops that multiply no others
OF_SCHEMES = {
    "dots": "i8",
    "bytes": "i8",
    "pairs": "bf16",
}  # of QUANTIZED_MATMUL: the element that is multiplied
OP = re.compile(r'"?\b((?:tuner|transform\.apply_patterns\.x86)\.\w+)\b(?:"\s*\([^)]*\)\s*<?(\{[^}]*\})?)?')
ATTRIBUTE = re.compile(r'\b(\w+) = (?:"(\w+)"|(-?\d+))')


def instruction_of(op: str, element: str, attributes: Attributes) -> str:
    """Returns the name of the instruction by which a transform op multiplies; "fma" for vectors of any width.

    ``op``: "tuner.vnni_block"; ``element``: of A and B. The attribute ``instruction`` names it; else it is
    chosen by ``lanes``, ``words``, ``dots`` and ``scheme``, as the ops' pages say.
    """
    lanes = attributes.get("lanes", USUAL_LANES)
    scheme = attributes.get("scheme", "")
    element = ELEMENTS.get(op, element)
    if op in IN_TILES or scheme == "tiles":
        return "tile_muli" if element == "i8" else "tile_mulf"
    if op == QUANTIZED_MATMUL:
        element = OF_SCHEMES.get(str(scheme), "f32")
    if op == PACKED and element != "bf16":
        return "fma"
    if "instruction" in attributes:
        return str(attributes["instruction"])
    if element == "i8":
        return _of_bytes(op, lanes, has_words=attributes.get("words", 0) == 1)
    if element == "bf16":
        return _of_pairs(op, lanes, attributes)
    return "fma"


def _of_bytes(op: str, lanes: int | str, *, has_words: bool) -> str:
    if op == "tuner.matrix_block":
        return "smmla"
    if lanes == AARCH64_LANES:
        return "sdot"
    if has_words:
        return "vpmaddwd"
    return "vpdpbusd"


def _of_pairs(op: str, lanes: int | str, attributes: Attributes) -> str:
    if op == "tuner.matrix_block":
        return "bfmmla"
    has_dots = True
    if op == "tuner.pair_block":
        has_dots = attributes.get("dots", 0) == 1
    elif op == "tuner.convolution_block":
        has_dots = attributes.get("dots", int(lanes in (AARCH64_LANES, ZMM_LANES))) == 1
    if not has_dots:
        return "fma"
    if lanes == AARCH64_LANES:
        return "bfdot"
    return "vdpbf16ps"


def script_instructions(script: str, dtype: str) -> tuple[str, ...]:
    """Returns the names of the instruction sets without which a script's code cannot run; () for none.

    ``script``: its text, of which lines that begin with ``//`` are not read; ``dtype``: of the operands.
    Vectors of any width need none, since LLVM compiles them for every processor.
    """
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("//"))
    needed: set[str] = set()
    for op, attributes in OP.findall(code):
        if op in MULTIPLYING_OPS:
            found = {name: text or int(number) for name, text, number in ATTRIBUTE.findall(attributes)}
            needed.update(_sets_of(op, dtype, found))
    return tuple(sorted(needed))


def _sets_of(op: str, element: str, attributes: Attributes) -> set[str]:
    instruction = INSTRUCTIONS.get(instruction_of(op, element, attributes))
    if instruction is None:
        return set()
    needed = {instruction.instruction_set} - {""}
    is_zmm = attributes.get("lanes", USUAL_LANES) == ZMM_LANES
    # a quantized matmul also looks up values in a register
    if is_zmm and (instruction.instruction_set in (AVX2, VNNI) or op == QUANTIZED_MATMUL):
        needed.add(AVX512)
    return needed
