"""Baselines of a model that a command names: the model and its tuned program in one child process."""

from functools import partial
from typing import Any

from tuner.core.errors import Stage, TunerError, failing_at
from tuner.core.program_result import ProgramBaseline
from tuner.programs.request import ProgramRequest
from tuner.tuning.parts.child_call import call_in_child

TIMEOUT_S = 900.0  # compiling a large model by inductor three times takes minutes


def model_baselines_in_child(request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    """Returns the baselines of ``request.baselines``, timed next to the program of ``request.model``.

    A failure or a hang is the reason of each of them.
    """
    try:
        return call_in_child("baselines", partial(model_baselines, request), TIMEOUT_S)
    except TunerError as error:
        return tuple(ProgramBaseline(name, reason=error.message) for name in request.baselines)


def model_baselines(request: ProgramRequest) -> tuple[ProgramBaseline, ...]:
    """Returns the baselines of a model, timed in this process, with the schedules of the database."""
    from tuner.programs.compile import compile_program
    from tuner.programs.torch_models.baseline_calls import example_of
    from tuner.programs.torch_models.exported_module import export_module
    from tuner.programs.torch_models.model_file import read_model
    from tuner.programs.torch_models.tensor_program import TensorProgram
    from tuner.programs.torch_models.timed_baselines import timed_baselines

    with failing_at(Stage.BIND):
        module, arguments = read_model(request.model)
        exported = export_module(module, arguments)
        threads = request.options.threads
        function: Any = compile_program(exported.text, target="cpu", db=request.database, threads=threads)
    program = TensorProgram(function, exported)
    return timed_baselines(program, example_of(module, arguments, {}), request.baselines, threads)
