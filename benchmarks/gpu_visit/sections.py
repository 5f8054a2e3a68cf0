"""The sections of a visit in the order of what they decide, each with its seconds."""

from dataclasses import dataclass

TOTAL_S = 450.0  # of the 540 that one command may take; the start and a second short command take the rest


@dataclass(frozen=True)
class VisitSection:
    """One section of a visit."""

    name: str  # of its rows
    seconds: float  # its share of ``TOTAL_S``; what it leaves goes to the later ones
    decides: str


SECTIONS = (
    VisitSection("code", 10, "whether driver, clocks and power are as expected, and all code loads"),
    VisitSection("micro_kernels", 25, "register ports or the path to shared memory; bits that a sum keeps"),
    VisitSection("f32", 60, "the first configurations of f32; what products in rows and a transposed A gain"),
    VisitSection("tf32", 45, "whether the winner of f16 wins for tf32 too, nn by registers as well"),
    VisitSection("f32_by_tensor_cores", 50, "whether products of bf16 or tf32 beat cuBLAS's f32"),
    VisitSection("eight_bits", 40, "i8 and e4m3 against cuBLAS and cuBLASLt; e4m3 with scales of blocks"),
    VisitSection("decode", 50, "the share of the memory's bandwidth with 1, 16 and 64 rows"),
    VisitSection("experts", 20, "what finding its group costs a block of a grouped product"),
    VisitSection("regression", 35, "whether f16 and bf16 are as fast as before; one search in f32"),
    VisitSection(
        "correctness", 100, "whether strategies whose code changed are right, also by the sanitizer"
    ),
    VisitSection("ranking", 15, "whether the cost models order new points as their times do"),
)
WEIGHTS = {section.name: section.seconds for section in SECTIONS}
