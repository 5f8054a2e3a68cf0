"""Micro-kernels of Hopper's tensor cores: tf32 with A in shared memory or registers, and the bits of a sum.

Operands lie in shared memory as a TMA with the swizzle of 128 bytes leaves them: rows of 128 bytes, the chunk
of 16 bytes number c of row r at c ^ r % 8.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from benchmarks.gpu_visit.kept_bits import BIT_COLUMNS, BITS_PREFIX, ROWS, SIGNS
from benchmarks.gpu_visit.micro_kernels import CYCLES, TIMES, MicroKernel, MicroRun, Words, loop_of
from benchmarks.gpu_visit.ptx_text import Frame, loop, numbered, vector
from tuner.core.compiled_code import KernelBuffer
from tuner.gpu.target.sass import Kernel

WARPGROUP = 128
LINE_BYTES, CHUNK_BYTES, SWIZZLED_ROWS = 128, 16, 8
COLUMNS = 256  # of B that one wgmma of ``tf32_products`` multiplies with ``ROWS`` of A
STEPS = 4  # of K of 8 numbers each in a line
SUMS = ROWS * COLUMNS // WARPGROUP
# The descriptor of a tile of whole lines, K innermost: swizzle of 128 bytes, 1024 bytes for each 8 rows
DESCRIPTOR = 1 << 62 | 1024 // 16 << 32 | 1 << 16
Floats = npt.NDArray[np.float32]


def swizzled(lines: npt.NDArray[np.generic]) -> Words:
    """Returns rows of 128 bytes as they lie in shared memory."""
    chunks = np.ascontiguousarray(lines).view(np.uint8).reshape(len(lines), -1, CHUNK_BYTES)
    image = np.empty_like(chunks)
    for row in range(len(chunks)):
        for chunk in range(chunks.shape[1]):
            image[row, chunk ^ row % SWIZZLED_ROWS] = chunks[row, chunk]
    return image.reshape(-1).view(np.uint32)


def copied_to_shared(threads: int, size_bytes: int) -> tuple[str, ...]:
    """Returns lines by which all threads copy ``image`` to the tile, so that wgmma may read it."""
    stride = CHUNK_BYTES * threads
    lines = ["mul.wide.u32 %rd0, %thread, 16;", "cvt.u32.u64 %r0, %rd0;", "mov.u32 %r1, tile;"]
    lines += ["add.u32 %r0, %r0, %r1;", "add.u64 %rd0, %rd0, %image;"]
    for offset in range(0, size_bytes, stride):
        lines.append(f"ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd0+{offset}];")
        lines.append(f"st.shared.v4.u32 [%r0+{offset}], {{%r2, %r3, %r4, %r5}};")
    return (*lines, "fence.proxy.async;", "bar.sync 0;")


def descriptor_lines(register: str, offset: str) -> tuple[str, ...]:
    """Returns lines that make the descriptor of the tile at ``offset``, a register or a number of bytes."""
    return (
        f"add.u32 %r6, %r1, {offset};",
        "shr.u32 %r6, %r6, 4;",
        f"cvt.u64.u32 {register}, %r6;",
        f"or.b64 {register}, {register}, {DESCRIPTOR};",
    )


def tf32_products(consumers: int, *, from_registers: bool) -> MicroKernel:
    """Returns the kernel of one or two warpgroups that multiply 64x256x8 in tf32, over and over.

    Fragments of A in registers: lane l of warp w holds rows 16 w + l // 4 and 8 more, numbers l % 4 and
    4 more.
    """
    threads = consumers * WARPGROUP
    image = tf32_image(consumers, np.random.default_rng(0))
    return MicroKernel(
        f"wgmma_{'rs' if from_registers else 'ss'}_{consumers}",
        "wgmma 64x256x8 of a warpgroup",
        TIMES * STEPS,
        functools.partial(_tf32_text, consumers, from_registers),
        functools.partial(_tf32_fault, from_registers),
        (MicroRun(f"{consumers} warpgroups", threads, {"image": image.words}),),
        image.words.nbytes,
        (KernelBuffer("sums", 4 * SUMS * threads, "output"),),
    )


def _tf32_text(consumers: int, from_registers: bool, chip: str, has_clock: bool) -> str:
    threads = consumers * WARPGROUP
    b_bytes = COLUMNS * LINE_BYTES
    image_bytes = b_bytes + consumers * ROWS * LINE_BYTES
    declared = [".reg .u32 %loop;", f".reg .f32 %d<{SUMS}>;", f".reg .b32 %a<{4 * STEPS}>;"]
    before = [*copied_to_shared(threads, image_bytes), *descriptor_lines("%rd4", "0")]
    before += ["shr.u32 %r7, %thread, 7;", f"mul.lo.u32 %r7, %r7, {ROWS * LINE_BYTES};"]
    before += [f"add.u32 %r7, %r7, {b_bytes};", *descriptor_lines("%rd5", "%r7")]
    before += [f"mov.f32 %d{number}, 0f00000000;" for number in range(SUMS)]
    if from_registers:
        before += _fragments()
    timed = (*loop("again", TIMES, _tf32_group(from_registers)), "wgmma.wait_group.sync.aligned 0;")
    after = ["mul.wide.u32 %rd8, %thread, 512;", "add.u64 %rd8, %rd8, %sums;"]
    after += [
        f"st.global.v4.f32 [%rd8+{4 * quad}], {vector(numbered('d', 4, quad))};" for quad in range(0, SUMS, 4)
    ]
    name = f"wgmma_{'rs' if from_registers else 'ss'}_{consumers}"
    frame = Frame(name, (CYCLES, "image", "sums"), image_bytes, has_clock=has_clock)
    return frame.text(chip, declared, before, timed, after)


def _tf32_group(from_registers: bool) -> list[str]:
    """Returns the lines of one group of wgmma, which the next group but one waits for."""
    multiply = f"wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {vector(numbered('d', SUMS))}"
    lines = ["wgmma.fence.sync.aligned;"]
    for step in range(STEPS):
        advance = 2 * step  # of 16 bytes
        left = "%rd6"
        lines.append(f"add.u64 %rd7, %rd4, {advance};")
        if from_registers:
            left = vector(numbered("a", 4, 4 * step))
        else:
            lines.append(f"add.u64 %rd6, %rd5, {advance};")
        lines.append(f"{multiply}, {left}, %rd7, 1, 1, 1;")
    return [*lines, "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 1;"]


def _tf32_fault(from_registers: bool, kernel: Kernel) -> str:
    products = [one.text for one in loop_of(kernel) if one.mnemonic == "HGMMA"]
    is_from_registers = [not text.split(",")[1].strip().startswith("gdesc") for text in products]
    return "" if is_from_registers == [from_registers] * STEPS else f"found {products}"


def _fragments() -> Iterable[str]:
    """Returns lines that read a lane's numbers of A from its swizzled lines in shared memory."""
    lines = ["shr.u32 %r8, %thread, 5;", "and.b32 %r8, %r8, 3;", "and.b32 %r9, %thread, 31;"]
    lines += ["shr.u32 %r10, %r9, 2;", "and.b32 %r11, %r9, 3;", "mad.lo.u32 %r12, %r8, 16, %r10;"]
    lines += [f"mul.lo.u32 %r13, %r12, {LINE_BYTES};", "add.u32 %r13, %r13, %r7;", "add.u32 %r13, %r13, %r1;"]
    for step in range(STEPS):
        for part in range(4):  # rows +0, +8, then the same of numbers +4
            chunk = 2 * step + part // 2
            offset = 8 * LINE_BYTES * (part % 2)
            lines += [f"xor.b32 %r14, %r10, {chunk};", "mul.lo.u32 %r14, %r14, 16;"]
            lines += ["mad.lo.u32 %r14, %r11, 4, %r14;", "add.u32 %r14, %r14, %r13;"]
            lines.append(f"ld.shared.b32 %a{4 * step + part}, [%r14+{offset}];")
    return lines


