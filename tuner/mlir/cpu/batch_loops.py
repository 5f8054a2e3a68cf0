"""Adds the loops of a batch: functions that call the kernel of one matrix pair once per matrix pair.

Takes LLVM-dialect text whose kernels take bare pointers, and the distance of consecutive matrices::

    llvm.func @matmul(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) ...
  gets next to it, with a loop of eight iterations
    llvm.func @matmul_x8(%p0: !llvm.ptr, %p1: !llvm.ptr, %p2: !llvm.ptr) ...
      llvm.call @matmul(%q0, %q1, %q2) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
"""

from tuner.core.target import Partition
from tuner.mlir.cpu.pipeline import EXPORTED


def with_batch_loops(
    llvm_text: str, partitions: tuple[Partition, ...], strides_bytes: tuple[int, ...]
) -> str:
    """Returns LLVM-dialect text with a loop over matrices added for each partition of a batch.

    A partition is the share of one thread: its function ``entry`` computes one matrix of the batch. For a
    partition with ``matrices`` > 1 a function ``partition.called`` is added, which calls ``entry`` once per
    matrix, from the matrix that its pointer arguments point to. ``strides_bytes`` has one number per pointer
    argument: the bytes from one matrix to the next. Without such a partition the text is returned unchanged.
    """
    looped = {partition.called: partition for partition in partitions if partition.matrices > 1}
    if not looped:
        return llvm_text
    module, brace, _ = llvm_text.rstrip().rpartition("}")
    return module + "".join(_loop(partition, strides_bytes) for partition in looped.values()) + brace + "\n"


def _loop(partition: Partition, strides_bytes: tuple[int, ...]) -> str:
    numbers = range(len(strides_bytes))
    parameters = ", ".join(f"%p{number}: !llvm.ptr" for number in numbers)
    arguments = ", ".join(f"%q{number}" for number in numbers)
    types = ", ".join("!llvm.ptr" for _ in numbers)
    places = "".join(
        f"""    %s{number} = llvm.mlir.constant({stride} : i64) : i64
    %o{number} = llvm.mul %matrix, %s{number} : i64
    %q{number} = llvm.getelementptr %p{number}[%o{number}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
"""
        for number, stride in enumerate(strides_bytes)
    )
    return f"""  llvm.func @{partition.called}({parameters}) attributes {{{EXPORTED}}} {{
    %first = llvm.mlir.constant(0 : i64) : i64
    %step = llvm.mlir.constant(1 : i64) : i64
    %matrices = llvm.mlir.constant({partition.matrices} : i64) : i64
    llvm.br ^next(%first : i64)
  ^next(%matrix: i64):
    %is_left = llvm.icmp "slt" %matrix, %matrices : i64
    llvm.cond_br %is_left, ^one, ^end
  ^one:
{places}    llvm.call @{partition.entry}({arguments}) : ({types}) -> ()
    %more = llvm.add %matrix, %step : i64
    llvm.br ^next(%more : i64)
  ^end:
    llvm.return
  }}
"""
