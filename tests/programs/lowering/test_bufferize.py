"""Payloads on tensors become payloads on buffers; memory that nobody frees is freed after its last use."""

import re
from typing import Any

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.file_check import filled, require
from tests.programs.lowering.compiled import host_function, module_text, read, refusal
from tests.programs.lowering.device_programs import (
    BUFFER,
    TWO_CHAINS,
    alloc,
    copy,
    free,
    launch,
    main_function,
    store,
)
from tests.programs.lowering.device_programs import (
    host_function as device_program,
)
from tests.texts import text_beside
from tuner.core.candidate import TargetName
from tuner.core.errors import Stage
from tuner.programs.lowering import bufferize, explicit_memory
from tuner.programs.run.host_function import HostFunction

pytestmark = pytest.mark.mlir


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
    return filled(__file__, "PADDED", rows=rows, columns=columns, low=list(low), high=list(high))


@pytest.mark.parametrize(
    ("low", "high"), [((0, -1), (0, -2)), ((-2, 1), (3, -3)), ((1, 2), (0, 0)), ((-4, 0), (2, 0))]
)
def test_a_padding_gives_what_slices_and_numpy_give(low: tuple[int, int], high: tuple[int, int]) -> None:
    found = HostFunction(compiler_of(TargetName("cpu")).compile(padded(low, high)).code)(X)
    rows, columns = (
        slice(max(-a, 0), size - max(-b, 0)) for size, a, b in zip(X.shape, low, high, strict=True)
    )
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(found, np.pad(X[rows, columns], widths, constant_values=7))


M = "memref<4xf32>"


def freed(*lines: str, arguments: str = "") -> list[str]:
    """Returns the first word that names an op of each line of @f, once it is read."""
    body = "\n".join(lines)
    text = read(f"func.func @f({arguments}) {{ {body}\n return }}")
    return [line.split(" = ")[-1].split()[0].split("(")[0].strip('"') for line in text.splitlines()[2:-2]]


def test_memory_of_a_stream_is_freed_in_front_of_its_end() -> None:
    names = ("create_stream", "alloc", "memcpy", "wait", "dealloc", "destroy_stream")
    found = freed(text_beside(__file__, "OF_A_STREAM"), arguments=f"%a: {M}")
    assert found == [*(f"gpux.{name}" for name in names), "return"]


def test_memory_on_two_streams_that_nobody_frees_is_refused() -> None:
    stage, reason = refusal(text_beside(__file__, "TWO_STREAMS"))
    assert stage is Stage.COMPILE
    assert "found memory on several streams that nobody frees, allowed gpux.dealloc of it" in reason


def test_memory_whose_address_is_taken_is_freed_at_the_end() -> None:
    found = freed(text_beside(__file__, "ADDRESS_TAKEN"), arguments=f"%a: {M}, %p: memref<index>")
    assert found[-3:] == ["memref.store", "gpu.dealloc", "return"]


def test_memory_that_a_branch_hands_on_is_made_in_front_of_it_and_freed_behind() -> None:
    names = freed(text_beside(__file__, "HANDED_ON"), arguments=f"%a: {M}, %flag: i1")
    assert names[0] == "gpu.alloc"
    assert names[-3:] == ["gpu.memcpy", "gpu.dealloc", "return"]


POINTER = "%w = arith.index_cast %r : index to i64 %p = llvm.inttoptr %w : i64 to !llvm.ptr"
LOADED = f"{POINTER} %v = llvm.load %p : !llvm.ptr -> f32 memref.store %v, %o[] : memref<f32>"
ADDRESS = f"%n = memref.extract_aligned_pointer_as_index %x : {M} -> index"


def test_memory_of_a_descriptor_is_freed_after_the_kernel() -> None:
    names = freed(text_beside(__file__, "OF_A_DESCRIPTOR"), arguments="%i: index")
    assert names[-4:] == ["gpu.terminator", "}", "gpu.dealloc", "return"]


@pytest.mark.parametrize("branch", ["scf.if %flag", "scf.execute_region", "memref.alloca_scope"])
@pytest.mark.parametrize("allocates", ["gpu.alloc ()", "memref.alloc()"])
def test_memory_whose_address_leaves_its_branch_is_freed_after_the_branch(
    branch: str, allocates: str
) -> None:
    end = "memref.alloca_scope.return" if "alloca" in branch else "scf.yield"
    lines = (
        f"%r = {branch} -> (index) {{".replace("(index)", "index" if "execute" in branch else "(index)"),
        f"%x = {allocates} : {M}",
        ADDRESS,
        f"{end} %n : index",
        "} else { scf.yield %i : index }" if "if" in branch else "}",
        LOADED,
    )
    names = freed(*lines, arguments="%i: index, %flag: i1, %o: memref<f32>")
    assert names[0] == allocates.split(" ")[0].removesuffix("()")
    assert names[-4:-1] == ["llvm.load", names[0].replace("alloc", "dealloc"), "memref.store"]


@pytest.mark.parametrize(
    "end", ["scf.yield %n : index", "memref.store %n, %box[] : memref<index> scf.yield %k : index"]
)
def test_memory_whose_address_leaves_an_iteration_is_refused(end: str) -> None:
    text = filled(__file__, "LEAVES_AN_ITERATION", kind=M, address=ADDRESS, end=end, loaded=LOADED)
    reason = "found memory that leaves scf.for and that nobody frees, allowed memory that is freed"
    assert reason in refusal(text)[1]


def test_a_size_that_is_computed_in_the_branch_is_refused() -> None:
    assert (
        "found memory that leaves its branch, of a size that is computed there"
        in refusal(text_beside(__file__, "SIZE_OF_THE_BRANCH"))[1]
    )


def mixes(*lines: str, **options: bool) -> bool:
    with main_function(device_program(*lines)) as (_, function):
        return bool(explicit_memory.mixes_memory(function, **options))


def test_a_program_that_copies_for_itself_does_not_mix() -> None:
    with main_function(TWO_CHAINS) as (_, function):
        assert not explicit_memory.mixes_memory(function)


def test_a_kernel_on_an_argument_mixes_unless_that_is_device_memory_or_registered() -> None:
    lines = (alloc("da"), launch("add", "da", "b", "da"), free("da"))
    assert mixes(*lines)
    assert not mixes(*lines, device_arguments=True)
    register = (f"%u = memref.cast %b : {BUFFER} to memref<*xf32>", "gpu.host_register %u : memref<*xf32>")
    assert not mixes(*register, *lines)


def test_a_host_load_of_device_memory_mixes_unless_it_is_shared() -> None:
    lines = (alloc("da"), copy("da", "a"), *store("da"), free("da"))
    assert mixes(*lines)
    assert not mixes(*(line.replace("gpu.alloc", "gpu.alloc host_shared") for line in lines))


def test_memory_of_one_kind_is_left() -> None:
    with main_function(TWO_CHAINS) as (module, function):
        explicit_memory.without_explicit_memory(function)
        text = str(module).split("gpu.module")[0]
    assert text.count("memref.alloc()") == text.count("memref.dealloc") == 3
    assert text.count("memref.copy") == 3
    assert "gpu.alloc" not in text
