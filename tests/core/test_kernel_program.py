import pytest

from tuner.core import compiled_code
from tuner.core.compiled_code import (
    BufferMap,
    KernelBuffer,
    KernelCode,
    Launch,
    Resources,
    TensorMapLayout,
    buffers_of,
)
from tuner.core.matmul import Matmul
from tuner.gpu.cost_model.untimed import is_serialized


def test_a_problem_has_its_inputs_and_output_and_the_hash_sees_tensor_maps() -> None:
    a, b = KernelBuffer("a", 3 * 7 * 4, "input"), KernelBuffer("b", 7 * 5 * 4, "input")
    assert buffers_of(Matmul(3, 5, 7)) == (a, b, KernelBuffer("c", 3 * 5 * 4, "output"))

    def program(*maps: BufferMap) -> KernelCode:
        return KernelCode("sm_90a", "//", b"", (Launch("k", (1, 1, 1), (1, 1, 1), 0, ("m",), maps),), ())

    wide, narrow = (BufferMap("m", "a", TensorMapLayout((64, 8), (128,), (box, 8), 6)) for box in (64, 32))
    assert len({compiled_code.code_sha256(program(*maps)) for maps in ((), (wide,), (narrow,))}) == 3
    launch = program(wide).launches[0]
    assert (launch.tensor_map("m"), launch.tensor_map("c")) == (wide, None)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_the_bias_stands_before_the_output_and_has_its_type(layout: str) -> None:
    buffers = buffers_of(Matmul(3, 5, 7, "bf16", layout, "bias_relu"))
    assert [(each.name, each.bytes) for each in buffers] == [("a", 42), ("b", 70), ("bias", 20), ("c", 60)]


@pytest.mark.parametrize(
    ("code", "expected"), [("C7510", True), ("C7513", True), ("C7519", True), ("C7508", False)]
)
def test_a_note_of_the_assembler_may_say_that_products_wait(code: str, expected: bool) -> None:
    notes = ("something else", f"({code}) Potential Performance Loss: wgmma.mma_async ...")
    assert is_serialized(Resources("k", 168, 0, 0, 0, 0, 0, 0.2, 1, notes)) is expected


@pytest.mark.parametrize(("grid", "tiles"), [((3, 1, 1), (4, 5)), ((4, 2, 1), (3, 6)), ((6, 1, 1), (8, 5))])
def test_blocks_share_the_tiles_of_c(grid: tuple[int, int, int], tiles: tuple[int, int]) -> None:
    launch = Launch("k", grid, (1, 1, 1), 0, (), tile_grid=tiles)
    counts = [launch.tiles_of((x, y, 0)) for x in range(grid[0]) for y in range(grid[1])]
    assert sum(counts) == tiles[0] * tiles[1]
    assert max(counts) - min(counts) <= 1
    assert Launch("k", grid, (1, 1, 1), 0, ()).tiles_of((2, 0, 0)) == 1
