"""Payloads become programs on buffers: entry, calls, constants; memory is freed and not taken for another."""

import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tuner
from tests.default_suite import ALL
from tests.mlir.kernels import parsed
from tests.models.file_check import cases, checked, filled, require
from tests.models.lowering import device_programs as texts
from tests.models.lowering.compiled import cpu_function, entry_read, host_function, read, refusal
from tests.texts import text_beside
from tuner.core.device_programs import BufferType, ScalarType
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.gpu.lowering import explicit_memory
from tuner.mlir.bindings import ir
from tuner.mlir.effects.accesses import device_accesses
from tuner.mlir.effects.memory_effects import KernelEffects
from tuner.mlir.ir.reading import walk
from tuner.mlir.ir.resources import array_of, split_payload
from tuner.mlir.programs import entry as signature
from tuner.mlir.programs.entry import function_named
from tuner.mlir.programs.indirect_indices import assert_indirect_indices
from tuner.models.execution import copies
from tuner.models.lowering import bufferize

READ = checked(__file__)
T, D = "tensor<3x4xf32>", "tensor<?x4xf32>"
X = np.arange(40, dtype=np.float32).reshape(5, 8)
A, B = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.drawn(len(READ))
@pytest.mark.parametrize("name", READ)
def test_a_payload_is_read_as_it_says(name: str) -> None:
    text = text_beside(__file__, name)
    require(text, read(text))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("options", "text"), cases(text_beside(__file__, "REFUSED")))
def test_what_is_no_program_is_refused_in_one_line(options: dict[str, str], text: str) -> None:
    stage, reason = refusal(text, options.get("entry"))
    assert stage is Stage[options.get("stage", "BIND")]
    assert re.fullmatch(options["refused"], reason)


def test_the_entry_is_the_only_public_function_and_data_are_told_from_numbers() -> None:
    private = "func.func private @h(%x: memref<4xf32>) { return }"
    assert entry_read(f"{private} func.func @f(%x: memref<4xf32>) {{ return }}") == "f"
    both = "func.func @f() { return } func.func @NAME() { return }"
    assert entry_read(both.replace("NAME", "g"), "g") == "g"
    assert entry_read(both.replace("NAME", "main")) == "main"
    assert entry_read(both.replace("NAME", "main"), "f") == "f"
    program = host_function(text_beside(__file__, "KINDS")).program
    assert program.arguments == (BufferType("bf16", (2, None)), ScalarType("index"), ScalarType("f64"))
    assert program.results == (BufferType("i8", (None, 4)), ScalarType("i1"))
    assert host_function(text_beside(__file__, "WRITTEN")).program.written == (False, True, True, False)
    said = "an index into tensor<8xi64> is outside of dimension 0"
    assert asserted(text_beside(__file__, "LOOP")) == [said]


@pytest.mark.parametrize("name", ["malloc", "mgpuStreamCreate", "hello world", "a-b", "0a", "é"])
def test_a_name_that_code_cannot_have_is_refused(name: str) -> None:
    stage, reason = refusal(f'func.func @"{name}"() {{ return }}')
    assert stage is Stage.BIND
    assert reason.startswith(f"payload: func.func at line 1:1: found the name {name!r}, ")


TYPES = {  # of an argument: why it is refused
    "memref<4x4xf32, strided<[4, 1]>>": "",
    "memref<4x4xf32, strided<[?, ?], offset: ?>>": "",
    "memref<?x4xf32>": "",
    "vector<4xf32>": "payload: argument: found vector<4xf32>, allowed memrefs",
    "memref<4x4xf32, strided<[8, 1]>>": "allowed rows that lie without gaps",
    "memref<4x4xf32, strided<[4, 1], offset: 2>>": "an offset of 0",
}


@pytest.mark.parametrize(("kind", "refused"), TYPES.items())
def test_an_argument_is_of_a_type_that_a_contiguous_array_has(kind: str, refused: str) -> None:
    with pytest.raises(CandidateError, match=refused) if refused else nullcontext():
        text = f"func.func @f(%a: {kind}) {{ return }}"
        read(text, lambda payload: signature.arguments_of(payload.function))


def asserted(text: str) -> list[str]:
    with parsed(text) as module:
        assert_indirect_indices(function_named(module, "main"))
        assert module.operation.verify()
        return [ir.StringAttr(op.attributes["msg"]).value for op in walk(module, "cf.assert")]


@pytest.mark.parametrize("rows", ["9", "?"])
def test_only_the_index_that_is_data_is_asserted(rows: str) -> None:
    said = f"an index into tensor<{rows}x4xf32> is outside of dimension 0"
    assert asserted(text_beside(__file__, "GATHER").replace("ROWS", rows)) == [said]


