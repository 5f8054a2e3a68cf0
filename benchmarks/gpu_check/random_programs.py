"""Random programs for the GPU check: on the device against the same program as loops on the host.

Needs hypothesis.
"""

from typing import Any

import hypothesis

from benchmarks.gpu_check.checks import CheckOutcome, failed
from benchmarks.gpu_check.device_under_test import Bed
from benchmarks.gpu_check.program_runs import SEED, called, evaluated_by
from tests.support.fuzzing.host_programs import RandomProgram, host_programs
from tests.support.program_compiler import compiler_of
from tuner.core.candidate import TargetName
from tuner.core.device import AbstractDevice
from tuner.core.device_programs import FORMS, DeviceOptions, Form
from tuner.core.errors import TunerError
from tuner.models.comparison import compare, outputs
from tuner.models.execution import copies, reports_of
from tuner.models.report import Comparison

MANY, FEW = 40, 2  # on hardware, and on what stands for it


def random_programs(bed: Bed) -> CheckOutcome:
    """Runs programs in all forms, round-robin, up to the first failure. Raises DeviceError."""
    count = MANY if bed.is_hardware else FEW
    device, comparisons = bed.open(), list[Comparison]()
    for number, program in enumerate(draw_programs(count, SEED)):
        form = FORMS[number % len(FORMS)]
        reported: dict[str, Any] = {"form": form, "program": program.text}
        try:
            comparisons += on_host_too(bed, device, program, form)
        except TunerError as error:
            return failed(str(error), **reported)
        if reports_of(device) or not all(one.is_equal for one in comparisons):
            return evaluated_by(comparisons, reports_of(device), "", **reported)
    return evaluated_by(comparisons, (), f"{count} programs")


def on_host_too(
    bed: Bed, device: AbstractDevice, program: RandomProgram, form: Form
) -> tuple[Comparison, ...]:
    """Compares one program without scripts with the same program on the host. Raises TunerError."""
    from tuner.models.run.host_function import HostFunction

    code = compiler_of(bed.target).compile(program.text, "main", None, DeviceOptions(form=form)).code
    plain = HostFunction(compiler_of(TargetName("cpu")).compile(program.text, "main", None).code)
    own = copies(program.arguments)
    return compare(code, called(device, code, program.arguments, 1), outputs(code, plain(*own), own))


def draw_programs(count: int, seed: int) -> tuple[RandomProgram, ...]:
    """Returns ``count`` random programs, the same for the same seed."""
    drawn: list[RandomProgram] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(host_programs())
    def draw(program: RandomProgram) -> None:
        drawn.append(program)

    draw()
    return tuple(drawn[:count])
