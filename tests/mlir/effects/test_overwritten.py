import pytest

from tests.mlir.kernels import parsed
from tests.texts import text_beside
from tuner.mlir.effects import memory_effects
from tuner.mlir.ir import reading

pytestmark = pytest.mark.mlir


MODULE = text_beside(__file__, "MODULE")


def proved(body: str, shape: str, grid: int = 4, block: int = 8) -> bool:
    """Returns what is said about a kernel on ``grid`` blocks of ``block`` threads."""
    kind = f"memref<{shape}xf32>"
    text = MODULE.replace("BODY", body).replace("KIND", kind)
    text = text.replace("GRID", str(grid)).replace("BLOCK", str(block))
    with parsed(text) as module:
        (launch,), (kernel,) = reading.walk(module, "gpu.launch_func"), reading.walk(module, "gpu.func")
        return bool(memory_effects.overwrites(launch, kernel, 0))


@pytest.mark.parametrize(
    ("index", "shape", "is_proved"),
    [
        ("%bx, %tx", "4x8", True),
        ("%tx, %bx", "8x4", True),
        ("%n", "32", True),
        ("%m", "32", True),
        ("%n, %c0", "32x1", True),
        ("%by, %n", "1x32", True),
        ("%n", "33", False),  # the last is left
        ("%bx, %bx", "4x4", False),  # the diagonal
        ("%last", "32", False),
        ("%row, %column", "4x8", False),  # right, but not linear and without a guard
    ],
)
def test_a_store_of_every_thread(index: str, shape: str, is_proved: bool) -> None:
    assert proved(f"memref.store %v, %a[{index}] : KIND", shape) is is_proved


@pytest.mark.parametrize(
    ("condition", "index", "shape", "is_proved"),
    [
        ("%in", "%n", "32", True),
        ("%in", "%row, %column", "4x8", True),
        ("%in", "%column, %row", "8x4", False),
        ("%in", "%n", "33", False),
        ("%out", "%n", "32", False),  # too few threads store
        ("%in", "%row, %c0", "4x8", False),
    ],
)
def test_a_store_after_a_guard(condition: str, index: str, shape: str, is_proved: bool) -> None:
    body = f"scf.if {condition} {{ memref.store %v, %a[{index}] : KIND }}"
    assert proved(body, shape) is is_proved
    assert proved(body, shape, grid=5) is is_proved  # more threads than elements
    assert not proved(body, shape, grid=3)


def test_a_store_in_a_loop_is_not_proved() -> None:
    loop = "scf.for %i = %c0 to %k step %c4 { memref.store %v, %a[%n] : KIND }"
    assert not proved(loop, "32")
