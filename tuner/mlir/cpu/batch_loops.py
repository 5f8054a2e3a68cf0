"""Loops over the matrices of a batch, added to the text of a module in LLVM dialect."""

from tuner.core.interfaces import Partition
from tuner.mlir.cpu import pipeline


def with_batch_loops(
    llvm_text: str, partitions: tuple[Partition, ...], strides_bytes: tuple[int, ...]
) -> str:
    """Returns LLVM-dialect text with a loop over matrices added for each partition of a batch.

    A partition is the share of one thread. For a partition with ``matrices`` > 1 a function
    ``partition.called`` is added, which calls ``partition.entry`` once per matrix. ``strides_bytes``: for
    each pointer argument, the bytes from one matrix to the next.

        llvm.func @matmul(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) ...
      gets next to it, with a loop of eight iterations
        llvm.func @matmul_x8(%p0: !llvm.ptr, %p1: !llvm.ptr, %p2: !llvm.ptr) ...
          llvm.call @matmul(%q0, %q1, %q2) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
    """
    looped = {partition.called: partition for partition in partitions if partition.matrices > 1}
    if not looped:
        return llvm_text
    module, brace, _ = llvm_text.rstrip().rpartition("}")
    return module + "".join(_loop(partition, strides_bytes) for partition in looped.values()) + brace + "\n"


def _loop(partition: Partition, strides_bytes: tuple[int, ...]) -> str:
    parameters: list[str] = []
    arguments: list[str] = []
    addresses = ""
    for index, stride in enumerate(strides_bytes):
        parameters.append(f"%p{index}: !llvm.ptr")
        arguments.append(f"%q{index}")
        addresses += f"""    %s{index} = llvm.mlir.constant({stride} : i64) : i64
    %o{index} = llvm.mul %matrix, %s{index} : i64
    %q{index} = llvm.getelementptr %p{index}[%o{index}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
"""
    types = ", ".join(["!llvm.ptr"] * len(strides_bytes))
    return f"""  llvm.func @{partition.called}({", ".join(parameters)}) attributes {{{pipeline.EXPORTED}}} {{
    %first = llvm.mlir.constant(0 : i64) : i64
    %step = llvm.mlir.constant(1 : i64) : i64
    %matrices = llvm.mlir.constant({partition.matrices} : i64) : i64
    llvm.br ^next(%first : i64)
  ^next(%matrix: i64):
    %is_left = llvm.icmp "slt" %matrix, %matrices : i64
    llvm.cond_br %is_left, ^one, ^end
  ^one:
{addresses}    llvm.call @{partition.entry}({", ".join(arguments)}) : ({types}) -> ()
    %more = llvm.add %matrix, %step : i64
    llvm.br ^next(%more : i64)
  ^end:
    llvm.return
  }}
"""
