"""Models of real size: each stage ends as a figure or as a reason, and memory is that of all processes."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.limited_child import Stopped, in_child
from benchmarks.process_memory import tree_bytes, watched_memory
from benchmarks.real_size import __main__ as real_size
from benchmarks.real_size.outcome import (
    COLD,
    INDUCTOR,
    LLAMA_CPP,
    MISSING,
    RIGHT,
    SECOND_LENGTH,
    STAGES,
    TIMES,
    WARM,
    WRONG,
    RealSizeOutcome,
    stage_of,
)

MIB = 1 << 20
HOLDING = "import sys; held = bytearray(int(sys.argv[1])); held[::4096] = b'x' * len(held[::4096]); input()"
BERT = RealSizeOutcome(
    "bert",
    weights_mb=417.0,
    error=1e-6,
    compile_s={COLD: 20.0, WARM: 2.5, INDUCTOR: 40.0},
    peak_mb={COLD: 800.0, WARM: 700.0},
    after_mb=420.0,
    call_ms={"tuner": 50.0, "eager": 60.0},
    ratios={"eager": (1.2, 1.1, 1.3)},
    untimed={"onnxruntime": "not installed: onnxruntime"},
)
GPT2 = RealSizeOutcome("gpt2_step", WRONG, ratios={"eager": (2.7, 2.6, 2.8)}, tokens_per_s={"tuner": 30.0})


@pytest.fixture
def holding() -> Any:
    """Gives a function that starts a child process which holds so many bytes."""
    started: list[subprocess.Popen[bytes]] = []

    def start(size: int) -> int:
        child = subprocess.Popen([sys.executable, "-c", HOLDING, str(size)], stdin=subprocess.PIPE)
        started.append(child)
        until = time.monotonic() + 20
        while tree_bytes(child.pid) < size and time.monotonic() < until:
            time.sleep(0.01)
        return child.pid

    yield start
    for child in started:
        child.communicate()


def test_a_forked_process_does_not_count_twice() -> None:
    held = bytearray(b"x") * (256 * MIB)
    before = tree_bytes(os.getpid())
    receiver, sender = os.pipe()
    pid = os.fork()
    if not pid:
        os.read(receiver, 1)
        os._exit(0)
    try:
        assert tree_bytes(os.getpid()) - before < len(held) / 2
    finally:
        os.write(sender, b"x")
        os.waitpid(pid, 0)


def test_memory_is_that_of_a_process_and_its_children_and_the_peak_stays(holding: Any) -> None:
    with watched_memory() as held:
        before = held()
        pid = holding(64 * MIB)
        with_child = held()
        assert 64 * MIB <= with_child.now_bytes - before.now_bytes < 96 * MIB
        assert with_child.own_bytes < with_child.now_bytes - 64 * MIB
        assert 64 * MIB <= tree_bytes(pid) < 96 * MIB
    with watched_memory() as held:
        array = bytearray(b"x") * (64 * MIB)
        grown = held()
        del array
        shrunk = held()
        assert shrunk.peak_bytes >= grown.now_bytes
        assert shrunk.now_bytes < grown.now_bytes - 60 * MIB


def test_a_process_that_is_gone_holds_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert tree_bytes(child.pid) == 0


def hold_in_child(size: int, seconds: float) -> int:
    child = subprocess.Popen([sys.executable, "-c", HOLDING, str(size)], stdin=subprocess.PIPE)
    time.sleep(seconds)
    child.communicate()
    return size


def test_a_child_is_stopped_where_its_own_children_hold_more_than_the_limit() -> None:
    found = in_child(hold_in_child, 300 * MIB, 30.0, limit_s=60, limit_bytes=250 * MIB)
    assert found == Stopped("exceeded 250 MiB of memory")
    assert in_child(hold_in_child, MIB, 0.5, limit_s=60, limit_bytes=250 * MIB) == MIB
    assert in_child(hold_in_child, MIB, 30.0, limit_s=1, limit_bytes=250 * MIB) == Stopped(
        "timed out after 1 s"
    )


def test_a_stopped_stage_is_a_reason_until_it_ends() -> None:
    stopped = real_size.with_stage(BERT, TIMES, Stopped("exceeded 8192 MiB of memory"))
    assert stopped == replace(BERT, stopped={TIMES: "exceeded 8192 MiB of memory"})
    assert "times: exceeded 8192 MiB of memory" in real_size.line_of(stopped)
    assert real_size.with_stage(stopped, COLD, stopped) == stopped
    assert real_size.with_stage(stopped, TIMES, stopped) == BERT


def test_outcomes_are_read_again_and_only_other_models_or_named_stages_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    def run(_stage_of: object, name: str, stage: str, start: RealSizeOutcome, *_: object, **__: Any) -> Any:
        asked.append((name, stage))
        return replace(start, compile_s={**start.compile_s, stage: 1.0})

    monkeypatch.setattr(real_size, "in_child", run)
    monkeypatch.setattr(real_size, "limit_libraries", bool)
    output = ["--output", str(tmp_path / "real_size.json")]
    assert real_size.main(["--model", "bert", *output]) == 0
    assert asked == [("bert", stage) for stage in STAGES if stage != LLAMA_CPP]
    known = real_size.kept(tmp_path / "real_size.json")
    assert known["bert"].compile_s == {stage: 1.0 for stage in STAGES if stage != LLAMA_CPP}
    asked.clear()
    assert real_size.main(["--model", "bert", "gpt2_step", "--gguf", "gpt2_step=model.gguf", *output]) == 0
    assert asked == [("gpt2_step", stage) for stage in STAGES]
    asked.clear()
    assert real_size.main(["--model", "bert", "--stage", WARM, *output]) == 0
    assert asked == [("bert", WARM)]
    assert '"models": 2' in capsys.readouterr().out


def test_a_missing_model_ends_after_a_stage_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def missing(_stage_of: object, _name: str, stage: str, start: Any, *_: object, **__: Any) -> Any:
        asked.append(stage)
        return replace(start, outcome=MISSING, reason="no module named transformers")

    monkeypatch.setattr(real_size, "in_child", missing)
    monkeypatch.setattr(real_size, "limit_libraries", bool)
    for _ in range(2):
        assert real_size.main(["--model", "bert", "--output", str(tmp_path / "real_size.json")]) == 0
    assert asked == [COLD, COLD]


def test_the_summary_has_compile_times_over_inductor_and_a_wrong_model_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = real_size.summary_of([BERT, GPT2, RealSizeOutcome("vit_b_16", MISSING)])
    assert summary["models"] == 2
    assert summary["right"] == 1
    assert summary["cold over inductor"] == 0.5
    assert summary["slowest warm"] == 2.5
    assert summary["times as fast as"] == {"eager": 1.8}
    monkeypatch.setattr(real_size, "in_child", lambda *_, **__: GPT2)
    monkeypatch.setattr(real_size, "limit_libraries", bool)
    assert real_size.main(["--model", "gpt2_step", "--output", str(tmp_path / "real_size.json")]) == 1


def test_llama_cpp_without_a_file_or_without_its_package_says_why() -> None:
    without = stage_of("gpt2_prompt", LLAMA_CPP, RealSizeOutcome("gpt2_prompt"), 1.0)
    assert without.untimed == {LLAMA_CPP: "no file: --gguf MODEL=FILE"}


@pytest.mark.mlir
def test_a_model_is_compiled_cold_and_warm_and_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")
    from benchmarks.real_size import models, outcome

    small = models.RealModel(
        "small",
        "torch",
        lambda: torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()),
        lambda length: (torch.randn(length, 64),),
        length=32,
        second_length=16,
        rows=32,
    )
    monkeypatch.setattr(models, "BY_NAME", {"small": small})
    monkeypatch.setattr(outcome, "BASELINES", ("eager",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = RealSizeOutcome("small")
    for stage in (COLD, WARM, TIMES):
        found = stage_of("small", stage, found, 0.2)
    assert found.outcome == RIGHT
    assert found.error < 1e-5
    assert found.compile_s.keys() == {COLD, WARM, SECOND_LENGTH}
    assert found.compile_s[WARM] < found.compile_s[COLD]
    assert found.fusions == 1
    assert found.weights_mb == pytest.approx((64 * 64 + 64) * 4 / MIB, abs=0.05)
    assert found.tokens_per_s["tuner"] == pytest.approx(32 / found.call_ms["tuner"] * 1e3, rel=0.01)
    assert found.ratios.keys() | found.untimed.keys() == {"eager"}
