"""Programs of many operations: an answer in seconds, or one line that says how many may be; no traceback."""

import numpy as np
import pytest

from tests.mlir.kernels import parsed
from tests.programs.test_resource_constants import TARGETS
from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk
from tuner.programs.fusions.formation import OPS_LIMIT
from tuner.programs.lowering.entry import OPERATIONS_LIMIT, require_few_operations
from tuner.programs.lowering.read_program import read_program
from tuner.programs.request import ProgramRequest
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.service import INDEXED, compile_and_check, run_program

pytestmark = pytest.mark.mlir

KIND = "tensor<8x16xf32>"


def chain(count: int) -> str:
    """Returns a program that adds ``%one`` ``count`` times, with one empty tensor for all additions."""
    ops = "".join(
        text_beside(__file__, "ADDITION").replace("TO", f"v{at + 1}").replace("FIRST", f"v{at}")
        for at in range(count)
    )
    return (
        "#m = affine_map<(i, j) -> (i, j)>\n"
        f"func.func @main(%v0: {KIND}, %one: {KIND}) -> {KIND} {{\n"
        f"  %empty = tensor.empty() : {KIND}\n{ops}  return %v{count} : {KIND}\n}}"
    )


@pytest.mark.slow
def test_a_chain_of_a_thousand_operations_becomes_fusions_and_is_right() -> None:
    compiled = compile_and_check(ProgramRequest(chain(1000), TARGETS["cpu"]))
    assert compiled.image is not None
    assert len(compiled.image.code.fusions) == 1000 // OPS_LIMIT
    program = FusedFunction(compiled.image.code, compiled.image.weights)
    start = np.arange(128, dtype=np.float32).reshape(8, 16)
    assert np.array_equal(program(start, np.ones((8, 16), np.float32)), start + 1000)


def test_operations_that_read_no_reshape_are_not_traced_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trace is up to 100 operations long."""
    traced: list[object] = []
    monkeypatch.setattr("tuner.programs.fusions.producer_shapes._ends_contraction", traced.append)
    request = ProgramRequest(text_beside(__file__, "ARITHMETIC"), TARGETS["cpu"])
    assert compile_and_check(request).image is not None
    assert traced == []


def test_as_a_whole_an_empty_tensor_that_many_operations_share_becomes_several_buffers() -> None:
    with transform.new_context(), ir.Location.unknown():
        payload = read_program(chain(100))
        assert 1 < len(walk(payload.function, "memref.alloc")) < 10


def test_a_chain_of_slices_has_an_answer() -> None:
    """Longer than Python's stack: each is a view of the one before it."""
    lines = []
    for size in range(2500, 1000, -1):
        slices = f"[0] [{size - 1}] [1] : tensor<{size}xf32> to tensor<{size - 1}xf32>"
        lines.append(f"  %v{size - 1} = tensor.extract_slice %v{size}{slices}")
    text = "\n".join(
        (
            "func.func @main(%v2500: tensor<2500xf32>) -> tensor<1000xf32> {",
            *(*lines, "  %r = math.absf %v1000 : tensor<1000xf32>", "  return %r : tensor<1000xf32>", "}"),
        )
    )
    assert run_program(ProgramRequest(text, TARGETS["cpu"], is_timed=False)).is_right


def test_a_program_of_too_many_operations_is_refused_in_one_line() -> None:
    lines = "".join(f"  %v{at + 1} = arith.addf %v{at}, %v{at} : f32\n" for at in range(OPERATIONS_LIMIT + 1))
    text = f"func.func @main(%v0: f32) -> f32 {{\n{lines}  return %v{OPERATIONS_LIMIT + 1} : f32\n}}"
    with pytest.raises(CandidateError) as caught:
        compile_and_check(ProgramRequest(text, TARGETS["cpu"]))
    assert caught.value.stage is Stage.BIND
    assert caught.value.reason == (
        "payload: found 20001 operations, allowed 20000: divide it into several programs"
    )


def test_operations_in_a_linalg_operation_do_not_count() -> None:
    with parsed(chain(3)) as module:
        require_few_operations(module, 4)  # an empty tensor, three additions
        with pytest.raises(CandidateError, match="found 4 operations, allowed 3"):
            require_few_operations(module, 3)


def test_as_a_whole_fewer_operations_are_allowed() -> None:
    found = "found 3 operations on tensors in a program that is compiled as a whole, allowed 2"
    with transform.new_context(), ir.Location.unknown():
        read_program(chain(3), limit=3)
        with pytest.raises(CandidateError, match=found):
            read_program(chain(3), limit=2)


@pytest.mark.parametrize(
    ("op", "is_indexed"),
    [
        ("%y = tensor.extract_slice %x[0] [4] [1] : tensor<9xf32> to tensor<4xf32>", False),
        ("%y = tensor.extract_slice %x[%i] [4] [1] : tensor<9xf32> to tensor<4xf32>", True),
        ("%y = tensor.insert_slice %x into %z[%i]\n [4] [1] : tensor<4xf32> into tensor<9xf32>", True),
        ("%y = tensor.insert_slice %x into %z[5] [4] [1] : tensor<4xf32> into tensor<9xf32>", False),
        ("%y = tensor.extract %x[%i] : tensor<9xf32>", True),
        ('%y = "tensor.extract_slice"(%x, %i) : (tensor<9xf32>, index) -> tensor<4xf32>', True),
        (
            "%y = tensor.expand_shape %x [[0, 1]] output_shape [3, 3] : tensor<9xf32> into tensor<3x3xf32>",
            False,
        ),
    ],
)
def test_accesses_by_values_are_told_from_static_ones(op: str, *, is_indexed: bool) -> None:
    assert bool(INDEXED.search(op)) is is_indexed
