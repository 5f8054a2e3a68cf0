"""Payloads on tensors become payloads on buffers: loops, branches, fills and paddings, against numpy."""

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.file_check import require
from tests.programs.lowering.compiled import host_function, module_text
from tests.texts import text_beside
from tuner.core.candidate import TargetName

pytestmark = pytest.mark.mlir

bufferize = pytest.importorskip("tuner.programs.lowering.bufferize")
T, D = "tensor<3x4xf32>", "tensor<?x4xf32>"


def loop(kind: str, body: str, yields: str) -> str:
    return text_beside(__file__, "LOOP").replace("KIND", kind).replace("BODY", body).replace("YIELDS", yields)


def branch(kind: str) -> str:
    return text_beside(__file__, "BRANCH").replace("KIND", kind)


def arrays() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("iterations", [0, 1, 4])
def test_a_loop_that_makes_new_tensors_and_swaps_them(kind: str, iterations: int) -> None:
    function = host_function(loop(kind, f"%s = arith.addf %x, %y : {kind}", "%y, %s"))
    x, y = a, b = arrays()
    found = function(a.copy(), b.copy(), iterations)
    for _ in range(iterations):
        x, y = y, x + y
    np.testing.assert_array_equal(found, (x, y))
    assert function.allocations == 0


@pytest.mark.parametrize("kind", [T, D])
def test_a_loop_that_only_swaps(kind: str) -> None:
    function = host_function(loop(kind, "", "%y, %x"))
    a, b = arrays()
    np.testing.assert_array_equal(function(a.copy(), b.copy(), 3), (b, a))


@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_that_makes_a_new_tensor(kind: str, is_true: bool) -> None:
    function = host_function(branch(kind))
    a, _ = arrays()
    np.testing.assert_array_equal(function(a.copy(), is_true), a + a if is_true else a * a)
    assert function.allocations == 0


def test_no_branch_of_known_shape_yields_its_own_memory() -> None:
    given = []
    module_text(
        branch(T), lambda payload: given.append(bufferize.yields_iteration_local_memory(payload.function))
    )
    module_text(
        branch(D), lambda payload: given.append(bufferize.yields_iteration_local_memory(payload.function))
    )
    assert given == [False, True]


def test_a_branch_that_yields_a_view_of_its_own_memory_yields_its_own_memory() -> None:
    part = "tensor<2x4xf32>"
    cut = f"tensor.extract_slice %s[1, 0] [2, 4] [1, 1] : {T} to {part}"
    text = branch(T).replace(
        f"-> {T} {{\n  %r = scf.if %p -> {T}", f"-> {part} {{\n  %r = scf.if %p -> {part}"
    )
    text = text.replace(f"scf.yield %s : {T}", f"%v = {cut} scf.yield %v : {part}")
    text = text.replace(f"return %r : {T}", f"return %r : {part}")
    assert re.search(r"scf\.if %\w+ ->", module_text(text, lambda _payload: None)) is None
    function = host_function(text)
    a, _ = arrays()
    np.testing.assert_array_equal(function(a.copy(), True), (a + a)[1:])
    assert function.allocations == 0


@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_that_chooses_one_of_two_tensors_does_not_ask_for_addresses(is_true: bool) -> None:
    text = text_beside(__file__, "CHOICE")
    payloads = []
    module_text(text, lambda payload: payloads.append(str(payload.module)))
    assert "extract_aligned_pointer" not in payloads[0]
    function = host_function(text)
    a, b = arrays()
    expected = a + b if is_true else a * b
    expected[1, 1] = expected[1, 1] if is_true else 1
    np.testing.assert_array_equal(function(a, b, is_true), expected + a)
    assert function.allocations == 0


def test_a_loop_that_works_in_place_gets_no_copy() -> None:
    body = f"%s = linalg.add ins(%x, %y : {T}, {T}) outs(%x : {T}) -> {T}"
    text = module_text(loop(T, body, "%s, %y"), lambda _payload: None)
    start = text.index("scf.for")
    inside = text[start : text.index("}", start)]
    assert "linalg.add" in inside
    assert "memref.copy" not in inside
    assert "memref.alloc" not in inside


def while_loop(kind: str, body: str, condition: str, yields: str) -> str:
    text = text_beside(__file__, "WHILE_LOOP").replace("KIND", kind).replace("BODY", body)
    return text.replace("CONDITION", condition).replace("YIELDS", yields)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("iterations", [0, 1, 4])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_while_loop_that_makes_new_tensors_and_swaps_them(
    kind: str, iterations: int, is_swapped: bool
) -> None:
    handed = "%y, %x" if is_swapped else "%x, %y"
    condition = f"scf.condition(%go) {handed}, %i : {kind}, {kind}, index"
    function = host_function(while_loop(kind, f"%s = arith.addf %x, %y : {kind}", condition, "%y, %s"))
    x, y = a, b = arrays()
    found = function(a.copy(), b.copy(), iterations)
    for iteration in range(iterations + 1):
        if is_swapped:
            x, y = y, x
        if iteration < iterations:
            x, y = y, x + y
    np.testing.assert_array_equal(found, (x, y))
    assert function.allocations == 0


@pytest.mark.parametrize("kind", [T, D])
def test_a_loop_that_yields_what_a_loop_in_it_made_in_its_place(kind: str) -> None:
    text = text_beside(__file__, "LOOP_IN_A_LOOP").replace("KIND", kind)
    (a, b), iterations = arrays(), 3
    x = b
    for _ in range(iterations):
        p, q = a, x
        for _ in range(iterations):
            p, q = q + b, p
        x = q
    np.testing.assert_array_equal(host_function(text)(a.copy(), b.copy(), iterations), x)


@pytest.mark.parametrize(
    "name",
    [
        "two_matmuls_from_one_fill_get_one_each",
        "a_fill_of_one_user_stays_one",
        "a_fill_of_an_argument_is_left_alone",
    ],
)
def test_a_fill_is_copied_for_each_user(name: str) -> None:
    text = text_beside(__file__, name)
    require(text, module_text(text, lambda _payload: None))


X = np.arange(40, dtype=np.float32).reshape(5, 8)


def padded(low: tuple[int, int], high: tuple[int, int]) -> str:
    rows, columns = (size + a + b for size, a, b in zip((5, 8), low, high, strict=True))
    return f"""func.func @main(%x: tensor<5x8xf32>) -> tensor<{rows}x{columns}xf32> {{
      %c = arith.constant 7.0 : f32
      %y = tensor.pad %x low{list(low)} high{list(high)} {{
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      }} : tensor<5x8xf32> to tensor<{rows}x{columns}xf32>
      return %y : tensor<{rows}x{columns}xf32>
    }}"""


@pytest.mark.parametrize(
    ("low", "high"), [((0, -1), (0, -2)), ((-2, 1), (3, -3)), ((1, 2), (0, 0)), ((-4, 0), (2, 0))]
)
def test_a_padding_gives_what_slices_and_numpy_give(low: tuple[int, int], high: tuple[int, int]) -> None:
    from tuner.programs.run.host_function import HostFunction

    found = HostFunction(compiler_of(TargetName("cpu")).compile(padded(low, high)).code)(X)
    rows, columns = (
        slice(max(-a, 0), size - max(-b, 0)) for size, a, b in zip(X.shape, low, high, strict=True)
    )
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(found, np.pad(X[rows, columns], widths, constant_values=7))
