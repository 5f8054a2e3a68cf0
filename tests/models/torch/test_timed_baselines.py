"""What runs a module next to its program: timed together, or named with the reason why not."""

import importlib.util
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tuner.results.output.program_tables import baseline_document, baseline_lines, baseline_table

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'torch>=2.6'")
baseline_calls = pytest.importorskip("tuner.models.torch.baselines")
timed_baselines, compared_baseline = baseline_calls.timed_baselines, baseline_calls.compared_baseline


@pytest.fixture
def example() -> Any:
    torch.manual_seed(0)
    return baseline_calls.Example(torch.nn.Linear(8, 4).eval(), (torch.ones(2, 8),), {})


def test_eager_is_timed_next_to_the_program_and_leaves_the_threads_as_they_were(example: Any) -> None:
    threads = torch.get_num_threads()
    calls: list[tuple[int, bool]] = []

    def program(x: Any) -> Any:
        calls.append((torch.get_num_threads(), torch.is_grad_enabled()))
        return x

    (eager,) = timed_baselines(program, example, ("eager",), seconds=0.0)
    assert eager.name == "eager"
    assert eager.call_s.low <= eager.call_s.median <= eager.call_s.high
    assert (eager.speed is None) == bool(eager.reason)
    assert set(calls) == {(1, False)}
    assert torch.get_num_threads() == threads


