"""What this machine can do at most, measured: multiply-adds in registers, bytes from memory.

Both are compiled loops run by the same crew as kernels are, on as many threads.
"""

import numpy as np

from tuner.machine import Machine, Roofline
from tuner.mlir.jit import JittedModule, PackedArguments
from tuner.runtime.allocation import aligned_empty
from tuner.runtime.crew import Crew
from tuner.runtime.host import processors
from tuner.runtime.timing import sample

ACCUMULATORS = (
    12  # independent sums: latency 4 or 5 times two units a cycle wants 8 to 10; AVX2 has 16 registers
)
STREAM_BYTES = 256 * 2**20  # at least; more than any cache that is not memory
TURNS = 100_000  # of the multiply-add loop per sample, some 0.15 ms: long for a call, short for a disturbance
SAMPLES = 500


def measure_roofline(dtype: str, threads: int, machine: Machine) -> Roofline:
    """Measures both limits; the best of several samples, since a limit is what was reached once."""
    crew = Crew(threads)
    crew.pin(processors(threads))
    try:
        return Roofline(_flop_per_s(crew, dtype, machine), _bytes_per_s(crew, machine))
    finally:
        crew.close()


def _flop_per_s(crew: Crew, dtype: str, machine: Machine) -> float:
    element, flop_of_lane = {"f64": ("f64", 2), "f32": ("f32", 2), "bf16": ("f32", 2)}[dtype]
    lanes = machine.vector_bytes // (8 if element == "f64" else 4)
    uses_pairs = dtype == "bf16" and machine.has_bf16
    code = JittedModule(_multiply_add_mlir(lanes, element, uses_pairs), ("multiply_add",))
    sinks = [aligned_empty((ACCUMULATORS * lanes,), np.dtype(np.float64)) for _ in range(crew.size)]
    for sink in sinks:
        sink.fill(0)
    arguments = [PackedArguments(sink.ctypes.data, TURNS) for sink in sinks]
    calls = tuple((code.addresses["multiply_add"], one.address) for one in arguments)
    best_s = min(sample(lambda times: crew.repeat(calls, times), 1) for _ in range(SAMPLES))
    return crew.size * TURNS * ACCUMULATORS * lanes * flop_of_lane * (2 if uses_pairs else 1) / best_s


def _bytes_per_s(crew: Crew, machine: Machine) -> float:
    size = max(STREAM_BYTES, 4 * machine.l3_bytes)
    memory = aligned_empty((size // 4,), np.dtype(np.float32))
    memory.fill(1.0)
    share = size // crew.size // 256 * 256
    code = JittedModule(_stream_mlir(machine.vector_bytes // 4), ("stream",))
    sinks = [aligned_empty((64,), np.dtype(np.float32)) for _ in range(crew.size)]
    arguments = [
        PackedArguments(memory.ctypes.data + index * share, share // 256, sink.ctypes.data)
        for index, sink in enumerate(sinks)
    ]
    calls = tuple((code.addresses["stream"], one.address) for one in arguments)
    best_s = min(sample(lambda times: crew.repeat(calls, times), 1) for _ in range(5))
    return share * crew.size / best_s


def _multiply_add_mlir(lanes: int, element: str, uses_pairs: bool) -> str:
    """A loop of independent multiply-adds; sums start from memory and end there, so nothing folds away."""
    vector = f"vector<{lanes}x{element}>"
    names = [f"%s{i}" for i in range(ACCUMULATORS)]
    types = ", ".join([vector] * ACCUMULATORS)
    step = (
        '%n{i} = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s{i}, %p, %p) : '
        f"({vector}, vector<{2 * lanes}xbf16>, vector<{2 * lanes}xbf16>) -> {vector}"
        if uses_pairs
        else f"%n{{i}} = llvm.intr.fma(%s{{i}}, %a, %b) : ({vector}, {vector}, {vector}) -> {vector}"
    )
    loads = "\n    ".join(f"%i{i} = llvm.load %sink : !llvm.ptr -> {vector}" for i in range(ACCUMULATORS))
    steps = "\n    ".join(step.format(i=i) for i in range(ACCUMULATORS))
    stores = "\n    ".join(
        f"%o{i} = llvm.getelementptr %sink[{i * lanes}] : (!llvm.ptr) -> !llvm.ptr, {element}\n"
        f"    llvm.store %s{i}, %o{i} : {vector}, !llvm.ptr"
        for i in range(ACCUMULATORS)
    )
    pairs = f"%p = llvm.bitcast %a : {vector} to vector<{2 * lanes}xbf16>" if uses_pairs else ""
    starts = ", ".join(f"%i{i}" for i in range(ACCUMULATORS))
    nexts = ", ".join(f"%n{i}" for i in range(ACCUMULATORS))
    return f"""module {{
  llvm.func @multiply_add(%sink: !llvm.ptr, %turns: i64) attributes {{llvm.emit_c_interface}} {{
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %a = llvm.load %sink : !llvm.ptr -> {vector}
    %b = llvm.load %sink : !llvm.ptr -> {vector}
    {pairs}
    {loads}
    llvm.br ^loop(%zero, {starts} : i64, {types})
  ^loop(%turn: i64, {", ".join(f"{name}: {vector}" for name in names)}):
    {steps}
    %next = llvm.add %turn, %one : i64
    %more = llvm.icmp "slt" %next, %turns : i64
    llvm.cond_br %more, ^loop(%next, {nexts} : i64, {types}), ^end
  ^end:
    {stores}
    llvm.return
  }}
}}
"""


def _stream_mlir(lanes: int) -> str:
    """Adds up memory in order, 256 bytes a turn."""
    vector = f"vector<{lanes}xf32>"
    count = 256 // (lanes * 4)
    names = [f"%s{i}" for i in range(count)]
    types = ", ".join([vector] * count)
    steps = "\n    ".join(
        f"%q{i} = llvm.getelementptr %at[{i * lanes}] : (!llvm.ptr) -> !llvm.ptr, f32\n"
        f"    %v{i} = llvm.load %q{i} : !llvm.ptr -> {vector}\n"
        f"    %n{i} = llvm.fadd %s{i}, %v{i} : {vector}"
        for i in range(count)
    )
    stores = "\n    ".join(
        f"%o{i} = llvm.getelementptr %sink[{i * lanes}] : (!llvm.ptr) -> !llvm.ptr, f32\n"
        f"    llvm.store %s{i}, %o{i} : {vector}, !llvm.ptr"
        for i in range(count)
    )
    return f"""module {{
  llvm.func @stream(%memory: !llvm.ptr, %turns: i64, %sink: !llvm.ptr) attributes {{llvm.emit_c_interface}} {{
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %none = llvm.mlir.constant(dense<0.0> : {vector}) : {vector}
    llvm.br ^loop(%zero, {", ".join(["%none"] * count)} : i64, {types})
  ^loop(%turn: i64, {", ".join(f"{name}: {vector}" for name in names)}):
    %offset = llvm.shl %turn, %eight : i64
    %at = llvm.getelementptr %memory[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    {steps}
    %next = llvm.add %turn, %one : i64
    %more = llvm.icmp "slt" %next, %turns : i64
    llvm.cond_br %more, ^loop(%next, {", ".join(f"%n{i}" for i in range(count))} : i64, {types}), ^end
  ^end:
    {stores}
    llvm.return
  }}
}}
""".replace("%none = ", "%eight = llvm.mlir.constant(8 : i64) : i64\n    %none = ")
