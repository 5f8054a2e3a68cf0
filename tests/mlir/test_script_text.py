"""Scripts are printed as text that is read back as the same script."""

import pytest

from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk_where
from tuner.mlir.script_linking import sort_pass_options, text_of
from tuner.space.scripts.schedule import Schedule

pytestmark = pytest.mark.mlir
PASS_OPTIONS, LISTS = (text_beside(__file__, name) for name in ("PASS_OPTIONS", "LISTS"))


def of_pass(module: ir.Module) -> dict[str, str]:
    """Returns which option of a module's only registered pass gets which parameter, by its definition."""
    op = next(iter(walk_where(module, lambda op: op.name == "transform.apply_registered_pass")))
    options = str(op.attributes["options"])
    for number, parameter in enumerate(list(op.operands)[1:]):
        options = options.replace(f"param_operand<index={number} : i64>", str(parameter))
        options = options.replace(f"param_operand<index = {number} : i64>", str(parameter))
    return {each.split("=")[0].strip(' "{'): each for each in options.split(", ")}


@pytest.mark.parametrize("text", [PASS_OPTIONS, LISTS])
def test_options_of_a_pass_in_any_order_are_read_back(text: str) -> None:
    with transform.new_context(), ir.Location.unknown():
        unsorted = ir.Module.parse(text)
        with pytest.raises(ir.MLIRError, match="expects different type"):  # why all this is there
            ir.Module.parse(str(unsorted))
        given = of_pass(unsorted)
        sort_pass_options(unsorted)
        assert unsorted.operation.verify()
        assert of_pass(unsorted) == given
        assert of_pass(ir.Module.parse(str(unsorted))) == given
        once = str(unsorted)
        sort_pass_options(unsorted)
        assert str(unsorted) == once == str(transform.parse(text, "script"))


def test_each_candidate_of_a_script_with_such_options_binds() -> None:
    schedule = Schedule(PASS_OPTIONS)
    for iterations in (1, 10):
        for topdown in ("true", "false"):
            bound = schedule.select(Candidate.of("own", {"iterations": iterations, "topdown": topdown}))
            again = Schedule(bound)
            assert {knob.name: knob.choices for knob in again.knobs} == {
                "iterations": (iterations,),
                "topdown": (topdown,),
            }


def test_what_is_not_read_back_is_printed_in_generic_form() -> None:
    with transform.new_context(), ir.Location.unknown():
        unsorted = ir.Module.parse(PASS_OPTIONS)
        text = text_of(unsorted.operation)
        assert '"transform.apply_registered_pass"(' in text
        assert of_pass(ir.Module.parse(text)) == of_pass(unsorted)
        sort_pass_options(unsorted)
        assert text_of(unsorted.operation) == str(unsorted)
