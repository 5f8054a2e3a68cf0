"""Scripts applied to payloads, and what is reported when they cannot be; schedules as others write them."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mlir.kernels import counts, parsed
from tests.mlir.scripts import PAYLOAD as MATMUL
from tests.mlir.scripts import TILE
from tests.mlir.scripts import script as product_script
from tests.targets.evaluation import fails
from tests.texts import text_beside
from tuner.core.errors import SCRIPT, CandidateError, OpPlace, Stage
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.transform import failing_op, require_no_effects
from tuner.models.commands.payload_text import read_payload_text
from tuner.targets.children import apply_script
from tuner.targets.cpu.compiler import CpuCompiler

PAYLOAD = text_beside(__file__, "PAYLOAD")
ANY = "!transform.any_op"
MATCH = f'%loop = transform.structured.match ops{{["scf.for"]}} in %root : ({ANY}) -> {ANY}'


def sequence(name: str, *lines: str) -> str:
    body = "\n".join((*lines, "transform.yield"))
    return f"transform.named_sequence @{name}(%root: !transform.any_op {{transform.readonly}}) {{\n{body}\n}}"


def script(*sequences: str) -> str:
    return "module attributes {transform.with_named_sequence} {\n" + "\n".join(sequences) + "\n}"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield


def apply(text: str, payload_text: str = PAYLOAD) -> str:
    payload = transform.parse(payload_text, "payload")
    transform.apply_script(payload, transform.parse(text, "script"))
    return str(payload.operation.get_asm(enable_debug_info=True, use_local_scope=True))


def main(*lines: str) -> str:
    return sequence("__transform_main", MATCH, *lines)


def annotate(name: str) -> str:
    return f'transform.annotate %loop "{name}" : !transform.any_op'


def test_the_only_sequence_or_the_main_one_changes_the_payload() -> None:
    unrolled = apply(script(main("transform.loop.unroll %loop {factor = 8} : !transform.any_op")))
    assert counts(unrolled, "memref.store", "scf.for") == [8, 0]
    assert "{seen}" in apply(script(sequence("mine", MATCH, annotate("seen"))))
    assert "{main}" in apply(script(sequence("other", MATCH, annotate("other")), main(annotate("main"))))


def test_a_script_without_a_sequence_is_refused() -> None:
    with fails(Stage.BIND, r"^script: has no transform\.named_sequence @__transform_main$"):
        apply(script())


WITHOUT_MAIN = {"one, two": script(sequence("one"), sequence("two"))}


@pytest.mark.parametrize("found", WITHOUT_MAIN)
def test_a_script_without_a_main_sequence_says_which_it_has(found: str) -> None:
    with fails(Stage.BIND, rf"^script: found sequences {found}, allowed one named @__transform_main$"):
        apply(WITHOUT_MAIN[found])


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("module {", r"^script:.*expected"),
        ("module { transform.no_such_op }", r"^script:.*no_such_op"),
        ('module { "tuner.no_such_op"() : () -> () }', r"^script:.*tuner\.no_such_op"),
        (script(main(f"transform.loop.unroll %loop {{factor = 0}} : {ANY}")), r"transform\.loop\.unroll"),
    ],
)
def test_text_that_does_not_parse_is_a_failure_to_bind(text: str, diagnostic: str) -> None:
    assert str(transform.parse("", "script")).strip() == "module {\n}"
    with pytest.raises(CandidateError, match=diagnostic) as caught:
        transform.parse(text, "script")
    assert caught.value.stage == Stage.BIND
    assert "\n" not in caught.value.reason


def script_of(options: str) -> ir.Module:
    kind = "(!transform.any_op) -> !transform.any_op"
    line = f"%done = transform.apply_registered_pass {options} to %root : {kind}"
    main_sequence = sequence("__transform_main", line).replace(" {transform.readonly}", "")
    return transform.parse(script(main_sequence), "script")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ('"snapshot-op-locations" with options = {filename = "x"}', "snapshot-op-locations"),
        ('"gpu-module-to-binary" with options = {toolkit = "x"}', "gpu-module-to-binary"),
        *((f'"{name}"', name) for name in ("gpu-lower-to-nvvm-pipeline", "print-ir", "print-op-stats")),
        *((f'"{name}"', name) for name in ("view-op-graph", "transform-interpreter")),
        ('"inline" with options = {"default-pipeline" = "canonicalize,print-ir"}', "print-ir"),
        ('"composite-fixed-point-pass" with options = {pipeline = "any(\\70rint-ir)"}', "print-ir"),
    ],
)
def test_a_pass_with_effects_is_refused_wherever_it_is_named(options: str, name: str) -> None:
    reason = f"^script: found pass {name}, which writes files, starts programs or prints; allowed with "
    with fails(Stage.BIND, reason):
        require_no_effects(script_of(options))


@pytest.mark.parametrize("name", ["canonicalize", "cse", "convert-linalg-to-loops", "sccp"])
def test_other_passes_are_not(name: str) -> None:
    require_no_effects(script_of(f'"{name}"'))


def test_a_file_is_written_only_where_effects_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "written.mlir"
    script = script_of(f'"snapshot-op-locations" with options = {{filename = "{file}"}}')
    payload = transform.parse("module { func.func @f() { return } }", "payload")
    with pytest.raises(CandidateError, match="found pass snapshot-op-locations"):
        transform.apply_script(payload, script)
    assert not file.exists()
    transform.apply_script(payload, script, allows_effects=True)
    assert file.exists()


# Diagnostics name the transform op or that of the payload; where MLIR names the latter alone, both are found.
ANNOTATE = 'transform.annotate %product "seen" : !transform.any_op'
VECTORIZE = "transform.structured.vectorize %product vector_sizes [3, 3] : !transform.any_op"
NOT_VECTORIZED = "linalg.matmul at payload:2:14: Attempted to vectorize, but failed"


def diagnostic(text: str, payload: str = MATMUL) -> str:
    with pytest.raises(CandidateError) as failure:
        apply(text, payload)
    assert failure.value.stage is Stage.COMPILE
    return failure.value.reason


def test_a_diagnostic_names_the_transform_op_or_that_of_the_payload_and_its_place() -> None:
    found = diagnostic(product_script("transform.loop.unroll %product {factor = 2} : !transform.any_op"))
    assert found == "transform.loop.unroll at script:5:5: failed to unroll, incorrect type of payload"
    text = product_script(VECTORIZE)
    # both texts have an op at 5:5
    assert text.splitlines()[4].startswith("    transform.structured.vectorize")
    payload = "\n\n" + MATMUL.replace("  %product = ", "%product =\n    ")
    assert payload.splitlines()[4].startswith("    linalg.matmul")
    assert diagnostic(text, payload).startswith("linalg.matmul at payload:5:5: ")


def test_an_op_that_fails_without_a_message_is_named() -> None:
    tile = "transform.structured.tile_using_for %product tile_sizes [4, 4, 4] interchange = [0, 0, 1]"
    said = diagnostic(product_script(f"%tile, %loops:3 = {tile} : ({ANY}) -> ({', '.join([ANY] * 4)})"))
    why = "failed, and MLIR does not say why: are its attributes valid?"
    assert said == f"transform.structured.tile_using_for at script:5:23: {why}"


def test_a_message_that_mlir_repeats_without_a_line_break_is_printed_once() -> None:
    values = "padding_values = [0.0 : f32, 0.0 : f32, 0.0 : f32], padding_dimensions = [0, 1, 2]"
    pad = f"transform.structured.pad %product pad_to_multiple_of [3, 5, 7] {{{values}}}"
    found = diagnostic(
        product_script(
            f"%padded, %pads, %copies = {pad} : ({ANY}) -> ({', '.join([ANY] * 3)})",
            f"%hoisted = transform.structured.hoist_pad %pads by 3 loops : ({ANY}) -> {ANY}",
        )
    )
    assert found.count("hoist_pad failed to apply") == 1
    assert found.endswith("when applied to this op")


def test_the_note_of_a_diagnostic_is_named_as_well() -> None:
    tile = f"%tile, %loops:4 = {TILE.partition(' = ')[2].partition(' tile_sizes')[0]} tile_sizes [1, 1, 1, 1]"
    found = diagnostic(product_script(f"{tile} : ({ANY}) -> ({', '.join([ANY] * 5)})"))
    assert found.startswith("transform.structured.tile_using_for at script:5:23: too many tiles provided")
    assert found.endswith("; linalg.matmul at payload:2:14: target op")


@pytest.mark.parametrize(
    ("ops", "line"),
    [((VECTORIZE,), 5), ((ANNOTATE, VECTORIZE), 6), ((ANNOTATE, VECTORIZE, ANNOTATE, ANNOTATE), 6)],
)
def test_the_op_is_found_wherever_it_stands(ops: tuple[str, ...], line: int) -> None:
    text = product_script(*ops)
    assert diagnostic(text) == NOT_VECTORIZED
    assert failing_op(text, MATMUL) == OpPlace(SCRIPT, "transform.structured.vectorize", line, 5)


@pytest.mark.parametrize("text", [product_script(ANNOTATE), "module {", "module {}"])
def test_a_script_that_applies_or_is_none_has_no_such_op(text: str) -> None:
    assert failing_op(text, MATMUL) is None


def test_applying_leaves_what_the_payload_says_of_itself() -> None:
    returned = "return %product : tensor<64x64xf32>"
    tiled = product_script(TILE.replace("%size", "8").replace(", !transform.param<i64>", ""))
    text = apply(tiled, MATMUL.replace(returned, f'{returned} loc("mine":7:1)'))
    assert 'loc("mine":7:1)' in text
    assert "scf.for" in text


OLD = text_beside(__file__, "OLD")


def test_what_documents_show_parses_and_no_line_moves() -> None:
    assert transform.with_current_spellings(OLD.replace(', op = "mul"', "")).count("\n") == OLD.count("\n")
    with parsed(OLD.replace('{op = "mul"}', "")) as module:
        printed = str(module).replace("  ", " ")
    for expected in ("gpu.block_dim x", "gpu.thread_id y", "gpu.all_reduce add", "gpu.shuffle xor"):
        assert expected in printed
    assert "gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>" in printed


def test_the_kind_of_an_elementwise_op_may_be_in_angle_brackets() -> None:
    kind = "tensor<4xf32>"
    op = f"%0 = linalg.elementwise KIND ins(%x, %x : {kind}, {kind}) outs(%x : {kind}) -> {kind}"
    text = f"func.func @f(%x: {kind}) -> {kind} {{ {op} return %0 : {kind} }}"
    older = text.replace("KIND", "kind=#linalg.elementwise_kind<max_signed>")
    with parsed(text.replace("KIND", "<max_signed>")) as module, parsed(older) as same:
        assert str(module) == str(same)


def test_words_outside_of_these_ops_stay() -> None:
    for text in (
        'func.func @f() attributes {mode = "xor", op = "add", dimension = "x"} { return }',
        '"gpu.terminator"() {name = "gpu.module_ending"} : () -> ()',
    ):
        assert transform.with_current_spellings(text) == text


def test_the_after_of_the_docstring_is_what_becomes_of_the_before() -> None:
    shown = (inspect.getdoc(transform.with_current_spellings) or "").split("  becomes\n")
    before, after = ([line for line in part.splitlines() if line.startswith("    ")] for part in shown)
    assert len(before) == 2
    assert transform.with_current_spellings("\n".join(before)) == "\n".join(after)


def test_one_pattern_for_reductions_is_three_today() -> None:
    old = "transform.apply_patterns.vector.lower_multi_reduction lowering_strategy = innerparallel  // both"
    today = transform.with_current_spellings(old)
    assert counts(today, "lowering_strategy = innerparallel", "apply_patterns.vector") == [3, 3]
    assert today.endswith("multi_reduction_unrolling lowering_strategy = innerparallel  // both")


# Schedules as others write them: next to their payload, in nested modules, several, in the old form.
FILE = Path(__file__).with_name("schedules.mlir")
BOTH = FILE.read_text()
SCHEDULED, SCHEDULES = BOTH[: BOTH.index("module @tiles")], BOTH[BOTH.index("module @tiles") :]
TILES = SCHEDULES[: SCHEDULES.index("module @vectors")]


def test_schedules_of_a_file_are_applied_to_its_functions_one_after_another() -> None:
    applied = apply_script(BOTH, BOTH, allows_effects=False)
    assert applied == apply_script(SCHEDULES, SCHEDULED, allows_effects=False)
    assert counts(applied, "scf.for", "transform.") == [2, 0]
    assert "vector.transfer_read" in applied
    assert read_payload_text(FILE).text == applied


@pytest.mark.parametrize("text", [TILES, f"module {{\n{TILES}}}\n", SCHEDULED + TILES, BOTH])
def test_a_schedule_that_leaves_tensors_is_bufferized_after_it(text: str) -> None:
    code = CpuCompiler().compile(Matmul(64, 64, 64), Script.of(text)).code.text
    assert "llvm.func @matmul(" in code


BOUND, DECLARED = (text_beside(__file__, name) for name in ("BOUND", "DECLARED"))
CONVERTED, RETURNED = (text_beside(__file__, name) for name in ("CONVERTED", "RETURNED"))


@pytest.mark.parametrize(("sizes", "count"), [("#8", 1), ("#8;16", 2)])
def test_trailing_arguments_are_bound_as_by_the_option_of_mlir_opt(sizes: str, count: int) -> None:
    applied = apply_script(BOUND, SCHEDULED, False, ("linalg.matmul", sizes, "^linalg.matmul"))
    assert f"linalg.matmul {{count = {count} : i64, found}}" in applied


OLD_FORM = "transform.sequence failures(propagate) {\n^bb0(%root: !transform.any_op):\n}\n"
OF_TYPE = "cannot be bound to an argument of type !transform"


@pytest.mark.parametrize(
    ("text", "payload", "trailing", "message"),
    [
        (OLD_FORM, SCHEDULED, (), r"found transform\.sequence, the old form of a script, allowed "),
        (DECLARED, SCHEDULED, (), r"op expects a single-block region"),
        (CONVERTED, RETURNED, (), r"after the script: error: .* doesn't match function result type"),
        (BOUND, SCHEDULED, (), r"found 0 bindings of the entry's arguments after the first, allowed 3"),
        (BOUND, SCHEDULED, ("linalg.matmul", "#a", "^linalg.matmul"), f"'#a': {OF_TYPE}"),
        (BOUND, SCHEDULED, ("#8", "#8", "#8"), rf"'#8': {OF_TYPE}.op<\"linalg.matmul\">"),
    ],
    ids=["the old form", "no body", "invalid MLIR after it", "no binding", "no number", "no handle"],
)
def test_a_script_that_cannot_be_applied_says_why(
    text: str, payload: str, trailing: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CandidateError, match=message):
        apply_script(text, payload, allows_effects=False, trailing=trailing)
