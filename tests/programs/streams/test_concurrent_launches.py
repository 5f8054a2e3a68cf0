"""Launches that tokens leave unordered stay so where kernels meet in memory that they use atomically."""

import pytest

from tests.mlir.kernels import parsed

pytestmark = pytest.mark.mlir

concurrent_launches = pytest.importorskip("tuner.programs.streams.dependency_graph")
dependency_graph = pytest.importorskip("tuner.programs.streams.dependency_graph")
drop_tokens = pytest.importorskip("tuner.programs.streams.async_ops")
kernel_effects = pytest.importorskip("tuner.mlir.effects.memory_effects")
walking = pytest.importorskip("tuner.mlir.ir.reading")

M = "memref<i32>"
MODULE = """module attributes {{gpu.container_module}} {{
  gpu.module @m {{
    gpu.func @count(%p: memref<i32>) kernel {{
      %one = arith.constant 1 : i32
      %s = memref.cast %p : memref<i32> to memref<i32>
      %r = memref.atomic_rmw addi %one, %s[] : (i32, memref<i32>) -> i32
      gpu.return
    }}
    gpu.func @store(%p: memref<i32>) kernel {{
      %one = arith.constant 1 : i32
      memref.store %one, %p[] : memref<i32>
      gpu.return
    }}
  }}
  func.func @main(%a: memref<i32>) {{
    %c1 = arith.constant 1 : index
    %s = gpu.wait async
    %t = gpu.wait async
    {body}
    return
  }}
}}"""


def launched(result: str, after: str, kernel: str = "count") -> str:
    return f"""{result} = gpu.launch_func async [{after}] @m::@{kernel} blocks in (%c1, %c1, %c1)
      threads in (%c1, %c1, %c1) args(%a : {M})\n"""


PLAIN = (
    "gpu.launch_func @m::@count blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<i32>)\n"
)


def dependences(body: str) -> list[list[int]]:
    """Returns, for each launch of the body, which earlier nodes it is ordered after."""
    with parsed(MODULE.format(body=body)) as module:
        function = next(op for op in walking.walk(module, "func.func"))
        concurrent_launches.note_concurrency(module, function)
        drop_tokens.drop_tokens(function)
        effects = kernel_effects.KernelEffects(module)
        graph = dependency_graph.dependency_graph(function, effects, bodies_run_on_streams=True)
        concurrent_launches.forget_concurrency(function)
        assert "tuner.launch" not in str(module)
        return [sorted(item.node.before) for item in graph.items]


def test_launches_of_streams_that_no_token_orders_may_run_together() -> None:
    assert dependences(launched("%x", "%s") + launched("%y", "%t") + "gpu.wait [%x, %y]") == [[], []]


@pytest.mark.parametrize(
    "body",
    [
        launched("%x", "%s") + launched("%y", "%x"),
        launched("%x", "%s") + "%z = gpu.wait async [%x]\n" + launched("%y", "%z"),
        launched("%x", "%s") + "gpu.wait [%x]\n" + launched("%y", "%t"),
        launched("%x", "%s") + "gpu.wait\n" + launched("%y", "%t"),
        launched("%x", "%s") + launched("%y", "%t", "store"),  # a plain write
        launched("%x", "%s", "store") + launched("%y", "%t"),
        PLAIN + launched("%y", "%t"),
        launched("%x", "%s") + PLAIN,
    ],
)
def test_other_launches_on_the_same_memory_are_ordered(body: str) -> None:
    assert dependences(body) == [[], [0]]
