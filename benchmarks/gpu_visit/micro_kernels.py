"""Micro-kernels of one question each: register ports, reads of shared memory, copies into shared memory.

Each runs a loop of one kind of instruction between two readings of the multiprocessor's clock. ptxas must
keep the form that is meant: ``fault`` looks at the machine code, and a kernel of another form is not timed.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.gpu_visit.ptx_text import WARP, Frame, loop, numbered, vector
from tuner.core.compiled_code import BufferMap, KernelBuffer, KernelCode, Launch, TensorMapLayout
from tuner.gpu.ptxsim.target.cycle_model import bank_reads
from tuner.gpu.target.sass import Kernel, MachineInstruction

Words = npt.NDArray[np.uint32]
BLOCKS = 132  # one for each multiprocessor of an H100 or H200
CYCLES = "cycles"
TIMES = 256  # passes of a loop


@dataclass(frozen=True)
class MicroRun:
    """One measurement by a micro-kernel: a size of its blocks, and its inputs by the names of its buffers."""

    label: str
    threads: int  # of a block
    inputs: dict[str, Words] = field(default_factory=dict)


@dataclass(frozen=True)
class MicroKernel:
    """A micro-kernel: its PTX, the form that its machine code must have, its measurements."""

    name: str
    unit: str  # what is counted: "FFMA of a warp", "byte of a block"
    operations: int  # of that unit, by each warp or by the block
    text: Callable[[str, bool], str]  # chip, whether there is a clock -> PTX
    fault: Callable[[Kernel], str]  # "" where the machine code has the intended form
    runs: tuple[MicroRun, ...]
    shared_bytes: int = 0
    others: tuple[KernelBuffer, ...] = ()  # results in addition to the cycles, and inputs of equal bytes
    maps: tuple[BufferMap, ...] = ()
    map_bytes: int = 0  # of the buffer that the maps tile

    def program(
        self, chip: str, run: MicroRun, *, has_clock: bool = True, blocks: int = BLOCKS
    ) -> KernelCode:
        """Returns the PTX with the launch and the buffers of one measurement."""
        warps = blocks * run.threads // WARP
        buffers = [KernelBuffer(CYCLES, 8 * warps, "output")]
        buffers += [KernelBuffer(name, words.nbytes, "input") for name, words in run.inputs.items()]
        buffers += self.others
        arguments = tuple(buffer.name for buffer in buffers) + tuple(each.name for each in self.maps)
        buffers += [KernelBuffer(each.buffer, self.map_bytes, "input") for each in self.maps]
        launch = Launch(
            self.name, (blocks, 1, 1), (run.threads, 1, 1), self.shared_bytes, arguments, self.maps
        )
        return KernelCode(chip, self.text(chip, has_clock), b"", (launch,), tuple(buffers))


def loop_of(kernel: Kernel) -> tuple[MachineInstruction, ...]:
    """Returns the instructions of the longest loop; () without one."""
    longest = max(kernel.loops(), key=lambda bounds: bounds[1] - bounds[0], default=(0, 0))
    return kernel.code[slice(*longest)]


# Register ports: how many cycles an FFMA takes by the banks of its three operands. Vectors of four registers
# begin at a multiple of four, so the place of a number in its vector decides the bank: even or odd.

NUMBERS = 16  # of sums, of left and of right factors
FORMS = {  # name -> (left factor, right factor) of the product number i of step r
    "reuse": lambda i, r: (r, i + 1),
    "two_and_one": lambda i, r: (i + 2 * r, i + 4 * r + 3),
    "three": lambda i, r: (i + 2 * r, i + 4 * r + 2),
    "three_in_runs": lambda i, r: (i + 2 * r, i + 4 * r + 2),
}
# Banks of neighbours differ, which evens out where reads wait in a queue; in runs of 8 they are the same
IN_RUNS = ("three_in_runs",)
# (operands from the fuller, from the other bank) that at least 9 of 10 FFMA read
READS = {"reuse": (1, 1), "two_and_one": (2, 1), "three": (3, 0), "three_in_runs": (3, 0)}
WARPS_PER_SCHEDULER = (1, 2, 4)
SCHEDULERS = 4


def register_ports(form: str) -> MicroKernel:
    """Returns the kernel whose FFMA read their operands in one of ``FORMS``."""
    name = f"ffma_{form}"
    text = functools.partial(_register_ports_text, form)
    fault = functools.partial(_register_ports_fault, form)
    numbers = np.random.default_rng(0).uniform(0.5, 1.0, (512, 3 * NUMBERS)).astype(np.float32)
    numbers[:, NUMBERS : 2 * NUMBERS] *= 2.0**-8  # sums grow by less than their size
    runs = tuple(
        MicroRun(
            f"{warps} warps per scheduler", warps * SCHEDULERS * WARP, {"numbers": numbers.view(np.uint32)}
        )
        for warps in WARPS_PER_SCHEDULER
    )
    return MicroKernel(name, "FFMA of a warp", TIMES * NUMBERS**2, text, fault, runs)


def _register_ports_text(form: str, chip: str, has_clock: bool) -> str:
    name = f"ffma_{form}"
    declared = [".reg .u32 %loop;", f".reg .f32 %s<{NUMBERS}>, %a<{NUMBERS}>, %b<{NUMBERS}>;"]
    quads = range(0, NUMBERS, 4)
    before = [f"mul.wide.u32 %rd0, %thread, {12 * NUMBERS};", "add.u64 %rd0, %rd0, %numbers;"]
    before += [
        f"ld.global.v4.f32 {vector(numbered(letter, 4, quad))}, [%rd0+{4 * (NUMBERS * part + quad)}];"
        for part, letter in enumerate("sab")
        for quad in quads
    ]
    body = []
    order = [*range(0, NUMBERS, 2), *range(1, NUMBERS, 2)] if form in IN_RUNS else range(NUMBERS)
    for step in range(NUMBERS):
        for number in order:
            left, right = (factor % NUMBERS for factor in FORMS[form](number, step))
            body.append(f"fma.rn.f32 %s{number}, %a{left}, %b{right}, %s{number};")
    after = [f"st.global.v4.f32 [%rd0+{4 * quad}], {vector(numbered('s', 4, quad))};" for quad in quads]
    frame = Frame(name, (CYCLES, "numbers"), has_clock=has_clock)
    return frame.text(chip, declared, before, loop("again", TIMES, body), after)


def _register_ports_fault(form: str, kernel: Kernel) -> str:
    code = loop_of(kernel)
    pairs = zip((None, *code), code, strict=False)
    reads = [bank_reads(one, before) for before, one in pairs if one.mnemonic == "FFMA"]
    fuller = [(max(pair), min(pair)) for pair in reads]
    share = fuller.count(READS[form]) / max(1, len(fuller))
    if len(fuller) != NUMBERS**2 or share < 0.9:
        return f"{len(fuller)} FFMA, of which {share:.0%} read {READS[form]}"
    return ""


# Reads of shared memory: cycles by which lanes read the same address.

READS_OF_A_LOOP = 16
TILE_BYTES = 16384
PATTERNS: dict[str, Callable[[int], int]] = {  # lane -> which of the vectors in a row it reads
    "distinct": lambda lane: lane,
    "pairs n, n^1": lambda lane: lane // 2,
    "pairs n, n^2": lambda lane: lane // 4 * 2 + lane % 2,
    "quarter repeated": lambda lane: lane % 8,
    "broadcast": lambda _: 0,
}
SHARED_WARPS = (4, 16)


def shared_reads(words: int) -> MicroKernel:
    """Returns the kernel that reads vectors of 4 or 2 words in each of ``PATTERNS``."""
    name = f"lds_{32 * words}"
    text = functools.partial(_shared_reads_text, words)
    fault = functools.partial(_shared_reads_fault, words)
    lanes = range(WARP)
    runs = tuple(
        MicroRun(
            f"{pattern}, {warps} warps",
            warps * WARP,
            {"offsets": np.array([4 * words * place(lane) for lane in lanes], np.uint32)},
        )
        for pattern, place in PATTERNS.items()
        for warps in SHARED_WARPS
    )
    others = (KernelBuffer("words", 4 * 512, "output"),)
    operations = TIMES * READS_OF_A_LOOP
    return MicroKernel(name, "LDS of a warp", operations, text, fault, runs, TILE_BYTES, others)


def _shared_reads_text(words: int, chip: str, has_clock: bool) -> str:
    name = f"lds_{32 * words}"
    row_bytes = TILE_BYTES // 2 // READS_OF_A_LOOP
    count = words * READS_OF_A_LOOP
    declared = [".reg .u32 %loop;", f".reg .b32 %w<{count}>, %all;"]
    before = [
        *("and.b32 %r0, %thread, 31;", "mul.wide.u32 %rd0, %r0, 4;", "add.u64 %rd0, %rd0, %offsets;"),
        *("ld.global.u32 %r1, [%rd0];", "mov.u32 %r2, tile;", "add.u32 %r1, %r1, %r2;"),
        *("mov.u32 %r4, 0;", "setp.lt.u32 %p1, %thread, 128;", "mul.lo.u32 %r3, %thread, 16;"),
        "add.u32 %r3, %r3, %r2;",
        *(
            f"@%p1 st.shared.v4.u32 [%r3+{2048 * number}], {{%thread, %r4, %thread, %r4}};"
            for number in range(TILE_BYTES // 2048)
        ),
    ]
    body = [
        f"ld.volatile.shared.v{words}.u32 {vector(numbered('w', words, words * number))}, "
        f"[%r1+{row_bytes * number}];"
        for number in range(READS_OF_A_LOOP)
    ]
    after = ["mov.u32 %all, 0;", *(f"xor.b32 %all, %all, %w{number};" for number in range(count))]
    after += ["mul.wide.u32 %rd1, %thread, 4;", "add.u64 %rd1, %rd1, %words;"]
    after.append("st.global.u32 [%rd1], %all;")
    frame = Frame(name, (CYCLES, "offsets", "words"), TILE_BYTES, has_clock=has_clock)
    return frame.text(chip, declared, before, loop("again", TIMES, body), after)


def _shared_reads_fault(words: int, kernel: Kernel) -> str:
    reads = [one for one in loop_of(kernel) if one.mnemonic == "LDS"]
    widths = Counter(one.words for one in reads)
    return "" if widths == {words: READS_OF_A_LOOP} else f"found LDS of {dict(widths)} words"


# Copies into shared memory: bytes per cycle of a multiprocessor, from the second level of cache.

COPY_THREADS, COPIES_OF_A_LOOP, COPY_TIMES = 256, 16, 64
REGION_CHUNKS = 4  # of a block, each of one pass of the loop


def asynchronous_copies(item_bytes: int) -> MicroKernel:
    """Returns the kernel that copies by cp.async, 16 or 4 bytes of a thread at a time."""
    name = f"ldgsts_{8 * item_bytes}"
    row_bytes = COPY_THREADS * item_bytes
    chunk_bytes = COPIES_OF_A_LOOP * row_bytes
    text = functools.partial(_asynchronous_copies_text, item_bytes)
    fault = functools.partial(_asynchronous_copies_fault, item_bytes)
    run = MicroRun(f"{COPY_THREADS} threads", COPY_THREADS)
    others = (
        KernelBuffer("source", BLOCKS * REGION_CHUNKS * chunk_bytes, "input"),
        KernelBuffer("words", 4 * COPY_THREADS, "output"),
    )
    operations = COPY_TIMES * chunk_bytes
    return MicroKernel(name, "byte of a block", operations, text, fault, (run,), 2 * chunk_bytes, others)


def _asynchronous_copies_text(item_bytes: int, chip: str, has_clock: bool) -> str:
    name = f"ldgsts_{8 * item_bytes}"
    row_bytes = COPY_THREADS * item_bytes
    chunk_bytes = COPIES_OF_A_LOOP * row_bytes
    hint = "cg" if item_bytes == 16 else "ca"
    before = [
        *(f"mul.lo.u32 %r0, %thread, {item_bytes};", "mov.u32 %r1, tile;", "add.u32 %r1, %r1, %r0;"),
        *("mov.u32 %r2, %ctaid.x;", f"mul.wide.u32 %rd0, %r2, {REGION_CHUNKS * chunk_bytes};"),
        *("add.u64 %rd0, %rd0, %source;", "cvt.u64.u32 %rd1, %r0;", "add.u64 %rd0, %rd0, %rd1;"),
    ]
    body = [
        *(f"and.b32 %r3, %loop, {REGION_CHUNKS - 1};", f"mul.wide.u32 %rd2, %r3, {chunk_bytes};"),
        *("add.u64 %rd2, %rd2, %rd0;", "and.b32 %r4, %loop, 1;", f"mul.lo.u32 %r4, %r4, {chunk_bytes};"),
        "add.u32 %r4, %r4, %r1;",
        *(
            f"cp.async.{hint}.shared.global [%r4+{row_bytes * number}], [%rd2+{row_bytes * number}], "
            f"{item_bytes};"
            for number in range(COPIES_OF_A_LOOP)
        ),
        *("cp.async.commit_group;", "cp.async.wait_group 1;"),
    ]
    timed = (*loop("again", COPY_TIMES, body), "cp.async.wait_all;", "bar.sync 0;")
    after = [
        *("ld.shared.u32 %r5, [%r1];", "mul.wide.u32 %rd3, %thread, 4;", "add.u64 %rd3, %rd3, %words;"),
        "st.global.u32 [%rd3], %r5;",
    ]
    frame = Frame(name, (CYCLES, "source", "words"), 2 * chunk_bytes, has_clock=has_clock)
    return frame.text(chip, (".reg .u32 %loop;",), before, timed, after)


def _asynchronous_copies_fault(item_bytes: int, kernel: Kernel) -> str:
    copies = [one.name for one in loop_of(kernel) if one.mnemonic == "LDGSTS"]
    is_wide = [name.endswith(".128") for name in copies]
    wanted = [item_bytes == 16] * COPIES_OF_A_LOOP
    return "" if is_wide == wanted else f"found {dict(Counter(copies))}"


STAGES, BOX = 8, (32, 128)  # tiles in flight; of f32: columns, rows
BOX_BYTES = 4 * BOX[0] * BOX[1]
BARRIERS = STAGES * BOX_BYTES  # where they begin, 8 bytes each
TENSOR_COPIES = "tma"
MAP_COLUMNS = 128
TENSOR_COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
FLOAT32 = 7  # CU_TENSOR_MAP_DATA_TYPE_FLOAT32
SWIZZLE_128B = 3  # CU_TENSOR_MAP_SWIZZLE_128B


def tensor_copies() -> MicroKernel:
    """Returns the kernel in which one thread copies tiles by TMA, eight in flight."""
    rows = BLOCKS * BOX[1]
    layout = TensorMapLayout((MAP_COLUMNS, rows), (4 * MAP_COLUMNS,), BOX, FLOAT32, swizzle=SWIZZLE_128B)
    return MicroKernel(
        TENSOR_COPIES,
        "byte of a block",
        COPY_TIMES * BOX_BYTES,
        _tensor_copies_text,
        _tensor_copies_fault,
        (MicroRun("one thread", WARP),),
        BARRIERS + 8 * STAGES,
        maps=(BufferMap("source", "tensor", layout),),
        map_bytes=4 * MAP_COLUMNS * rows,
    )


def _tensor_copies_text(chip: str, has_clock: bool) -> str:
    before = [
        *("mov.u32 %r0, tile;", f"add.u32 %r1, %r0, {BARRIERS};", "mov.u64 %rd0, source;"),
        "cvta.param.u64 %rd0, %rd0;",
        *("setp.eq.u32 %p1, %thread, 0;", "mov.u32 %r2, %ctaid.x;", f"mul.lo.u32 %r2, %r2, {BOX[1]};"),
        *(f"@%p1 mbarrier.init.shared.b64 [%r1+{8 * stage}], 1;" for stage in range(STAGES)),
        "fence.proxy.async;",
    ]
    copy = [
        *(f"and.b32 %r3, %loop, {STAGES - 1};", "shl.b32 %r4, %r3, 3;", "add.u32 %r4, %r4, %r1;"),
        *(f"mul.lo.u32 %r5, %r3, {BOX_BYTES};", "add.u32 %r5, %r5, %r0;"),
        *(f"setp.lt.u32 %p2, %loop, {STAGES};", "@%p2 bra issue;", "shr.u32 %r6, %loop, 3;"),
        *("sub.u32 %r6, %r6, 1;", "and.b32 %r6, %r6, 1;", "ready:"),
        *("mbarrier.try_wait.parity.shared.b64 %p3, [%r4], %r6;", "@!%p3 bra ready;", "issue:"),
        *(f"and.b32 %r7, %loop, {MAP_COLUMNS // BOX[0] - 1};", f"mul.lo.u32 %r7, %r7, {BOX[0]};"),
        f"mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r4], {BOX_BYTES};",
        f"{TENSOR_COPY} [%r5], [%rd0, {{%r7, %r2}}], [%r4];",
    ]
    parity = (COPY_TIMES // STAGES - 1) % 2
    last = [
        line
        for stage in range(STAGES)
        for line in (
            f"last{stage}:",
            f"mbarrier.try_wait.parity.shared.b64 %p3, [%r1+{8 * stage}], {parity};",
            f"@!%p3 bra last{stage};",
        )
    ]
    body = ["@!%p1 bra done;", *loop("again", COPY_TIMES, copy), *last, "done:", "bar.sync 0;"]
    frame = Frame(TENSOR_COPIES, (CYCLES,), BARRIERS + 8 * STAGES, ("source",), has_clock)
    return frame.text(chip, (".reg .u32 %loop;",), before, body, ())


def _tensor_copies_fault(kernel: Kernel) -> str:
    copies = Counter(one.name for one in kernel.code if one.mnemonic.startswith("UTMALDG"))
    return "" if copies == {"UTMALDG.2D": 1} else f"found {dict(copies)}"
