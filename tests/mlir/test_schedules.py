"""Schedules as others write them: next to their payload, in nested modules, several, in the old form."""

from pathlib import Path

import pytest

from tuner.cli.models import read_payload_text
from tuner.core.errors import CandidateError
from tuner.core.interfaces import Script
from tuner.core.problem import Matmul
from tuner.targets.children import apply_script
from tuner.targets.cpu.compiler import CpuCompiler

FILE = Path(__file__).with_suffix(".mlir")
BOTH = FILE.read_text()
PAYLOAD, SCHEDULES = BOTH[: BOTH.index("module @tiles")], BOTH[BOTH.index("module @tiles") :]
TILES = SCHEDULES[: SCHEDULES.index("module @vectors")]
OLD = "transform.sequence failures(propagate) {\n^bb0(%root: !transform.any_op):\n}\n"


def test_schedules_of_a_file_are_applied_to_its_functions_one_after_another() -> None:
    applied = apply_script(BOTH, BOTH, allows_effects=False)
    assert applied == apply_script(SCHEDULES, PAYLOAD, allows_effects=False)
    assert applied.count("scf.for") == 2
    assert "vector.transfer_read" in applied
    assert "transform." not in applied
    assert read_payload_text(FILE) == applied


def test_the_old_form_of_a_script_is_named() -> None:
    with pytest.raises(
        CandidateError, match=r"found transform\.sequence, the old form of a script, allowed "
    ):
        apply_script(OLD, PAYLOAD, allows_effects=False)


@pytest.mark.parametrize("text", [TILES, f"module {{\n{TILES}}}\n", PAYLOAD + TILES, BOTH])
def test_a_schedule_that_leaves_tensors_is_bufferized_after_it(text: str) -> None:
    code = CpuCompiler().compile(Matmul(64, 64, 64), Script.of(text)).code
    assert "llvm.func @matmul(" in code


BOUND = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op, %product: !transform.op<"linalg.matmul">,
      %sizes: !transform.param<i64>, %results: !transform.any_value) {
    %count = transform.num_associations %sizes : (!transform.param<i64>) -> !transform.param<i64>
    transform.annotate %product "count" = %count : !transform.op<"linalg.matmul">, !transform.param<i64>
    %found = transform.get_defining_op %results : (!transform.any_value) -> !transform.any_op
    transform.annotate %found "found" : !transform.any_op
    transform.yield
  }
}
"""


@pytest.mark.parametrize(("sizes", "count"), [("#8", 1), ("#8;16", 2)])
def test_trailing_arguments_are_bound_as_by_the_option_of_mlir_opt(sizes: str, count: int) -> None:
    texts = ("linalg.matmul", sizes, "^linalg.matmul")
    applied = apply_script(BOUND, PAYLOAD, allows_effects=False, trailing=texts)
    assert f"linalg.matmul {{count = {count} : i64, found}}" in applied


@pytest.mark.parametrize(
    ("trailing", "message"),
    [
        ((), r"found 0 bindings of the entry's arguments after the first, allowed 3"),
        (
            ("linalg.matmul", "#a", "^linalg.matmul"),
            r"'#a': cannot be bound to an argument of type !transform",
        ),
        (
            ("#8", "#8", "#8"),
            r"'#8': cannot be bound to an argument of type !transform.op<\"linalg.matmul\">",
        ),
    ],
)
def test_a_binding_that_does_not_fit_is_one_line(trailing: tuple[str, ...], message: str) -> None:
    with pytest.raises(CandidateError, match=message):
        apply_script(BOUND, PAYLOAD, allows_effects=False, trailing=trailing)
