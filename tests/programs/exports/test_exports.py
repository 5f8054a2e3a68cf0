"""Programs that torch-mlir exports give what torch gives, on the host and on the simulated GPU."""

import numpy as np
import pytest

from benchmarks.program_compiler import compiler_of
from tests.programs.kernel_programs import called
from tuner.core.candidate import TargetName
from tuner.programs.execution import host_function
from tuner.programs.run.host_function import HostFunction

pytestmark = pytest.mark.mlir

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
pytest.importorskip("torch", reason=NO_TORCH)
corpus = pytest.importorskip("tests.programs.exports.corpus")
comparison = pytest.importorskip("tests.programs.exports.comparison")

CPU, SIMULATOR = TargetName("cpu"), TargetName("simulator", "sm_90")


def test_each_name_is_that_of_one_export() -> None:
    assert len(corpus.EXPORTS) == sum(len(exports) for exports in corpus.LISTS.values()) >= 60
    assert {*corpus.USUAL, *corpus.SIMULATED, *corpus.NOT_SIMULATED} <= corpus.EXPORTS.keys()


@pytest.mark.drawn(1)
def test_a_program_on_the_host_gives_what_torch_gives(export_name: str) -> None:
    """As fusions where the program can be, as ``tuner.compile_program`` compiles; twice."""
    made = corpus.built(export_name)
    program = host_function(compiler_of(CPU).compile(corpus.text_of(export_name), as_fusions=True))
    arguments = [comparison.array_of(each) for each in made.inputs]
    kept = [each.copy() for each in arguments]
    for results in (program(*arguments), program(*arguments)):
        comparison.require_equal(results, made.expected, corpus.EXPORTS[export_name].tolerance)
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(arguments, kept, strict=True))
    assert program.allocations == 0


@pytest.mark.drawn(2)
def test_a_program_as_a_whole_gives_what_torch_gives(whole_name: str) -> None:
    """Without fusions: the way of programs with dynamic sizes, control flow or memrefs."""
    made = corpus.built(whole_name)
    program = HostFunction(compiler_of(CPU).compile(corpus.text_of(whole_name)).code)
    results = program(*map(comparison.array_of, made.inputs))
    comparison.require_equal(results, made.expected, corpus.EXPORTS[whole_name].tolerance)
    assert program.allocations == 0


def require_right_on_the_simulator(name: str, *, as_fusions: bool) -> None:
    made = corpus.built(name)
    code = compiler_of(SIMULATOR).compile(corpus.text_of(name), as_fusions=as_fusions).code
    results = called(code, *map(comparison.array_of, made.inputs))
    comparison.require_equal(results, made.expected, corpus.EXPORTS[name].tolerance)


@pytest.mark.drawn(1)
def test_a_program_on_the_simulated_gpu_gives_what_torch_gives(simulated_name: str) -> None:
    """As fusions where the program can be, as ``tuner.compile_program`` compiles."""
    require_right_on_the_simulator(simulated_name, as_fusions=True)


@pytest.mark.slow
def test_a_program_as_a_whole_on_the_simulated_gpu_gives_what_torch_gives(simulated_whole_name: str) -> None:
    require_right_on_the_simulator(simulated_whole_name, as_fusions=False)