def test_a_text_is_split_into_module_and_data_which_have_their_size() -> None:
    split = split_payload(text_beside(__file__, "TEXT"))
    assert split.text == "module {\n}\n"
    assert dict(split.resources) == {
        "plain_torch.float32": np.array([1, 2], np.float32).tobytes(),
        '"odd, with } and : and #-}"': b"\x01\xff",
    }
    split = split_payload("module {\n}\n")
    assert (split.text, dict(split.resources)) == ("module {\n}\n", {})
    with pytest.raises(CandidateError, match="data without a name"):
        split_payload('module {}\n{-#\n "0x04000000"\n#-}')
    with pytest.raises(CandidateError, match="dense_resource<w>: found what is not hexadecimal"):
        split_payload('module {}\n{-#\n w: "0x04000000zz"\n#-}').resources["w"]
    with pytest.raises(CandidateError, match=r"\(2, 2\) x f32: found 4 bytes, allowed 16"):
        array_of(b"1234", (2, 2), "f32")


@pytest.mark.parametrize("data", [b"\x01\x00\x01", b"\x05"])
def test_booleans_are_bytes_or_bits(data: bytes) -> None:
    np.testing.assert_array_equal(array_of(data, (3,), "i1"), [True, False, True])


def loop(kind: str, body: str, yields: str) -> str:
    return filled(__file__, "SWAPS", kind=kind, body=body, yields=yields)


def branch(kind: str) -> str:
    return text_beside(__file__, "BRANCH").replace("KIND", kind)


def called(text: str, *arguments: Any) -> Any:
    """Calls a program on copies of arrays; it must free all of its memory but for its results."""
    function = host_function(text)
    results = function(*copies(arguments))
    assert function.allocations == 0
    return results


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("iterations", [0, 1, 4])
def test_a_loop_that_makes_new_tensors_and_swaps_them(kind: str, iterations: int) -> None:
    found = called(loop(kind, f"%s = arith.addf %x, %y : {kind}", "%y, %s"), A, B, iterations)
    x, y = A, B
    for _ in range(iterations):
        x, y = y, x + y
    np.testing.assert_array_equal(found, (x, y))


@pytest.mark.parametrize("kind", [T, D])
def test_a_loop_that_only_swaps(kind: str) -> None:
    np.testing.assert_array_equal(called(loop(kind, "", "%y, %x"), A, B, 3), (B, A))


@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_that_makes_a_new_tensor(kind: str, is_true: bool) -> None:
    np.testing.assert_array_equal(called(branch(kind), A, is_true), A + A if is_true else A * A)


def test_branches_that_yield_their_own_memory_or_a_view_of_it_are_told_from_others() -> None:
    given: list[bool] = []
    for kind in (T, D):
        read(branch(kind), lambda it: given.append(bufferize.yields_iteration_local_memory(it.function)))
    assert given == [False, True]
    part = "tensor<2x4xf32>"
    cut = f"tensor.extract_slice %s[1, 0] [2, 4] [1, 1] : {T} to {part}"
    text = re.sub(rf"(-> |return %r : ){T}", rf"\1{part}", branch(T))
    text = text.replace(f"scf.yield %s : {T}", f"%v = {cut} scf.yield %v : {part}")
    assert re.search(r"scf\.if %\w+ ->", read(text)) is None
    np.testing.assert_array_equal(called(text, A, True), (A + A)[1:])


@pytest.mark.parametrize("is_true", [True, False])
def test_a_branch_that_chooses_one_of_two_tensors_does_not_ask_for_addresses(is_true: bool) -> None:
    text = text_beside(__file__, "CHOICE")
    assert "extract_aligned_pointer" not in read(text)
    expected = A + B if is_true else A * B
    expected[1, 1] = expected[1, 1] if is_true else 1
    np.testing.assert_array_equal(called(text, A, B, is_true), expected + A)


def test_a_loop_that_works_in_place_gets_no_copy() -> None:
    body = f"%s = linalg.add ins(%x, %y : {T}, {T}) outs(%x : {T}) -> {T}"
    text = read(loop(T, body, "%s, %y"))
    start = text.index("scf.for")
    inside = text[start : text.index("}", start)]
    assert [op in inside for op in ("linalg.add", "memref.copy", "memref.alloc")] == [True, False, False]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("kind", [T, D])
@pytest.mark.parametrize("iterations", [0, 1, 4])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_while_loop_that_makes_new_tensors(kind: str, iterations: int, is_swapped: bool) -> None:
    handed = "%y, %x" if is_swapped else "%x, %y"
    condition = f"scf.condition(%go) {handed}, %i : {kind}, {kind}, index"
    parts = {"kind": kind, "body": f"%s = arith.addf %x, %y : {kind}", "yields": "%y, %s"}
    found = called(filled(__file__, "WHILE_LOOP", condition=condition, **parts), A, B, iterations)
    x, y = A, B
    for iteration in range(iterations + 1):
        if is_swapped:
            x, y = y, x
        if iteration < iterations:
            x, y = y, x + y
    np.testing.assert_array_equal(found, (x, y))


