"""The buffers by which the kernels of a GPU's script pass results to one another.

A script states them in comments at its top::

    // workspace: 4 256 192    sizes (slices, m, n) of the sums of 4 parts of K; @reduce adds the slices
    // packed: a b             operands copied first into rows of whole 16 bytes, by @pack_a and @pack_b
    // transposed: a           an operand of which a copy has k innermost, made by @transpose_a
    // low: a                  an operand whose bits beyond tf32 are another matrix, made by @split_a
    // planes: a b             operands that are sums of three matrices of bf16, made by @split_a and @split_b
    // parts: 4 256 192        as a workspace, but @matmul itself adds the slices and writes C
    // zeroed: 12              a number of i32 that are zero before a run, and that the run sets back to zero
"""

import re
from dataclasses import dataclass

from tuner.core.errors import UsageError
from tuner.core.problem import SIZE_LIMIT, Problem
from tuner.payload.cpu import MAPS

COMMENT = re.compile(r"// (workspace|packed|transposed|low|planes|parts|zeroed): (.*)")
SLICES_LIMIT = 64


@dataclass(frozen=True)
class Scratch:
    """Buffers by which a GPU script's kernels pass results on: sums of parts of K, and copies of operands."""

    workspace: tuple[int, int, int] | None = None  # (slices, m, n), m and n each at least the problem's
    packed: tuple[str, ...] = ()  # packed operands: "a", "b", both or none
    low: tuple[str, ...] = ()  # split operands: "a", "b" or none
    planes: tuple[str, ...] = ()  # operands that are three matrices of bf16: "a" and "b", or none
    transposed: tuple[str, ...] = ()  # copied operands: "a", "b" or none; low bits are of the copy then
    parts: tuple[int, int, int] | None = None  # as workspace, of sums that @matmul itself adds up
    zeroed: int = 0  # words of 4 bytes that are zero before and after a run


def scratch_in(script: str, problem: Problem) -> Scratch:
    """Returns the buffers that a script's comments state; the module docstring lists the comments.

    Raises UsageError for sizes that are not three numbers in range, an operand other than a or b, buffers
    that cannot be combined, an operand whose type or layout does not allow the copy, ``packed`` with scales,
    and any buffer of a grouped_matmul.
    """
    found = {match[1]: match[2].split() for match in map(COMMENT.match, script.splitlines()) if match}
    if problem.groups and found:
        raise UsageError(f"script: {', '.join(found)}: allowed without groups of rows only")
    workspace = _slices("workspace", found, problem)
    parts = _slices("parts", found, problem)
    if workspace and parts:
        raise UsageError("script: workspace: cannot be combined with parts, which @matmul adds up")
    zeroed = " ".join(found.get("zeroed", ["0"]))
    if not re.fullmatch("[0-9]{1,9}", zeroed):
        raise UsageError(f"script: zeroed: expected a number of words, got {zeroed!r}")
    packed = tuple(found.get("packed", ()))
    if packed not in ((), ("a",), ("b",), ("a", "b")):
        raise UsageError(f"script: packed: found {' '.join(packed)}, allowed a, b")
    if problem.scales and packed:
        raise UsageError(f"script: packed: found {' '.join(packed)}, allowed none with scales of blocks")
    low = tuple(found.get("low", ()))
    if low not in ((), ("a",), ("b",)) or (low and (workspace or packed or problem.stored_dtype != "f32")):
        raise UsageError(f"script: low: found {' '.join(low)}, allowed a or b, of f32, without other buffers")
    transposed = _transposed_in(found.get("transposed", []), problem, packed)
    planes = tuple(found.get("planes", ()))
    has_others = packed or low or transposed or problem.stored_dtype != "f32"
    if planes not in ((), ("a", "b")) or (planes and has_others):
        raise UsageError(
            f"script: planes: found {' '.join(planes)}, allowed a b, of f32, without other copies of operands"
        )
    return Scratch(workspace, packed, low, planes, transposed, parts, int(zeroed))


def _transposed_in(words: list[str], problem: Problem, packed: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        dimensions = dict(zip("ab", MAPS[problem.layout], strict=True)).get(word, "k")
        if dimensions.endswith("k") or packed or len(words) > 1:
            allowed = "one operand with k not innermost, without packed ones"
            raise UsageError(f"script: transposed: found {' '.join(words)}, allowed {allowed}")
    return tuple(words)


def _slices(comment: str, found: dict[str, list[str]], problem: Problem) -> tuple[int, int, int] | None:
    if comment not in found:
        return None
    words = found[comment]
    if len(words) != 3 or not all(re.fullmatch("[0-9]{1,18}", word) for word in words):
        raise UsageError(f"script: {comment}: expected 3 numbers (slices, m, n), got {' '.join(words)!r}")
    slices, m, n = map(int, words)
    if not 1 <= slices <= SLICES_LIMIT:
        raise UsageError(f"script: {comment}: found {slices} slices, allowed 1..{SLICES_LIMIT}")
    for name, size, stored in zip("mn", problem.sizes[:2], (m, n), strict=True):
        least = size if comment == "workspace" else 1
        if not least <= stored <= SIZE_LIMIT:
            raise UsageError(f"script: {comment} {name}: found {stored}, allowed {least}..{SIZE_LIMIT}")
    return slices, m, n