def test_a_ratio_that_is_not_reliable_is_timed_again(example: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed = {"tuner": STEADY, "tuner again": tuple(1.4 * time_s for time_s in STEADY), "eager": DOUBLED}
    attempts = [disturbed, {**disturbed, "tuner again": STEADY}, disturbed]
    monkeypatch.setattr(baseline_calls, "interleaved_times", lambda *_, **__: attempts.pop(0))
    (eager,) = timed_baselines(example.module, example, ("eager",), attempts=3)
    assert eager.speed.median == pytest.approx(2.0)
    assert attempts == [disturbed]
    (eager,) = timed_baselines(example.module, example, ("eager",))
    assert "two timings of the same code differ by 40%" in eager.reason


STEADY = tuple(1e-5 * (1 + 0.001 * (place % 3)) for place in range(60))
DOUBLED = tuple(2 * each for each in STEADY)
DRIFTING = tuple(3e-5 * (1 + 9.48 * (place >= 45)) for place in range(60))  # by 948 % in the last quarter


@pytest.mark.parametrize(
    ("theirs_s", "again_s", "trust", "reason"),
    [
        (DOUBLED, STEADY, "reliable", ""),
        (DRIFTING, STEADY, "unreliable", "the baseline drifted by 948%"),
        (DOUBLED, tuple(1.4 * each for each in STEADY), "unreliable", "same code differ by 40%"),
        (STEADY[1:] + STEADY[:1], STEADY, "reliable", "not distinguishable"),
    ],
)
def test_a_baseline_has_a_ratio_only_where_nothing_disturbed_it(
    theirs_s: tuple[float, ...], again_s: tuple[float, ...], trust: str, reason: str
) -> None:
    found = compared_baseline("eager", theirs_s, STEADY, again_s)
    assert found.reliability.word == trust
    assert (found.speed is None) == bool(reason)
    assert reason in found.reason
    (_, row) = baseline_table((found,))
    assert row[2] == trust
    assert ("times as fast" in row[3]) == (not reason)
    assert (baseline_document(found)["speedup"] is None) == bool(reason)


def test_a_baseline_that_is_faster_by_more_than_noise_has_a_line() -> None:
    faster = compared_baseline("eager", STEADY, DOUBLED, DOUBLED)
    slower = compared_baseline("inductor", DOUBLED, STEADY, STEADY)
    *_, line = baseline_lines((faster, slower), None)
    assert line.startswith("slower  than eager: 0.50 times as fast (95 % interval 0.50 .. ")
    assert not any(line.startswith("slower") for line in baseline_lines((slower,), None))


TWICE = tuple(2 * each for each in DOUBLED)
DISTURBED = tuple(time_s * (1 + 4 * (place % 2)) for place, time_s in enumerate(STEADY))


@pytest.mark.parametrize(
    ("theirs_s", "again_s", "is_faster"),
    [
        (STEADY, DOUBLED, True),  # each call is
        (DOUBLED, DOUBLED, False),
        (DISTURBED, tuple(1.5 * time_s for time_s in TWICE), True),  # the calls that nothing disturbed
        (DISTURBED, DISTURBED, False),
    ],
)
def test_what_is_disturbed_each_time_is_faster_where_that_shows_in_single_calls(
    theirs_s: tuple[float, ...],
    again_s: tuple[float, ...],
    is_faster: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = []

    def disturbed(*_: object) -> dict[str, tuple[float, ...]]:
        attempts.append(1)
        return {"tuner": TWICE, "tuner again": again_s, "theirs": theirs_s}

    monkeypatch.setattr(baseline_calls, "interleaved_times", disturbed)
    assert baseline_calls.is_faster(int, int, ()) == is_faster
    assert len(attempts) == baseline_calls.DECISION_ATTEMPTS


@pytest.mark.slow
def test_without_a_cpp_compiler_torch_compile_is_named_with_its_reason(example: Any) -> None:
    options = {"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}
    with torch._inductor.config.patch(options):  # noqa: SLF001 - its documented name
        names = ("eager", "torch.compile freezing")
        eager, compiled = timed_baselines(example.module, example, names, seconds=0.0)
    assert eager.call_s is not None
    assert (compiled.call_s, compiled.speed) == (None, None)
    assert compiled.reason
    assert "\n" not in compiled.reason


def test_a_baseline_that_a_budget_has_no_time_to_compile_is_left_out_and_says_so(
    example: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 10 of 25 s, so two fit; max_autotune is expected to take twice as long."""
    now_s = 0.0
    compiled: list[str] = []

    def runtime(name: str, _example: Any, _threads: int) -> Any:
        nonlocal now_s
        now_s += 10
        compiled.append(name)
        return lambda: None

    def times_s(timed: Any, *_: Any, **__: Any) -> Any:
        return {name: [1.0, 1.0] for name in timed}

    names = ("torch.compile", "torch.compile freezing", "torch.compile max_autotune")
    monkeypatch.setattr(baseline_calls, "time", SimpleNamespace(perf_counter=lambda: now_s))
    monkeypatch.setattr(baseline_calls, "RUNTIMES", {name: partial(runtime, name) for name in names})
    monkeypatch.setattr(baseline_calls, "interleaved_times", times_s)
    *fitting, last = timed_baselines(lambda *_: None, example, names, left_s=25.0)
    assert compiled == [each.name for each in fitting]
    assert (last.call_s, last.reason) == (None, "the budget ended before it was timed")
    assert not any(each.call_s for each in timed_baselines(lambda *_: None, example, names, left_s=1.0))
    assert len(compiled) == 2


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_runtime_that_is_not_installed_is_named(example: Any, name: str) -> None:
    if importlib.util.find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    (found,) = timed_baselines(example.module, example, (name,), seconds=0.0)
    assert found.reason.startswith(f"not installed: {name}")


def test_a_failure_is_one_line_and_a_function_is_compiled_anew_for_each_baseline(example: Any) -> None:
    def fails() -> Any:
        raise RuntimeError("no\n compiler")

    assert baseline_calls.checked_call(fails) == baseline_calls.NotRun("RuntimeError: no compiler")
    missing = baseline_calls.checked_call(partial(baseline_calls.require, "no_such_runtime"))
    assert missing == baseline_calls.NotRun("not installed: no_such_runtime; pip install no_such_runtime")
    first, second = (baseline_calls.function_of(example.module) for _ in range(2))
    assert first.__code__ is not second.__code__
    assert torch.equal(first(*example.arguments), example.module(*example.arguments))
