"""Scripts applied to payloads, and what is said when they cannot be."""

from collections.abc import Iterator

import pytest

from tests.texts import text_beside
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import ir

pytestmark = pytest.mark.mlir

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


def test_a_script_changes_the_payload() -> None:
    unrolled = apply(
        script(
            sequence(
                "__transform_main", MATCH, "transform.loop.unroll %loop {factor = 8} : !transform.any_op"
            )
        )
    )
    assert unrolled.count("memref.store") == 8
    assert "scf.for" not in unrolled


def test_the_only_sequence_may_have_any_name() -> None:
    annotated = apply(script(sequence("mine", MATCH, 'transform.annotate %loop "seen" : !transform.any_op')))
    assert "{seen}" in annotated


def test_of_several_sequences_the_main_one_is_run() -> None:
    text = script(
        sequence("other", MATCH, 'transform.annotate %loop "other" : !transform.any_op'),
        sequence("__transform_main", MATCH, 'transform.annotate %loop "main" : !transform.any_op'),
    )
    assert "{main}" in apply(text)


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
        ("", None),  # an empty module
        ("module {", r"^script: .*expected"),
        ("module { transform.no_such_op }", r"^script: .*no_such_op"),
        ('module { "tuner.no_such_op"() : () -> () }', r"^script: .*tuner\.no_such_op"),
    ],
)
def test_text_that_does_not_parse_is_a_failure_to_bind(text: str, diagnostic: str | None) -> None:
    if diagnostic is None:
        assert str(transform.parse(text, "script")).strip() == "module {\n}"
        return
    with pytest.raises(CandidateError, match=diagnostic) as caught:
        transform.parse(text, "script")
    assert caught.value.stage == Stage.BIND
    assert "\n" not in caught.value.reason


def test_a_transform_that_fails_names_op_and_place() -> None:
    text = script(
        sequence("__transform_main", MATCH, "transform.loop.unroll %loop {factor = 0} : !transform.any_op")
    )
    with pytest.raises(CandidateError, match=r"transform\.loop\.unroll") as caught:
        apply(text)
    assert caught.value.stage in (Stage.BIND, Stage.COMPILE)


def test_every_new_context_has_this_projects_ops() -> None:
    match = MATCH.replace("scf.for", "func.func")
    for _ in range(3):
        with transform.new_context(), ir.Location.unknown():
            prefetch = '"tuner.prefetch_reads"(%loop) {argument = 0 : i64} : (!transform.any_op) -> ()'
            assert "memref.store" in apply(script(sequence("__transform_main", match, prefetch)))
