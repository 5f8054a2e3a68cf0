"""The benchmark of dynamic sizes: its static programs are those of the dynamic ones, and a row has both."""

import pytest

import tuner
from benchmarks.program_sizes import __main__ as program_sizes
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import form_text
from tuner.models.run.sized_function import SizedFunction

pytestmark = pytest.mark.mlir


@pytest.mark.parametrize("program", program_sizes.PROGRAMS)
def test_a_static_program_has_static_sizes_and_becomes_fusions(program: str) -> None:
    formed = form_text(program_sizes.static_text(program_sizes.text_of(program), 6), None)
    assert not isinstance(formed, NotFused), formed
    assert any(6 in type_.shape for type_ in formed.program.arguments)


@pytest.mark.slow
def test_both_forms_of_a_program_are_timed_and_agree() -> None:
    function = tuner.compile_program(program_sizes.text_of("mean"), "cpu", sizes="3..4")
    assert isinstance(function, SizedFunction)
    row = program_sizes.measured("mean", function, 3, 0.05)
    assert row["difference"] < 1e-5
    assert row["compiled_size"] == 3
    assert set(row["microseconds"]) == {"static", "dynamic"}
    assert program_sizes.line_of(row).startswith("mean at 3 (in 3): static ")
