"""The forms of a command: options that belong to one are its fields, all others are refused in one line."""

import re

import pytest

from tests.cli.conftest import Tuner
from tuner.cli.commands.tune import tune
from tuner.cli.forms import option_names
from tuner.cli.tune_forms import OperationForm, ProgramForm, ResumedCampaign, ResumedRun, ShapesForm

FORMS = (OperationForm, ProgramForm, ShapesForm, ResumedRun, ResumedCampaign)
PARAMETERS = {parameter.name for parameter in tune.params} - {
    "debug"
}  # of all commands, once they are loaded


def test_each_option_of_tune_belongs_to_a_form_and_forms_have_no_other() -> None:
    of_forms = frozenset[str]().union(*map(option_names, FORMS))
    assert of_forms - PARAMETERS == {"typed"}
    assert of_forms >= PARAMETERS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("matmul 8x8x8 --retime", "--retime needs a run\nhint: --resume RUN"),
        ("p.mlir --retime --target cpu", "--retime needs a run\nhint: --resume RUN"),
        ("p.mlir 8x8x8 --dtype f64", "tune: 8x8x8 cannot be combined with a program"),
        ("p.mlir --fleet", "--fleet cannot be combined with p.mlir: programs run on this machine"),
        ("matmul 8x8x8 --fleet --on a,,a", "--on: found 'a,,a', allowed two or more classes"),
        ("--resume 1 --entry f --arg 0=1", "--resume cannot be combined with --entry, --arg: the run has"),
        ("--resume 1 --zero-points", "--resume cannot be combined with --zero-points: the run has"),
        ("--resume campaign:1 matmul", "--resume cannot be combined with matmul: the run has its stored"),
        ("--resume campaign:1 --retime", "--resume campaign:1 cannot be combined with --retime, which times"),
        (
            "--resume campaign:1 --fleet --on a,b",
            "--resume campaign:1 cannot be combined with --on: a campaign",
        ),
        (
            "--shapes s.yaml --warm-start w --dtype f32",
            "--shapes cannot be combined with --dtype, --warm-start",
        ),
        ("square 8x8x8 --entry f", "--entry needs a program: a file of MLIR in place of an operation"),
        ("matmul 8x8x8 --cpu haswell --target cuda", "--cpu haswell cannot be combined with --target cuda"),
    ],
)
def test_an_option_of_another_form_is_refused_in_one_line(tuner: Tuner, line: str, message: str) -> None:
    refused = tuner.refused(f"tune {line}")
    assert refused.startswith(f"error: {message}")
    assert re.fullmatch(r"error: .*\n(hint: .*\n)?", refused)
