"""Host functions on device memory, still synchronous: texts for the tests of the asynchronous forms."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.mlir.kernels import parsed

BUFFER = "memref<16xf32>"
# Each does its work with one block of 16 threads; the last buffer is written.
KERNELS = """  gpu.module @m {
    gpu.func @inc(%a: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %a[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @twice(%a: memref<16xf32>, %b: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %b[%i] : memref<16xf32>
      gpu.return
    }
    gpu.func @add(%a: memref<16xf32>, %b: memref<16xf32>, %c: memref<16xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %a[%i] : memref<16xf32>
      %w = memref.load %b[%i] : memref<16xf32>
      %x = arith.addf %v, %w : f32
      memref.store %x, %c[%i] : memref<16xf32>
      gpu.return
    }
  }
"""


def host_function(*lines: str, buffers: str = "ab", others: str = "") -> str:
    """Returns a module whose @main takes host buffers named by letters; %c0, %c1, %c16, %n are indices."""
    arguments = ", ".join([*(f"%{name}: {BUFFER}" for name in buffers), *filter(None, [others])])
    constants = {"c0": 0, "c1": 1, "c16": 16, "n": 3}
    body = [f"%{name} = arith.constant {number} : index" for name, number in constants.items()]
    text = "\n".join(f"    {line}" for line in [*body, *lines, "return"])
    return f"""module attributes {{gpu.container_module}} {{
  func.func @main({arguments}) {{
{text}
  }}
{KERNELS}}}
"""


def alloc(name: str) -> str:
    return f"%{name} = gpu.alloc () : {BUFFER}"


def free(name: str) -> str:
    return f"gpu.dealloc %{name} : {BUFFER}"


def copy(target: str, source: str) -> str:
    return f"gpu.memcpy %{target}, %{source} : {BUFFER}, {BUFFER}"


def launch(kernel: str, *names: str) -> str:
    arguments = ", ".join(f"%{name} : {BUFFER}" for name in names)
    sizes = "blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)"
    return f"gpu.launch_func @m::@{kernel} {sizes} args({arguments})"


def store(name: str) -> list[str]:
    """Returns a read and a write by the host; done before an addition, or behind it, it is not the same."""
    return [
        f"%of_{name} = memref.load %{name}[%c0] : {BUFFER}",
        f"%twice_{name} = arith.addf %of_{name}, %of_{name} : f32",
        f"memref.store %twice_{name}, %{name}[%c1] : {BUFFER}",
    ]


# Two chains that can run beside one another, and what joins them; all copies.
TWO_CHAINS = host_function(
    *(alloc("da"), alloc("db"), alloc("dc")),
    *(copy("da", "a"), launch("inc", "da"), launch("inc", "da")),
    *(copy("db", "b"), launch("inc", "db"), launch("inc", "db")),
    *(launch("add", "da", "db", "dc"), copy("a", "dc")),
    *(free("da"), free("db"), free("dc")),
)
# A loop of two chains whose results the host reads each time.
LOOP_WITH_HOST = host_function(
    *(alloc("da"), alloc("db"), copy("da", "a"), copy("db", "b")),
    "scf.for %i = %c0 to %n step %c1 {",
    *(launch("inc", "da"), launch("inc", "db"), copy("b", "db"), *store("b"), copy("db", "b")),
    "}",
    *(launch("add", "da", "db", "db"), copy("a", "da"), copy("b", "db")),
    *(free("da"), free("db")),
)
# A branch with two chains of its own, beside work that does not touch them.
BRANCH = host_function(
    *(alloc("da"), alloc("db"), alloc("dc"), copy("da", "a"), copy("db", "b"), copy("dc", "a")),
    "scf.if %flag {",
    *(launch("inc", "da"), launch("inc", "db")),
    "} else {",
    launch("twice", "da", "db"),
    "}",
    *(launch("inc", "dc"), launch("add", "da", "dc", "db"), copy("b", "db")),
    *(free("da"), free("db"), free("dc")),
    others="%flag: i1",
)


@contextmanager
def main_function(text: str) -> Iterator[tuple[Any, Any]]:
    """Gives (module, @main) in a context of its own."""
    with parsed(text) as module:
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        yield module, functions[-1]


def host_text(module: Any) -> str:
    """Returns the host's part of a module's text."""
    return str(module).split("  gpu.module")[0]