@dataclass(frozen=True, eq=False)
class Tf32Image:
    """Random operands of ``tf32_products``: B, 256 rows of 32 numbers, A of each warpgroup, their image."""

    b: Floats
    a: Floats  # (warpgroup, row, number)
    words: Words


def tf32_image(consumers: int, rng: np.random.Generator) -> Tf32Image:
    """Draws numbers of tf32: 10 bits after the binary point."""
    steps = 2.0**-10
    b, a = (
        (np.round(rng.uniform(-1, 1, shape) / steps) * steps).astype(np.float32)
        for shape in ((COLUMNS, 32), (consumers, ROWS, 32))
    )
    return Tf32Image(b, a, np.concatenate([swizzled(b), *(swizzled(part) for part in a)]))


# The bits that a sum keeps inside of the tensor core: row r of A has 1 and 2^-r, so a sum is 1 + 2^-r.


@dataclass(frozen=True)
class SumType:
    """An input type of a sum of bits: its wgmma, and the powers of two that its numbers reach."""

    name: str
    shape: str  # of the wgmma, for K of 32 bytes
    numpy: str
    lowest: int  # 2^-lowest and 1.5 times that are numbers of the type


SUM_TYPES = (
    SumType("tf32", "m64n8k8.f32.tf32.tf32", "float32", 40),
    SumType("f16", "m64n8k16.f32.f16.f16", "float16", 14),
    SumType("e4m3", "m64n8k32.f32.e4m3.e4m3", "float8_e4m3fn", 8),
)