@pytest.mark.parametrize("kind", [T, D])
def test_a_loop_that_yields_what_a_loop_in_it_made_in_its_place(kind: str) -> None:
    found = called(text_beside(__file__, "LOOP_IN_A_LOOP").replace("KIND", kind), A, B, 3)
    x = B
    for _ in range(3):
        p, q = A, x
        for _ in range(3):
            p, q = q + B, p
        x = q
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    ("low", "high"), [((0, -1), (0, -2)), ((-2, 1), (3, -3)), ((1, 2), (0, 0)), ((-4, 0), (2, 0))]
)
def test_a_padding_gives_what_slices_and_numpy_give(low: tuple[int, int], high: tuple[int, int]) -> None:
    ends = [*zip(X.shape, low, high, strict=True)]
    sizes = dict(zip(("rows", "columns"), (size + a + b for size, a, b in ends), strict=True))
    text = filled(__file__, "PADDED", low=list(low), high=list(high), **sizes)
    cut = tuple(slice(max(-a, 0), size - max(-b, 0)) for size, a, b in ends)
    expected = np.pad(X[cut], [(max(a, 0), max(b, 0)) for _, a, b in ends], constant_values=7)
    np.testing.assert_array_equal(cpu_function(text)(X), expected)


@pytest.mark.parametrize("allocates", ["gpu.alloc", "memref.alloc"])
@pytest.mark.parametrize("branch", ["scf.if %flag", "scf.execute_region", "memref.alloca_scope"])
def test_memory_whose_address_leaves_its_branch_is_freed_after_it(branch: str, allocates: str) -> None:
    parts = {"branch": branch, "allocates": allocates, "frees": allocates.replace("alloc", "dealloc")}
    parts["index"] = "index" if "execute" in branch else "(index)"
    parts["end"] = "memref.alloca_scope.return" if "alloca" in branch else "scf.yield"
    close = "} else { scf.yield %i : index }" if "if" in branch else "}"
    text = filled(__file__, "LEAVES_A_BRANCH", close=close, **parts)
    require(text, read(text))


def mixes(*lines: str, **options: bool) -> bool:
    with texts.main_function(texts.host_function(*lines)) as (_, function):
        return bool(explicit_memory.mixes_memory(function, **options))


def test_memory_mixes_where_a_host_load_and_a_kernel_meet_and_memory_of_one_kind_is_left() -> None:
    added = (texts.alloc("da"), texts.launch("add", "da", "b", "da"), texts.free("da"))
    assert mixes(*added)
    assert not mixes(*added, device_arguments=True)
    any_rank = "memref<*xf32>"
    register = (f"%u = memref.cast %b : {texts.BUFFER} to {any_rank}", f"gpu.host_register %u : {any_rank}")
    assert not mixes(*register, *added)
    lines = (texts.alloc("da"), texts.copy("da", "a"), *texts.store("da"), texts.free("da"))
    assert mixes(*lines)
    assert not mixes(*(line.replace("gpu.alloc", "gpu.alloc host_shared") for line in lines))
    with texts.main_function(texts.TWO_CHAINS) as (module, function):
        assert not explicit_memory.mixes_memory(function)
        explicit_memory.without_explicit_memory(function)
        text = texts.host_text(module)
    counted = [text.count(op) for op in ("memref.alloc()", "memref.dealloc", "memref.copy", "gpu.alloc")]
    assert counted == [3, 3, 3, 0]


def test_a_tensor_that_grows_in_a_loop_is_no_wrong_result() -> None:
    program = tuner.compile_program(text_beside(__file__, "GROWING_LOOP"), target="cpu")
    with pytest.raises(CandidateError, match="another size in the next iteration"):
        program(np.arange(4, dtype=np.float32), 2)
    np.testing.assert_array_equal(program(np.arange(4, dtype=np.float32), 0), np.arange(4))


@pytest.mark.parametrize("target", ["cpu", "simulator"])
def test_a_global_that_a_kernel_names_is_that_of_the_program(target: str) -> None:
    array = np.zeros(4, np.float32)
    tuner.compile_program(text_beside(__file__, "GLOBAL_IN_A_KERNEL"), target=target)(array, 5.0)
    np.testing.assert_array_equal(array, np.full(4, 5))


def test_a_function_that_would_call_itself_in_place_of_the_c_library_is_refused() -> None:
    text = "func.func @NAME(%x: f64) -> f64 { %y = math.exp %x : f64 return %y : f64 }"
    with pytest.raises(UsageError, match="found the name 'exp' of a function of C that it calls"):
        tuner.compile_program(text.replace("NAME", "exp"), target="cpu")
    program = tuner.compile_program(text.replace("NAME", "raised"), target="cpu")
    np.testing.assert_allclose(program(1.0), np.exp(1.0), rtol=1e-15)


def test_a_kernel_may_touch_anything_by_a_global_of_its_module_unless_that_is_constant() -> None:
    with parsed(text_beside(__file__, "GLOBALS_OF_KERNELS")) as module:
        effects = KernelEffects(module)
        launches = walk(module, "gpu.launch_func")
        assert [device_accesses(each, effects).is_unknown for each in launches] == [True, False]


def test_memory_of_an_iteration_in_a_kernel_that_a_condition_forwards_is_refused() -> None:
    found = r"memory of one iteration of a loop that scf\.condition forwards"
    with pytest.raises(CandidateError, match=found):
        tuner.compile_program(text_beside(__file__, "FORWARDED_BY_A_CONDITION"), target="simulator")
