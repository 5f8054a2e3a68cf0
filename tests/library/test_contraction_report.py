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
NT, F64 = (product("f", each).text for each in (replace(PROBLEM, layout="nt"), replace(PROBLEM, dtype="f64")))
GENERIC = product("f", replace(PROBLEM, layout="nt"), generic=True).text
BATCH = product("f", replace(PROBLEM, layout="tn", operation="batch_matmul", batch=2)).text


def reported(program: str) -> list[str]:
    return [report.text for report in contraction_reports(LIBRARY, program, PROBLEMS)]


def test_each_contraction_has_its_entry_and_one_of_two_may_have_none() -> None:
    heads = replace(PROBLEM, operation="batch_matmul", batch=3)
    program = product("heads", heads).text + product("plain", PROBLEM, generic=True).text
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
        (BATCH, "@f: linalg.batch_matmul 2x24x64x32 f32 tn", "batches are recognized in layout nn only"),
        (DYNAMIC, "@dynamic: linalg.matmul", "it has sizes that are not known when it is compiled"),
        (VECTOR, "@vector: linalg.matvec", "only matmuls and batches of them are matched"),
        (BUFFERS, "@buffers: linalg.matmul 24x64x32 f32 nn", "it works on buffers; an entry needs tensors"),
        (BROADCAST, "@broadcast: linalg.generic", "its indexing maps are those of no layout (nn, nt, tn)"),
    ],
)
def test_why_no_entry_took_it(program: str, op: str, why: str) -> None:
    assert reported(program) == [f"{op}: no entry: {why}"]


def test_contractions_are_listed_without_a_library_and_a_program_without_one_has_no_report() -> None:
    ops = [report.op for report in payload_contractions(product("f", PROBLEM).text + VECTOR)]
    assert ops == ["linalg.matmul 24x64x32 f32 nn", "linalg.matvec"]
    assert reported("func.func @nothing() {\n  return\n}\n") == []


def test_a_program_that_does_not_parse_and_a_library_without_its_matchers_are_one_line() -> None:
    with pytest.raises(CandidateError, match="payload: "):
        contraction_reports(LIBRARY, "func.func @f(", PROBLEMS)
    with pytest.raises(CandidateError, match="library: the sequence @tuner_mark is missing"):
        contraction_reports("module {\n}\n", BUFFERS, PROBLEMS)
