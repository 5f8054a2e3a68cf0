"""What a library did with each contraction of a program."""

from dataclasses import replace

import pytest

from tests.library.values import entry, product, two_with_relu
from tests.texts import text_beside
from tuner.core.errors import CandidateError
from tuner.core.problem import Matmul
from tuner.library.contraction_report import contraction_reports, payload_contractions
from tuner.library.library import library_text

pytestmark = pytest.mark.mlir

PROBLEM, UP, DOWN = Matmul(24, 64, 32), Matmul(16, 96, 32), Matmul(16, 32, 96)
PROBLEMS = (PROBLEM, UP)
LIBRARY = library_text((entry(PROBLEM), entry(UP)))
DYNAMIC = text_beside(__file__, "DYNAMIC")
VECTOR = text_beside(__file__, "VECTOR")
BUFFERS = text_beside(__file__, "BUFFERS")
BROADCAST = text_beside(__file__, "BROADCAST")


def reported(program: str) -> list[str]:
    return [report.text for report in contraction_reports(LIBRARY, program, PROBLEMS)]


def test_each_contraction_has_its_entry() -> None:
    heads = replace(PROBLEM, operation="batch_matmul", batch=3)
    program = product("heads", heads).text + product("plain", PROBLEM, generic=True).text
    assert reported(program) == [
        "@heads: linalg.batch_matmul 3x24x64x32 f32 nn: matmul_24x64x32_f32_nn",
        "@plain: linalg.generic 24x64x32 f32 nn: matmul_24x64x32_f32_nn",
    ]


def test_one_of_two_in_a_function_may_have_none() -> None:
    assert reported(two_with_relu("mlp", UP, DOWN).text) == [
        "@mlp: linalg.matmul 16x96x32 f32 nn: matmul_16x96x32_f32_nn",
        "@mlp: linalg.matmul 16x32x96 f32 nn: no entry: no entry has the sizes 16x32x96",
    ]


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            product("f", replace(PROBLEM, layout="nt")).text,
            "@f: linalg.matmul 24x64x32 f32 nt: no entry: entries of these sizes have layout nn, not nt",
        ),
        (
            product("f", replace(PROBLEM, dtype="f64")).text,
            "@f: linalg.matmul 24x64x32 f64 nn: no entry: entries of these sizes are of f32, not f64",
        ),
        (
            product("f", replace(PROBLEM, layout="nt"), generic=True).text,
            "@f: linalg.generic 24x64x32 f32 nt: no entry: generic ops are recognized in layout nn only",
        ),
        (
            product("f", replace(PROBLEM, layout="tn", operation="batch_matmul", batch=2)).text,
            "@f: linalg.batch_matmul 2x24x64x32 f32 tn: no entry: batches are recognized in layout nn only",
        ),
        (DYNAMIC, "@dynamic: linalg.matmul: no entry: it has sizes that are not known when it is compiled"),
        (VECTOR, "@vector: linalg.matvec: no entry: only matmuls and batches of them are matched"),
        (
            BUFFERS,
            "@buffers: linalg.matmul 24x64x32 f32 nn: no entry: it works on buffers; an entry needs tensors",
        ),
        (
            BROADCAST,
            "@broadcast: linalg.generic: no entry: its indexing maps are those of no layout (nn, nt, tn)",
        ),
    ],
)
def test_why_no_entry_took_it(program: str, line: str) -> None:
    assert reported(program) == [line]


def test_a_program_without_a_contraction_has_no_report() -> None:
    assert reported("func.func @nothing() {\n  return\n}\n") == []


def test_the_contractions_of_a_payload_are_listed_without_a_library() -> None:
    assert [report.op for report in payload_contractions(product("f", PROBLEM).text + VECTOR)] == [
        "linalg.matmul 24x64x32 f32 nn",
        "linalg.matvec",
    ]


def test_a_program_that_does_not_parse_is_one_line() -> None:
    with pytest.raises(CandidateError, match="payload: "):
        contraction_reports(LIBRARY, "func.func @f(", PROBLEMS)


def test_a_library_without_its_matchers_is_refused() -> None:
    with pytest.raises(CandidateError, match="library: the sequence @tuner_mark is missing"):
        contraction_reports("module {\n}\n", BUFFERS, PROBLEMS)
