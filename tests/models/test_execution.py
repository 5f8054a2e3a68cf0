"""Mistakes that are easily made in tuned models, one for each test; others are tested where they live."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import fusion_texts as texts
from tests.fusion_runs import as_problem, compiled, error_of
from tests.models.fusions.payload_text import PayloadText
from tests.support.fuzzing.program_check import SIMULATOR
from tests.support.program_compiler import compiler_of
from tests.support.stub_driver import StubDriver
from tuner.core.candidate import TargetName
from tuner.core.errors import DeviceError
from tuner.core.machine import variables_of
from tuner.core.problem_classes import TextProblem
from tuner.gpu.run.device_function import DeviceFunction
from tuner.models.execution import ROUNDS, LaunchTimer, host_function, time_on_device, typical
from tuner.models.program_times import KernelTime, ProgramTimes, busy
from tuner.runtime.cpu.host import describe_machine
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose, default_script, spaces
from tuner.space.scripts.strategy import Binder, load_strategy

pytestmark = pytest.mark.mlir
PACKED = "contraction_cpu_packed"
RNG = np.random.default_rng(0)
EXAMPLES = Path(__file__).parents[2] / "examples"


def script_with(problem: TextProblem, **wanted: int | str) -> str:
    """Returns the script of the first feasible configuration of packed contractions that has these knobs."""
    file, machine = load_space_file(default_space_file()), describe_machine()
    variables = variables_of(problem, machine, threads=1)
    known = spaces(choose((), file), file, problem, machine.isa, variables)
    feasible = FeasibleSet.of(tuple(space for space in known if space.strategy == PACKED))
    candidates = map(feasible.candidate, range(feasible.rows))
    found = next((each for each in candidates if wanted.items() <= dict(each.choices).items()), None)
    assert found is not None, f"no configuration has {wanted}"
    return Binder((load_strategy(PACKED),), problem, variables, threads=1).bind(found).text


def first_script(problem: TextProblem) -> str:
    found: Any = default_script(problem, describe_machine())
    return str(found.text)


def require_right(problem: TextProblem, script: str | None = None, inputs: Any = ()) -> None:
    rng = np.random.default_rng(0)
    assert error_of(problem.text, script or first_script(problem), rng, inputs) <= 1


def fused(payload: str) -> Any:
    return host_function(compiler_of(TargetName("cpu")).compile(payload, as_fusions=True))


@pytest.mark.parametrize("epilogue", ["none", "bias"])
def test_products_are_fused_multiply_adds_also_without_an_epilogue(epilogue: str) -> None:
    """Steps of K of 1 that are folded as a unit dimension become a product and a sum."""
    problem = as_problem("contraction", texts.product(24, 64, 32, epilogue))
    code = compiled(problem.text, first_script(problem)).llvm_text
    assert "llvm.intr.fmuladd" in code
    assert "llvm.fmul" not in code


@pytest.mark.drawn(5)
@pytest.mark.parametrize(
    ("sizes", "epilogue", "wanted"),
    [
        # an eighth of 1376: no power of two divides it
        ((30, 70, 172), "bias_relu", {"epilogue_on": "panel", "block_k": 86}),
        ((30, 70, 89), "bias_relu", {"epilogue_on": "panel", "block_k": 0}),  # a prime
        ((30, 70, 89), "bias_relu", {"epilogue_on": "tile", "unroll_k": 1}),
        ((30, 70, 92), "bias_relu", {"epilogue_on": "tile", "unroll_k": 4}),
        ((17, 101, 24), "residual", {"panel": 48, "tile_m": 4}),  # three vectors
        ((17, 101, 24), "residual", {"panel": 96, "tile_m": 4}),  # six
    ],
)
def test_a_ragged_k_is_summed_to_its_end_and_wide_tiles_are_right(
    sizes: tuple[int, int, int], epilogue: str, wanted: dict[str, int | str]
) -> None:
    problem = as_problem("contraction", texts.product(*sizes, epilogue))
    require_right(problem, script_with(problem, **wanted))


@pytest.mark.parametrize("text", [texts.softmax(3, 1000), texts.layer_norm(3, 1000, "f64")])
def test_rows_wider_than_a_vector_of_the_compiler_are_done_in_chunks(text: str) -> None:
    require_right(as_problem("rows", text))


def test_denormals_of_a_schedule_are_not_flushed_to_zero() -> None:
    rows = np.zeros((2, 40), np.float32)
    rows[:, 1:] = -100.0  # exp gives 3.7e-44
    require_right(as_problem("rows", texts.softmax(2, 40)), inputs=[rows])
    inputs = [np.full((4, 8), 1e-40, np.float32), np.full((8, 20), 0.5, np.float32)]
    require_right(as_problem("contraction", texts.product(4, 20, 8)), inputs=inputs)


def test_a_value_may_be_a_and_residual_and_a_weight_of_two_fusions_is_right_in_both() -> None:
    payload, weights = PayloadText(), RNG.standard_normal((40, 40)).astype(np.float32)
    x = payload.argument(11, 40)
    program = fused(payload.text(payload.binary("add", payload.matmul(x, payload.weight(weights)), x)))
    (fusion,) = program.code.fusions
    assert fusion.strategy == PACKED
    for _ in range(2):  # the second call's result may lie where the first one's was
        value = RNG.standard_normal((11, 40)).astype(np.float32)
        np.testing.assert_allclose(program(value), value @ weights + value, rtol=1e-4, atol=1e-5)
    payload, weights = PayloadText(), RNG.standard_normal((24, 48)).astype(np.float32)
    one, other = payload.argument(3, 24), payload.argument(70, 24)
    shared = payload.weight(weights)
    program = fused(payload.text(payload.matmul(one, shared), payload.matmul(other, shared)))
    assert len(program.code.fusions) == 2
    assert program.code.weights_bytes >= weights.nbytes
    inputs = [RNG.standard_normal((rows, 24)).astype(np.float32) for rows in (3, 70)]
    for found, value in zip(program(*inputs), inputs, strict=True):
        np.testing.assert_allclose(found, value @ weights, rtol=1e-4, atol=1e-5)


def test_nothing_of_a_call_is_left_in_the_padding_of_the_next() -> None:
    """The padding of a convolution is written before the first call only."""
    payload = PayloadText()
    x = payload.argument(5, 6)
    padded = payload.padded(payload.unary("tanh", x), (1, 1), (1, 1))
    program = fused(payload.text(payload.reduced("sum", payload.binary("mul", padded, padded))))
    for scale in (1.0, 1e3, np.nan, 1.0):
        value = np.full((5, 6), scale, np.float32)
        wanted = np.pad(np.tanh(value) ** 2, 1).sum(1)
        np.testing.assert_allclose(program(value), wanted, rtol=1e-5)


# Times of kernels: what overlaps, what is busy, and which round is typical.

PAIRS = st.tuples(st.integers(0, 50), st.integers(0, 20))
SPANS = PAIRS.map(lambda pair: KernelTime("k", pair[0], sum(pair)))


def times(*spans: tuple[float, float], streams: int = 2) -> ProgramTimes:
    kernels = tuple(KernelTime(f"k{number}", *span) for number, span in enumerate(spans))
    return ProgramTimes(1.0, kernels, streams)


@pytest.mark.parametrize(
    ("spans", "overlap", "is_serialized"),
    [
        (((0, 1), (1, 3)), 1.0, True),
        (((0, 1), (2, 4)), 1.0, True),  # a gap is not an overlap
        (((0, 2), (0, 2)), 2.0, False),
        (((0, 2), (1, 3)), 4 / 3, False),
        (((0, 1),), 1.0, False),  # one kernel is not called serialized
        ((), None, False),
    ],
)
def test_kernels_overlap_by_what_they_share(spans: Any, overlap: float | None, is_serialized: bool) -> None:
    assert times(*spans).overlap == (overlap and pytest.approx(overlap))
    assert times(*spans).is_serialized == is_serialized
    assert not times(*spans, streams=1).is_serialized
    assert ProgramTimes(1.0).kernel_s == 0.0


def test_a_kernel_that_stops_before_it_starts_is_refused_and_the_round_of_the_median_typical() -> None:
    with pytest.raises(ValueError, match="k: found stop 1 s before start 2 s"):
        KernelTime("k", 2, 1)
    rounds = [kernels(1.0, 2.0), kernels(9.0), kernels(0.5), kernels(2.0, 2.0), kernels(0.1)]
    assert typical(rounds) == kernels(1.0, 2.0)
    assert typical([kernels(1.0), kernels(2.0)]) == kernels(1.0)


@given(st.lists(SPANS, max_size=8))
def test_busy_time_is_the_measure_of_the_union(spans: list[KernelTime]) -> None:
    # whole seconds, so that counting is exact
    seconds = (range(int(span.start_s), int(span.stop_s)) for span in spans)
    assert busy(tuple(spans)) == len(set().union(*seconds))


def kernels(*seconds: float) -> tuple[KernelTime, ...]:
    return tuple(KernelTime("k", 0.0, each) for each in seconds)


@pytest.fixture(scope="module")
def code() -> Any:
    return compiler_of(SIMULATOR).compile((EXAMPLES / "gpux_own_streams.mlir").read_text(), None, None).code


def arrays() -> tuple[Any, ...]:
    return tuple(np.arange(128, dtype=np.float32) + number for number in range(4))


def test_launches_are_timed_and_results_stay_right(code: Any) -> None:
    device = StubDriver().open()
    timer = LaunchTimer(device)
    program = DeviceFunction(code, timer.as_device())
    inputs = arrays()
    for _ in range(2):
        program(*inputs)
        times = timer.take()
        assert [each.kernel for each in times] == ["scale", "scale"]
        assert all(0 <= each.start_s <= each.stop_s for each in times)
        assert times[0].start_s <= times[1].start_s
    assert timer.take() == ()
    np.testing.assert_array_equal(inputs[2], 2 * np.arange(128))
    program.close()
    timer.close()


def test_whole_calls_and_their_kernels_are_timed_and_a_device_that_refuses_is_reported(code: Any) -> None:
    stub = StubDriver()
    times = time_on_device(stub.open(), code, arrays(), seed=0)
    assert times.call_s > 0
    assert times.streams == 3
    assert times.kernel_s > 0
    assert len(stub.launches) > 2 * ROUNDS
    stub = StubDriver()
    device = stub.open()
    stub.fail("cuEventElapsedTime", 999)
    with pytest.raises(DeviceError, match="cuEventElapsedTime"):
        time_on_device(device, code, arrays(), seed=0)