def bits_of_a_sum(kind: SumType) -> MicroKernel:
    """Returns the kernel of two wgmma of one tile each, the second on the sums of the first."""
    name = f"{BITS_PREFIX}{kind.name}"
    a_bytes = ROWS * LINE_BYTES
    image_bytes = 2 * a_bytes + 2048  # B is 8 lines: filled up to what all threads copy

    def text(chip: str, has_clock: bool) -> str:
        transposed = ", 0, 0" if kind.name == "f16" else ""
        declared = [".reg .f32 %d<4>;"]
        before = [*copied_to_shared(WARPGROUP, image_bytes), *descriptor_lines("%rd4", str(2 * a_bytes))]
        before += [*descriptor_lines("%rd5", "0"), *descriptor_lines("%rd6", str(a_bytes))]
        sums = vector(numbered("d", 4))
        before += [f"mov.f32 %d{number}, 0f00000000;" for number in range(4)]
        multiply = f"wgmma.mma_async.sync.aligned.{kind.shape} {sums}"
        body = ["wgmma.fence.sync.aligned;"]
        body += [f"{multiply}, {left}, %rd4, 1, 1, 1{transposed};" for left in ("%rd5", "%rd6")]
        body += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
        after = [
            *("shr.u32 %r8, %thread, 5;", "and.b32 %r9, %thread, 31;", "shr.u32 %r10, %r9, 2;"),
            *("and.b32 %r11, %r9, 3;", "mad.lo.u32 %r12, %r8, 16, %r10;", "shl.b32 %r13, %r12, 5;"),
            *("mad.lo.u32 %r13, %r11, 8, %r13;", "cvt.u64.u32 %rd8, %r13;", "add.u64 %rd8, %rd8, %sums;"),
            *("st.global.v2.f32 [%rd8], {%d0, %d1};", "st.global.v2.f32 [%rd8+256], {%d2, %d3};"),
        ]
        frame = Frame(name, (CYCLES, "image", "sums"), image_bytes, has_clock=has_clock)
        return frame.text(chip, declared, before, body, after)

    def fault(kernel: Kernel) -> str:
        products = [one.name for one in kernel.code if one.mnemonic in ("HGMMA", "QGMMA")]
        return "" if len(products) == 2 else f"found {products}"

    runs = (
        MicroRun("one instruction", WARPGROUP, {"image": bits_image(kind, in_one=True)}),
        MicroRun("two instructions", WARPGROUP, {"image": bits_image(kind, in_one=False)}),
    )
    others = (KernelBuffer("sums", 4 * ROWS * BIT_COLUMNS, "output"),)
    return MicroKernel(name, "kernel", 1, text, fault, runs, image_bytes, others)


def bits_image(kind: SumType, *, in_one: bool) -> Words:
    """Returns two tiles of A and one of B: 1 and 2^-r in the first tile, or 2^-r in the second."""
    numpy_type = np.dtype(getattr(ml_dtypes, kind.numpy, None) or kind.numpy)
    count = LINE_BYTES // numpy_type.itemsize
    a = np.zeros((2, ROWS, count))
    b = np.zeros((SWIZZLED_ROWS * 2, count))
    a[0, :, 0] = 1.0
    b[:BIT_COLUMNS, 0] = 1.0
    b[:BIT_COLUMNS, 1] = SIGNS
    b[:BIT_COLUMNS, 2] = SIGNS * 2.0**-kind.lowest
    small = a[0 if in_one else 1]
    for row in range(min(ROWS, 2 * kind.lowest + 1)):
        if row <= kind.lowest:
            small[row, 1] = 2.0**-row
        else:
            small[row, 2] = 2.0 ** -(row - kind.lowest)
    return np.concatenate([swizzled(part.astype(numpy_type)) for part in (*a, b)])
