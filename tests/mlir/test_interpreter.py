"""Scripts applied to payloads, and what is reported when they cannot be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mlir.kernels import parsed
from tests.mlir.scripts import PAYLOAD as MATMUL
from tests.mlir.scripts import script as product_script
from tests.texts import text_beside
from tuner.core.errors import SCRIPT, CandidateError, OpPlace, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.transform import failing_op, require_no_effects

PAYLOAD = text_beside(__file__, "PAYLOAD")
MATCH = (
    '%loop = transform.structured.match ops{["scf.for"]} in %root : (!transform.any_op) -> !transform.any_op'
)


def sequence(name: str, *lines: str) -> str:
    body = "\n".join((*lines, "transform.yield"))
    return f"transform.named_sequence @{name}(%root: !transform.any_op {{transform.readonly}}) {{\n{body}\n}}"


def script(*sequences: str) -> str:
    return "module attributes {transform.with_named_sequence} {\n" + "\n".join(sequences) + "\n}"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield


def apply(text: str) -> str:
    payload = transform.parse(PAYLOAD, "payload")
    transform.apply_script(payload, transform.parse(text, "script"))
    return str(payload)


def main(*lines: str) -> str:
    return sequence("__transform_main", MATCH, *lines)


def annotate(name: str) -> str:
    return f'transform.annotate %loop "{name}" : !transform.any_op'


def test_the_only_sequence_or_the_main_one_changes_the_payload() -> None:
    unrolled = apply(script(main("transform.loop.unroll %loop {factor = 8} : !transform.any_op")))
    assert unrolled.count("memref.store") == 8
    assert "scf.for" not in unrolled
    assert "{seen}" in apply(script(sequence("mine", MATCH, annotate("seen"))))
    assert "{main}" in apply(script(sequence("other", MATCH, annotate("other")), main(annotate("main"))))


def test_a_transform_that_fails_names_op_and_place() -> None:
    text = script(main("transform.loop.unroll %loop {factor = 0} : !transform.any_op"))
    with pytest.raises(CandidateError, match=r"transform\.loop\.unroll") as caught:
        apply(text)
    assert caught.value.stage in (Stage.BIND, Stage.COMPILE)


@pytest.mark.parametrize(
    ("text", "found"), [(script(), "none"), (script(sequence("one"), sequence("two")), "one, two")]
)
def test_a_script_without_a_main_sequence_says_which_it_has(text: str, found: str) -> None:
    reason = rf"^script: found sequences {found}, allowed one named @__transform_main$"
    with pytest.raises(CandidateError, match=reason) as caught:
        apply(text)
    assert caught.value.stage == Stage.BIND


@pytest.mark.parametrize(
    ("text", "diagnostic"),
    [
        ("module {", r"^script: .*expected"),
        ("module { transform.no_such_op }", r"^script: .*no_such_op"),
        ('module { "tuner.no_such_op"() : () -> () }', r"^script: .*tuner\.no_such_op"),
    ],
)
def test_text_that_does_not_parse_is_a_failure_to_bind(text: str, diagnostic: str) -> None:
    assert str(transform.parse("", "script")).strip() == "module {\n}"
    with pytest.raises(CandidateError, match=diagnostic) as caught:
        transform.parse(text, "script")
    assert caught.value.stage == Stage.BIND
    assert "\n" not in caught.value.reason


def test_every_new_context_has_this_projects_ops() -> None:
    match = MATCH.replace("scf.for", "func.func")
    for _ in range(3):
        with transform.new_context(), ir.Location.unknown():
            prefetch = '"tuner.prefetch_reads"(%loop) {argument = 0 : i64} : (!transform.any_op) -> ()'
            assert "memref.store" in apply(script(sequence("__transform_main", match, prefetch)))


EMPTY = "module { func.func @f() { return } }"
PASS_SCRIPT = """module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %done = transform.apply_registered_pass {words} to %root : (!transform.any_op) -> !transform.any_op
    transform.yield
  }}
}}"""


def script_of(words: str) -> ir.Module:
    return transform.parse(PASS_SCRIPT.format(words=words), "script")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ('"snapshot-op-locations" with options = {filename = "x"}', "snapshot-op-locations"),
        ('"gpu-module-to-binary" with options = {toolkit = "x"}', "gpu-module-to-binary"),
        ('"gpu-lower-to-nvvm-pipeline"', "gpu-lower-to-nvvm-pipeline"),
        ('"print-ir"', "print-ir"),
        ('"print-op-stats"', "print-op-stats"),
        ('"view-op-graph"', "view-op-graph"),
        ('"transform-interpreter"', "transform-interpreter"),
        ('"inline" with options = {"default-pipeline" = "canonicalize,print-ir"}', "print-ir"),
        ('"composite-fixed-point-pass" with options = {pipeline = "any(\\70rint-ir)"}', "print-ir"),
    ],
)
def test_a_pass_with_effects_is_refused_wherever_it_is_named(words: str, name: str) -> None:
    reason = f"^script: found pass {name}, which writes files, starts programs or prints; allowed with "
    with pytest.raises(CandidateError, match=reason) as caught:
        require_no_effects(script_of(words))
    assert caught.value.stage == Stage.BIND


@pytest.mark.parametrize("words", ['"canonicalize"', '"cse"', '"convert-linalg-to-loops"', '"sccp"'])
def test_other_passes_are_not(words: str) -> None:
    require_no_effects(script_of(words))


def test_a_file_is_written_only_where_effects_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "written.mlir"
    script = script_of(f'"snapshot-op-locations" with options = {{filename = "{file}"}}')
    payload = transform.parse(EMPTY, "payload")
    with pytest.raises(CandidateError, match="found pass snapshot-op-locations"):
        transform.apply_script(payload, script)
    assert not file.exists()
    transform.apply_script(payload, script, allows_effects=True)
    assert file.exists()


# The op of a script that fails is found where MLIR names the payload op alone.
ANNOTATE = 'transform.annotate %product "seen" : !transform.any_op'
VECTORIZE = "transform.structured.vectorize %product vector_sizes [3, 3] : !transform.any_op"


@pytest.mark.parametrize(
    ("ops", "line"),
    [((VECTORIZE,), 5), ((ANNOTATE, VECTORIZE), 6), ((ANNOTATE, VECTORIZE, ANNOTATE, ANNOTATE), 6)],
)
def test_the_op_is_found_wherever_it_stands(ops: tuple[str, ...], line: int) -> None:
    text = product_script(*ops)
    with (
        transform.new_context(),
        ir.Location.unknown(),
        pytest.raises(CandidateError, match=r"^linalg\.matmul at payload:2:14: Attempted to vectorize"),
    ):
        transform.apply_script(transform.parse(MATMUL, "payload"), transform.parse(text, "script"))
    assert failing_op(text, MATMUL) == OpPlace(SCRIPT, "transform.structured.vectorize", line, 5)


@pytest.mark.parametrize("text", [product_script(ANNOTATE), "module {", "module {}"])
def test_a_script_that_applies_or_is_none_has_no_such_op(text: str) -> None:
    assert failing_op(text, MATMUL) is None


OLD = text_beside(__file__, "OLD")


def test_what_documents_show_parses_and_no_line_moves() -> None:
    assert transform.with_current_spellings(OLD.replace(', op = "mul"', "")).count("\n") == OLD.count("\n")
    with parsed(OLD.replace('{op = "mul"}', "")) as module:
        printed = str(module).replace("  ", " ")
    for expected in ("gpu.block_dim x", "gpu.thread_id y", "gpu.all_reduce add", "gpu.shuffle xor"):
        assert expected in printed
    assert "gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>" in printed


def test_the_kind_of_an_elementwise_op_may_be_in_angle_brackets() -> None:
    op = "%0 = linalg.elementwise {} ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>)"
    texts = (
        f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {op.format(kind)} -> tensor<4xf32> "
        "return %0 : tensor<4xf32> }"
        for kind in ("<max_signed>", "kind=#linalg.elementwise_kind<max_signed>")
    )
    newer, older = (parsed(text) for text in texts)
    with newer as module, older as same:
        assert str(module) == str(same)


def test_words_outside_of_these_ops_stay() -> None:
    for text in (
        'func.func @f() attributes {mode = "xor", op = "add", dimension = "x"} { return }',
        '"gpu.terminator"() {name = "gpu.module_ending"} : () -> ()',
    ):
        assert transform.with_current_spellings(text) == text


def test_the_after_of_the_docstring_is_what_becomes_of_the_before() -> None:
    lines = [line for line in (transform.__doc__ or "").splitlines() if line.startswith("    ")]
    half = len(lines) // 2
    assert transform.with_current_spellings("\n".join(lines[:half])) == "\n".join(lines[half:])
