"""Programs drawn at random, for the GPU check: on the device against the same as loops on the host.

Needs hypothesis.
"""

from typing import Any

import hypothesis

from benchmarks.gpu_check_bed import Bed
from benchmarks.gpu_check_programs import SEED, called, judged_by
from benchmarks.gpu_check_rows import Outcome, failed
from tests.mlir.host_programs import Features, Program, host_programs
from tests.tuning.whole_programs import compiler
from tuner.device import AbstractDevice
from tuner.errors import TunerError
from tuner.program_run import FORMS, Comparison, Form
from tuner.target_name import TargetName
from tuner.tuning.program_comparison import compare, outputs
from tuner.tuning.program_execution import copies, reports_of

FEATURES = Features(strided_arguments=False)  # arrays come from Python without gaps
MANY, FEW = 40, 2  # on hardware, and on what stands for it


def random_programs(bed: Bed) -> Outcome:
    """Runs programs in all forms in turns, up to the first that is wrong. Raises DeviceError."""
    count = MANY if bed.is_hardware else FEW
    device, comparisons = bed.open(), list[Comparison]()
    for number, program in enumerate(draw_programs(count, SEED)):
        form = FORMS[number % len(FORMS)]
        told: dict[str, Any] = {"form": form, "program": program.text}
        try:
            comparisons += on_host_too(bed, device, program, form)
        except TunerError as error:
            return failed(str(error), **told)
        if reports_of(device) or not all(one.is_equal for one in comparisons):
            return judged_by(comparisons, reports_of(device), "", **told)
    return judged_by(comparisons, (), f"{count} programs")


def on_host_too(bed: Bed, device: AbstractDevice, program: Program, form: Form) -> tuple[Comparison, ...]:
    """Compares one program without scripts with the same on the host. Raises TunerError."""
    from tuner.mlir.device_lowering import DeviceOptions
    from tuner.runtime.host_function import HostFunction

    code = compiler(bed.target).compile(program.text, "main", None, DeviceOptions(form=form)).code
    plain = HostFunction(compiler(TargetName("cpu")).compile(program.text, "main", None).code)
    own = copies(program.arguments)
    return compare(code, called(device, code, program.arguments, 1), outputs(code, plain(*own), own))


def draw_programs(count: int, seed: int) -> tuple[Program, ...]:
    """Returns so many programs, the same for the same seed."""
    drawn: list[Program] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(host_programs(FEATURES))
    def draw(program: Program) -> None:
        drawn.append(program)

    draw()
    return tuple(drawn[:count])
