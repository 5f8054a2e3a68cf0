"""Host functions on device memory, still synchronous: texts for the tests of the asynchronous forms."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.core.compiled_code import Assemble
from tuner.core.device_programs import DeviceOptions, DeviceProgram
from tuner.core.gpu import chip_of
from tuner.gpu.lowering.device import lower_device_program

BUFFER = "memref<16xf32>"
WIDE = "memref<32xf32>"
PART = "memref<16xf32, strided<[1], offset: ?>>"  # of a wide one
ONE_BLOCK = "blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)"
# Each does its work with one block of 16 threads; the last buffer is written.
KERNELS = text_beside(__file__, "KERNELS")
# Those, and three for parts of a wide buffer.
KERNELS_OF_PARTS = KERNELS.removesuffix("  }\n") + text_beside(__file__, "OF_PARTS")


def host_function(*lines: str, buffers: str = "ab", others: str = "", kernels: str = KERNELS) -> str:
    """Returns a module whose @main takes host buffers named by letters; %c0, %c1, %c16, %n are indices."""
    arguments = ", ".join([*(f"%{name}: {BUFFER}" for name in buffers), *filter(None, [others])])
    constants = {"c0": 0, "c1": 1, "c16": 16, "n": 3}
    body = [f"%{name} = arith.constant {number} : index" for name, number in constants.items()]
    text = "\n".join(f"    {line}" for line in [*body, *lines, "return"])
    return f"""module attributes {{gpu.container_module}} {{
  func.func @main({arguments}) {{
{text}
  }}
{kernels}}}
"""


def alloc(name: str) -> str:
    return f"%{name} = gpu.alloc () : {BUFFER}"


def free(name: str) -> str:
    return f"gpu.dealloc %{name} : {BUFFER}"


def copy(target: str, source: str) -> str:
    return f"gpu.memcpy %{target}, %{source} : {BUFFER}, {BUFFER}"


def launch(kernel: str, *names: str) -> str:
    return launch_parts(kernel, *((name, BUFFER) for name in names))


def part(name: str, wide: str, offset: int) -> list[str]:
    """Returns what makes a view of 16 of the elements of a wide buffer, whose type does not tell where."""
    view = f"memref<16xf32, strided<[1]{f', offset: {offset}' if offset else ''}>>"
    return [
        f"%{name}_ = memref.subview %{wide}[{offset}] [16] [1] : {WIDE} to {view}",
        f"%{name} = memref.cast %{name}_ : {view} to {PART}",
    ]


def launch_parts(kernel: str, *operands: tuple[str, str]) -> str:
    """Returns a launch whose operands are (name, type)."""
    arguments = ", ".join(f"%{name} : {kind}" for name, kind in operands)
    return f"gpu.launch_func @m::@{kernel} {ONE_BLOCK} args({arguments})"


def store(name: str) -> list[str]:
    """Returns a read and a write by the host; done before an addition, or behind it, it is not the same."""
    return [
        f"%of_{name} = memref.load %{name}[%c0] : {BUFFER}",
        f"%twice_{name} = arith.addf %of_{name}, %of_{name} : f32",
        f"memref.store %twice_{name}, %{name}[%c1] : {BUFFER}",
    ]


# Two chains that can run at the same time, and what joins them; all copies.
TWO_CHAINS = host_function(text_beside(__file__, "TWO_CHAINS"))
# A loop of two chains whose results the host reads each time.
LOOP_WITH_HOST = host_function(text_beside(__file__, "LOOP_WITH_HOST"))
# A branch with two chains of its own, next to work that does not touch them.
BRANCH = host_function(text_beside(__file__, "BRANCH"), others="%flag: i1")
# The halves of one buffer have nothing to do with one another.
HALVES = host_function(text_beside(__file__, "HALVES"), kernels=KERNELS_OF_PARTS)
# The middle is a part of both halves.
OVERLAPPING_PARTS = HALVES.replace(
    "gpu.launch_func @m::@gather",
    "\n    ".join([*part("m", "w", 8), launch_parts("inc_part", ("m", PART)), "gpu.launch_func @m::@gather"]),
    1,
)


@contextmanager
def main_function(text: str) -> Iterator[tuple[Any, Any]]:
    with parsed(text) as module:
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        yield module, functions[-1]


def lowered(text: str, assemble: Assemble | None = None, **options: Any) -> DeviceProgram:
    with parsed(text) as module:
        return lower_device_program(module, "main", chip_of("sm_90"), DeviceOptions(**options), assemble)


def host_text(module: Any) -> str:
    return str(module).split("  gpu.module")[0]
