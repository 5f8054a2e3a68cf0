"""A matmul in Triton's language: the kernel of its tutorial, with sizes as arguments, compiled without a GPU.

Import it where Triton is installed only. The GPU check times the same kernel.
"""

from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from benchmarks.machine_code.tiles import ComparedTile
from tuner.core.compiled_code import KernelCode, Launch

CAPABILITIES = {"sm_90a": 90}  # it chooses wgmma there
PTX_VERSION = 87  # that ptxas 12.9 and later take
OTHERS = 80  # and mma.sync here, assembled for newer chips too
POINTERS = {"f16": "*fp16", "f32": "*fp32", "tf32": "*fp32"}
SIZES = ("m", "n", "k", "a_row", "b_row", "c_row")


# ruff: noqa: ANN001, ANN201  # Triton looks up annotations, and knows tl.constexpr alone
@triton.jit  # type: ignore[untyped-decorator] # untyped where Triton is not installed
def matmul(  # type: ignore[no-untyped-def] # as above
    a,
    b,
    c,
    m,
    n,
    k,
    a_row,
    b_row,
    c_row,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group: tl.constexpr,
    is_transposed: tl.constexpr,
    is_whole: tl.constexpr,
    precision: tl.constexpr,
):
    """Multiplies a by b, whose rows are of length K where it is transposed; is_whole: block_k divides K."""
    number = tl.program_id(0)
    columns = tl.cdiv(n, block_n)
    first = number // (group * columns) * group
    height = min(tl.cdiv(m, block_m) - first, group)
    tile_m = first + number % (group * columns) % height
    tile_n = number % (group * columns) // height
    rows = (tile_m * block_m + tl.arange(0, block_m)) % m
    across = (tile_n * block_n + tl.arange(0, block_n)) % n
    along = tl.arange(0, block_k)
    of_a = a + (rows[:, None] * a_row + along[None, :])
    if is_transposed:
        of_b = b + (along[:, None] + across[None, :] * b_row)
        step = block_k
    else:
        of_b = b + (along[:, None] * b_row + across[None, :])
        step = block_k * b_row
    sums = tl.zeros((block_m, block_n), dtype=tl.float32)
    for at in range(tl.cdiv(k, block_k)):
        if is_whole:
            x, y = tl.load(of_a), tl.load(of_b)
        else:
            left = k - at * block_k
            x = tl.load(of_a, mask=along[None, :] < left, other=0.0)
            y = tl.load(of_b, mask=along[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums, input_precision=precision)
        of_a += block_k
        of_b += step
    m_at = tile_m * block_m + tl.arange(0, block_m)
    n_at = tile_n * block_n + tl.arange(0, block_n)
    is_inside = (m_at[:, None] < m) & (n_at[None, :] < n)
    tl.store(c + c_row * m_at[:, None] + n_at[None, :], sums.to(c.dtype.element_ty), mask=is_inside)


def compiled(tile: ComparedTile, chip: str) -> KernelCode:
    """Returns Triton's PTX for a tile, with as many stages as the tuner's kernel has buffers.

    Not assembled.
    """
    problem, knobs = tile.ours.problem, tile.knobs
    constants: dict[str, Any] = {name: knobs[name] for name in ("block_m", "block_n", "block_k")}
    constants |= {"group": 8, "is_transposed": problem.layout == "nt", "is_whole": False}
    constants["precision"] = "ieee" if problem.dtype == "f32" else "tf32"
    pointer = POINTERS[problem.dtype]
    types = {"a": pointer, "b": pointer, "c": "*fp32", **dict.fromkeys(SIZES, "i32")}
    names = matmul.arg_names
    source = ASTSource(
        matmul,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in types},
    )
    stages = knobs["stages"] if "stages" in knobs else knobs["depth"] + 1
    options = {"num_warps": tile.warps, "num_stages": stages, "ptx_version": PTX_VERSION}
    capability = CAPABILITIES.get(chip, OTHERS)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    ptx = made.asm["ptx"].replace(f".target sm_{OTHERS}", f".target {chip}")
    block = (32 * tile.warps, 1, 1)
    launch = Launch(made.metadata.name, (1, 1, 1), block, made.metadata.shared, ())
    return KernelCode(chip, ptx, b"", (launch,), ())
