"""The header of a library, written and read."""

from dataclasses import replace

import numpy as np
import pytest

from tests.models.library.values import Array, ProgramFunction, entry, product, two_with_relu
from tests.support.llvm_tools import has_assertions, stock_result
from tests.texts import text_beside
from tuner.analysis.slowdown import PairedSlowdown
from tuner.core.errors import CandidateError, UsageError
from tuner.core.matmul import BatchMatmul, Matmul
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.models.library import header, library
from tuner.models.library.contraction_report import contraction_reports, payload_contractions
from tuner.models.library.entries import LibraryEntries, LibraryEntry, LibraryFile
from tuner.models.library.script_comparison import OutliningCost, lowered
from tuner.models.library.transform_module import PREFIX
from tuner.runtime.cpu.jit import CompiledFunction, JittedModule, PackedArguments
from tuner.runtime.cpu.memory import placed_copy

pytestmark = pytest.mark.mlir
ENTRIES = (entry(Matmul(24, 64, 32), trial=4, pack_a=0), entry(Matmul(24, 64, 32, layout="nt"), trial=5))
COSTS = (
    OutliningCost(PairedSlowdown(0.01, (-0.01, 0.03), 0.008), PairedSlowdown(0.02, (0.015, 0.04), 0.01)),
    OutliningCost(PairedSlowdown(0.0, (-0.01, 0.01), 0.0), None),
)
TEXT = library.library_text(ENTRIES, COSTS)


def test_entries_are_read_with_their_scripts_and_the_header_says_what_each_costs() -> None:
    assert header.is_library(TEXT)
    assert header.read_entries(TEXT, "library.mlir") == ENTRIES
    assert tuple(each.cost for each in header.read_document(TEXT, "library.mlir").entries) == COSTS
    lines = TEXT.splitlines()
    time = "trial 4, 10 us (unknown: it was not recorded)"
    at = lines.index(f"// entry     matmul 24x64x32 f32 nn none: {time}; OpenBLAS: 20 us")
    assert lines[at + 1] == (
        "//           in the library, against its script alone: "
        "tensors not distinguishable, the 99 % interval of the ratio of times is 0.990 .. 1.030, "
        "batch +2.0% time (99 % interval +1.5% .. +4.0%)"
    )
    without = library.library_text((replace(ENTRIES[0], baseline_s=None),))
    assert f"// entry     matmul 24x64x32 f32 nn none: {time}\n" in without


def test_a_script_is_no_library_and_a_damaged_one_is_one_line() -> None:
    assert not header.is_library(ENTRIES[0].script)
    message = "best.mlir: is not a library that 'tuner export --format library' wro"
    with pytest.raises(UsageError, match=message):
        header.read_document(ENTRIES[0].script, "best.mlir")
    with pytest.raises(UsageError, match=r"a.mlir: its line '// tuner library:' is damaged: "):
        header.read_document(f"{header.MARK}{{\n", "a.mlir")
    with pytest.raises(UsageError, match=r"a.mlir: the schedule of matmul_24x64x32_f32_nn is missing"):
        header.read_entries(TEXT.replace("@buffers_matmul_24x64x32_f32_nn(", "@gone("), "a.mlir")


# A library on a program of others: every form of a contraction is right, and the rest is left alone.

PROJECTION, UP, DOWN = Matmul(24, 64, 32), Matmul(16, 96, 32), Matmul(16, 32, 96)
SQUARE = Matmul(16, 48, 48)
TRANSPOSED, EXACT_BATCH = Matmul(20, 32, 48, layout="nt"), BatchMatmul(3, 8, 32, 16)
HEADS = replace(PROJECTION, operation="batch_matmul", batch=5)
TUNED = (
    entry(PROJECTION, pack_a=0, tile_m=6, block_k=0),
    entry(UP, tile_m=4),
    entry(DOWN, block_k=32, pack_a=0, tile_n=16),
    entry(TRANSPOSED, pack_a=0, tile_n=16, tile_m=6),
    entry(EXACT_BATCH, tile_n=16),
    entry(SQUARE, tile_n=16),
)
FUNCTIONS = (
    product("attention", PROJECTION),
    product("adds_up", PROJECTION, accumulates=True),
    product("heads", HEADS),
    product("heads_add_up", HEADS, accumulates=True),
    product("exact_batch", EXACT_BATCH),
    product("generic", PROJECTION, generic=True),
    product("generic_batch", HEADS, generic=True),
    two_with_relu("mlp", UP, DOWN),
    product("buffers", PROJECTION, on_buffers=True),
    product("transposed", TRANSPOSED),
    # To be left alone: what MLIR 22 would name wrongly, another layout, type, sizes, number of matrices.
    product("generic_transposed", TRANSPOSED, generic=True, taken=0),
    product("square_transposed", replace(SQUARE, layout="nt"), generic=True, taken=0),
    product("transposed_heads", replace(TRANSPOSED, operation="batch_matmul", batch=5), taken=0),
    product("other_layout", replace(PROJECTION, layout="nt"), taken=0),
    product("other_type", replace(PROJECTION, dtype="f64"), taken=0),
    product("other_sizes", Matmul(24, 64, 33), taken=0),
    product("other_batch", replace(EXACT_BATCH, batch=4), taken=0),
)
PROGRAM = "".join(function.text for function in FUNCTIONS)
# An op on buffers: MLIR's matchers of results would crash, and one of its assertions ends get_result.
ON_MEMREFS = text_beside(__file__, "ON_MEMREFS")


@pytest.fixture(scope="module")
def text() -> str:
    return library.library_text(TUNED)


@pytest.fixture(scope="module", params=["wheel", "stock"])
def applied(request: pytest.FixtureRequest, text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "stock":
        program = PROGRAM if has_assertions() else PROGRAM + ON_MEMREFS
        return stock_result(text, program, tmp_path_factory.mktemp("stock"))
    with transform.new_context(), ir.Location.unknown():
        module = transform.parse(PROGRAM + ON_MEMREFS, "payload")
        transform.apply_script(module, transform.parse(text, "library"))
        return str(module)


def run(function: ProgramFunction, code: JittedModule) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    arrays = [placed_copy(rng.standard_normal(shape).astype(function.kind)) for shape in function.shapes]
    wanted = function.reference(*(array.astype(np.float64) for array in arrays))
    if function.has_result:
        arrays.append(placed_copy(np.full(wanted.shape, np.nan, function.kind)))
    CompiledFunction(code.addresses[function.name])(PackedArguments(*(each.ctypes.data for each in arrays)))
    return arrays[-1], wanted


@pytest.mark.slow
def test_every_function_equals_numpy(applied: str) -> None:
    with transform.new_context(), ir.Location.unknown():
        code = lowered(transform.parse(applied, "applied"))
    jitted = JittedModule(code, tuple(function.name for function in FUNCTIONS))
    for function in FUNCTIONS:
        found, wanted = run(function, jitted)
        assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max(), function.name


def test_each_contraction_of_an_entry_is_tuned_and_nothing_else(applied: str) -> None:
    functions = applied.split("func.func ")[1:]
    tuned = [text for text in functions if text.startswith("private @tuned_")]
    assert len(tuned) == sum(function.taken for function in FUNCTIONS)
    assert all("vector." in text and "linalg." not in text for text in tuned)
    for function in FUNCTIONS:
        (text,) = [text for text in functions if text.startswith(f"@{function.name}(")]
        contractions = ("linalg.matmul", "linalg.batch_matmul", '"reduction"]')
        assert sum(map(text.count, contractions)) == function.left, function.name
        assert text.count("call @tuned_") == function.taken
        assert PREFIX not in text


def test_an_op_on_buffers_is_left_alone(applied: str) -> None:
    if "@on_memrefs(" not in applied:
        pytest.skip("an assertion of this mlir-opt ends get_result of an op on buffers")
    assert applied.split("@on_memrefs(")[1].count("linalg.matmul") == 1


def test_a_batch_is_not_copied_at_the_boundary_of_its_function(applied: str) -> None:
    """Its outlined function takes whole arrays, and the result is written in place."""
    (text,) = [text for text in applied.split("func.func ") if text.startswith("@heads(")]
    assert "memref.copy" not in text
    assert text.count("memref.alloc(") == 1
    (call,) = [line for line in text.splitlines() if "call @tuned_" in line]
    assert call.endswith("-> ()")


PLAIN = entry(PROJECTION)
BIASED = replace(PLAIN, problem=replace(PROJECTION, epilogue="bias_relu"))
IN_BF16 = replace(PLAIN, problem=replace(PROJECTION, dtype="bf16"))
UNRECOGNIZED = [
    (BIASED, rf"{BIASED.problem.key}: trial 1: no matcher sees what an epilogue computes \(bias_relu\)"),
    (IN_BF16, "bf16 nn none: trial 1: no matcher tells bf16 from other types of as many bits"),
    (entry(PROJECTION, prefetch=64), r"calls tuner's transform ops \(tuner.prefetch_reads\), which other"),
    (replace(PLAIN, script="module {}\n"), "trial 1: its steps are not those of a shipped strategy"),
]


@pytest.mark.parametrize(("wrong", "message"), UNRECOGNIZED, ids=["epilogue", "bf16", "op", "steps"])
def test_what_no_matcher_recognizes_is_refused(wrong: LibraryEntry, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        library.schedule_of(wrong)


def test_what_no_library_can_have_is_left_out_with_a_note() -> None:
    found = library.suitable(LibraryEntries((BIASED, TUNED[1]), ("before",)))
    assert (found.entries, found.notes[0]) == (TUNED[1:2], "before")
    assert found.notes[1].startswith("left out: matmul 24x64x32 f32 nn bias_relu: trial 1: no matcher sees")
    with pytest.raises(UsageError, match=r"^matmul 24x64x32 f32 nn bias_relu: trial 1: no matcher"):
        library.suitable(LibraryEntries((BIASED,), ("before",)))


@pytest.mark.slow
def test_the_cost_of_each_entry_is_in_the_header() -> None:
    (file,) = library.write_library(TUNED[1:2])
    lines = [line for line in file.content.decode().splitlines() if line.startswith("// ")]
    (cost,) = [line for line in lines if "in the library, against its script alone: tensors " in line]
    # "+2.0% time (99 % interval +1.0% .. +3.0%)", or the range that is within the noise
    tensors, batch = cost.split("tensors ")[1].split(", batch ")
    assert tensors.count(" .. ") == batch.count(" .. ") == 1, cost
    assert file.name == "library.mlir"


def test_the_cost_is_not_measured_for_another_machine() -> None:
    elsewhere = replace(TUNED[1], machine=replace(TUNED[1].machine, name="another"))
    (file,) = library.write_library((elsewhere,))
    assert "in the library: not timed: the machine that it was" in file.content.decode()


# Libraries merged: of two schedules of one contraction the faster stays.

PROBLEM, OTHER = Matmul(64, 128, 128), Matmul(24, 64, 32)
# One row at a time against four, both within 16 registers: some times slower on every processor.
SLOW, FAST = entry(PROBLEM, trial=1, tile_m=1, tile_n=16), entry(PROBLEM, trial=2, tile_m=4, tile_n=16)


def merge_library(name: str, *entries: object) -> library.LibraryText:
    return library.LibraryText(name, library.library_text(entries))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_faster_of_two_stays(is_turned: bool) -> None:
    slow, fast = merge_library("slow.mlir", SLOW, entry(OTHER)), merge_library("fast.mlir", FAST)
    found = library.merged((fast, slow) if is_turned else (slow, fast))
    entries = header.read_entries(found.text, "merged")
    assert [each.trial for each in entries if each.problem == PROBLEM] == [2]
    assert found.entries == 2
    (duel,) = found.duels
    assert (duel.kept, duel.left) == ("fast.mlir", "slow.mlir")
    assert duel.slowdown.median > 0.2
    start = "matmul 64x128x128 f32 nn none: from fast.mlir; that of slow.mlir: "
    assert duel.line.startswith((f"{start}+", f"{start}unknown, the 99 % interval"))  # on a busy machine


def test_equal_schedules_are_not_timed_and_libraries_of_other_machines_are_refused() -> None:
    same = merge_library("b.mlir", replace(FAST, trial=9), entry(OTHER))
    found = library.merged((merge_library("a.mlir", FAST), same))
    assert (found.entries, found.duels) == (2, ())
    assert [each.trial for each in header.read_entries(found.text, "merged")] == [1, 2]
    another = replace(SLOW.machine, name="another")
    other, slow, fast = (replace(each, machine=another) for each in (entry(OTHER), SLOW, FAST))
    message = r"a.mlir is of '.*' and b.mlir of 'another': a library is of one machine"
    with pytest.raises(UsageError, match=message):
        library.merged((merge_library("a.mlir", FAST), merge_library("b.mlir", other)))
    message = "several libraries have a schedule; only 'another' can compare them"
    with pytest.raises(UsageError, match=message):
        library.merged((merge_library("a.mlir", slow), merge_library("b.mlir", fast)))


# Names of dialects by the version of MLIR.

HEADER = "// made by   tuner 0.1.0, for mlir-23\n"
OP = "      transform.apply_patterns.x86.vector_contract_to_fma\n"


def test_a_renamed_dialect_has_the_name_of_its_version_and_what_both_versions_read_stays() -> None:
    newer = LibraryFile("library.mlir", (HEADER + OP).encode())
    older = library.for_version("mlir-22", newer)
    renamed = (HEADER + OP).replace("mlir-23", "mlir-22").replace(".x86.", ".x86vector.")
    assert older.content.decode() == renamed
    assert library.for_version("mlir-23", older) == newer
    assert library.versions_text(renamed) == "mlir-22"
    text = "// made by   tuner 0.1.0, for mlir-22 and mlir-23\nmodule {\n}\n"
    file = LibraryFile("library.mlir", text.encode())
    assert library.for_version("mlir-22", file) == library.for_version("mlir-23", file) == file
    other = LibraryFile("mm.o", OP.encode() + b"\xff")
    assert library.for_version("mlir-22", other) == other


# What a library did with each contraction of a program.

OF_LIBRARY = (PROJECTION, UP)
LIBRARY = library.library_text((entry(PROJECTION), entry(UP)))
DYNAMIC = text_beside(__file__, "DYNAMIC")
VECTOR = text_beside(__file__, "VECTOR")
BUFFERS = text_beside(__file__, "BUFFERS")
BROADCAST, COLUMN = (text_beside(__file__, name) for name in ("BROADCAST", "COLUMN"))
NT = product("f", replace(PROJECTION, layout="nt")).text
F64 = product("f", replace(PROJECTION, dtype="f64")).text
GENERIC = product("f", replace(PROJECTION, layout="nt"), generic=True).text
OF_BATCH = product("f", replace(PROJECTION, layout="tn", operation="batch_matmul", batch=2)).text


def reported(program: str) -> list[str]:
    return [report.text for report in contraction_reports(LIBRARY, program, OF_LIBRARY)]


def test_each_contraction_has_its_entry_and_one_of_two_may_have_none() -> None:
    heads = replace(PROJECTION, operation="batch_matmul", batch=3)
    program = product("heads", heads).text + product("plain", PROJECTION, generic=True).text
    assert reported(program) == [
        "@heads: linalg.batch_matmul 3x24x64x32 f32 nn: matmul_24x64x32_f32_nn",
        "@plain: linalg.generic 24x64x32 f32 nn: matmul_24x64x32_f32_nn",
    ]
    assert reported(two_with_relu("mlp", UP, DOWN).text) == [
        "@mlp: linalg.matmul 16x96x32 f32 nn: matmul_16x96x32_f32_nn",
        "@mlp: linalg.matmul 16x32x96 f32 nn: no entry: no entry has the sizes 16x32x96",
    ]


@pytest.mark.parametrize(
    ("program", "op", "why"),
    [
        (NT, "@f: linalg.matmul 24x64x32 f32 nt", "entries of these sizes have layout nn, not nt"),
        (F64, "@f: linalg.matmul 24x64x32 f64 nn", "entries of these sizes are of f32, not f64"),
        (GENERIC, "@f: linalg.generic 24x64x32 f32 nt", "generic ops are recognized in layout nn only"),
        (OF_BATCH, "@f: linalg.batch_matmul 2x24x64x32 f32 tn", "batches are recognized in layout nn only"),
        (DYNAMIC, "@dynamic: linalg.matmul", "it has sizes that are not known when it is compiled"),
        (VECTOR, "@vector: linalg.matvec", "only matmuls and batches of them are matched"),
        (BUFFERS, "@buffers: linalg.matmul 24x64x32 f32 nn", "it works on buffers; an entry needs tensors"),
        (BROADCAST, "@broadcast: linalg.generic", "its indexing maps are those of no layout (nn, nt, tn)"),
        (COLUMN, "@column: linalg.generic", "its indexing maps are those of no layout (nn, nt, tn)"),
    ],
)
def test_why_no_entry_took_it(program: str, op: str, why: str) -> None:
    assert reported(program) == [f"{op}: no entry: {why}"]


def test_contractions_are_listed_without_a_library_and_a_program_without_one_has_no_report() -> None:
    ops = [report.op for report in payload_contractions(product("f", PROJECTION).text + VECTOR)]
    assert ops == ["linalg.matmul 24x64x32 f32 nn", "linalg.matvec"]
    assert reported("func.func @nothing() {\n  return\n}\n") == []


def test_a_program_that_does_not_parse_and_a_library_without_its_matchers_are_one_line() -> None:
    with pytest.raises(CandidateError, match="payload: "):
        contraction_reports(LIBRARY, "func.func @f(", OF_LIBRARY)
    with pytest.raises(CandidateError, match="library: the sequence @tuner_mark is missing"):
        contraction_reports("module {\n}\n", BUFFERS, OF_LIBRARY)
