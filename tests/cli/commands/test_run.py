"""``tuner run`` on the examples and on programs that are wrong, in child processes as for users."""

import io
import json
import re
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner
from tests.texts import text_beside
from tuner.cli.commands.run import noting_slowness
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

EXAMPLES = Path(__file__).parents[3] / "examples"
BARRIER = text_beside(__file__, "BARRIER")


@pytest.fixture
def run(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", real_backends())


def on(run: Tuner, target: str, name: str, *options: str, stdin: str = "") -> Done:
    path = "-" if stdin else str(EXAMPLES / f"{name}.mlir")
    return run("run", path, "--target", target, *options, stdin=stdin)


def test_a_program_on_the_simulator_is_traced_checked_and_compared(run: Tuner) -> None:
    done = on(run, "simulator", "gpux_own_streams", "--trace", "--compare")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert sum(line.startswith("call    launch scale grid 4x1x1 block 32x1x1") for line in lines) == 2
    assert "ran     @main on simulator:sm_90, 3 streams" in lines
    assert "work    2 launches, 1024 bytes to the device, 1024 back" in lines
    assert sum(line.startswith("equal   argument") for line in lines) >= 2
    assert lines[-1] == "checked 0 defects; no times: the simulator has no clock"


@pytest.mark.slow
def test_the_same_as_json_and_fusions_are_counted_with_and_without(run: Tuner) -> None:
    done = on(run, "simulator", "gpux_users_stream", "--json", "--order", "lifo")
    assert done.code == 0, done.err
    assert (done.json["right"], done.json["streams"], done.json["reports"]) == (True, 1, [])
    assert (done.json["times"], done.json["trace"], done.json["comparisons"]) == (None, None, None)
    work = done.json["work"]
    assert (work["launches"], work["copied_in_bytes"], work["copied_out_bytes"]) == (1, 512, 512)
    done = on(run, "simulator", "softmax", "--compare")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "work    1 launch, 15360 bytes to the device, 15360 back" in lines
    assert "before  6 launches, 15360 bytes to the device, 15360 back, without fusions" in lines
    document = on(run, "simulator", "softmax", "--json").json
    assert (document["work"]["launches"], document["work_without_groups"]["launches"]) == (1, 6)
    (fusion,) = document["groups"]
    assert (fusion["kind"], fusion["reason"]) == ("rows", None)
    assert (document["resident_bytes"], document["why_no_groups"]) == (0, None)


@pytest.mark.slow
def test_a_program_on_the_host_is_timed_and_a_sample_reports_its_share(run: Tuner) -> None:
    done = on(run, "cpu", "async_matmul", "--compare", "--json")
    assert done.code == 0, done.err
    assert done.json["times"]["call_s"] > 0
    assert done.json["work"] is None  # no device
    assert done.json["problems"] == ["matmul 84x84x32 f32 nn none"]
    (comparison,) = done.json["comparisons"]
    assert (comparison["name"], comparison["equal"]) == ("argument 2", True)
    done = on(run, "simulator", "-", "--sample", "4", stdin=BIG)
    assert done.code == 0
    line = r"equal   f_kernel: 6 of 32 blocks, 1536 elements against the interpreter: error \S+, allowed \S+"
    assert re.search(line, done.out)
    (sample,) = json.loads(on(run, "simulator", "-", "--sample", "4", "--json", stdin=BIG).out)["samples"]
    assert (sample["blocks"], sample["simulated"], sample["elements"]) == (32, 6, 1536)
    assert sample["comparison"]["equal"]
    assert json.loads(on(run, "simulator", "-", "--json", stdin=BIG).out)["samples"] is None


@pytest.mark.slow
@pytest.mark.parametrize("target", ["simulator", "cpu"])
@pytest.mark.parametrize("name", ["matmul_gelu", "rms_norm", "softmax"])
def test_programs_with_math_give_the_same_as_loops_on_the_host(run: Tuner, name: str, target: str) -> None:
    done = on(run, target, name, "--compare")
    assert done.code == 0, done.err
    assert "equal   result 0: error " in done.out


@pytest.mark.slow
def test_arguments_come_by_options_and_what_a_kernel_prints_comes_first(run: Tuner) -> None:
    done = on(run, "cpu", "-", stdin="func.func @f(%x: f32, %n: index) -> index { return %n : index }")
    assert done.code == 2
    assert "argument 1: a value of type index is missing; for example --arg 1=7" in done.err
    done = on(run, "cpu", "-", stdin=PRINT)
    assert done.out.startswith("thread 0\nthread 1\nran     @f on cpu")


@pytest.mark.slow
def test_work_that_nothing_orders_ends_with_1(run: Tuner) -> None:
    text = (EXAMPLES / "gpux_own_streams.mlir").read_text()
    raced = text.replace('"gpux.memcpy"(%s1, %x1, %b)', '"gpux.memcpy"(%s0, %x1, %b)')
    assert raced != text
    done = on(run, "simulator", "-", stdin=raced)
    assert done.code == 1
    assert "found   " in done.out
    assert "checked 0 defects" not in done.out


@pytest.mark.slow
def test_a_kernel_with_a_barrier_is_interpreted_so_it_is_compared_and_has_no_times(run: Tuner) -> None:
    done = on(run, "simulator", "-", "--compare", stdin=BARRIER)
    assert done.code == 0
    assert "equal   argument 0: error 0, allowed " in done.out
    done = on(run, "cpu", "-", stdin=BARRIER)
    assert done.code == 0
    assert "time    " not in done.out
    assert "no times: kernels whose threads wait or share memory are interpreted" in done.out
    assert json.loads(on(run, "cpu", "-", "--json", stdin=BARRIER).out)["times"] is None


PRINT = text_beside(__file__, "PRINT")
BIG = """func.func @f(%a: memref<32x256xf32>, %b: memref<32x256xf32>) {
  linalg.exp ins(%a : memref<32x256xf32>) outs(%b : memref<32x256xf32>)
  return
}"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--form", "async"), "form: found 'async', allowed streams, tokens, sync"),
        (("--order", "best"), "order: found 'best', allowed fifo, lifo, random"),
        (("--seed", "-1"), "seed: found -1, allowed 0 or more"),
        (("--sample", "-1"), "sample: found -1, allowed 1 or more, or 0 for all"),
        (("--sample", "4"), "sample 4 cannot be combined with target cpu, only with simulator"),
        (("--target", "tpu"), "target: found 'tpu', allowed auto, cpu"),
        (("--entry", "g"), "payload: entry: found 'g', allowed main"),
        (("--trace",), "trace cannot be combined with target cpu, only with cuda, simulator"),
        (("--pinned",), "pinned cannot be combined with target cpu, only with cuda, simulator"),
        (("--form", "sync"), "form sync cannot be combined with target cpu, only with cuda, simulator"),
        (("--order", "lifo"), "order lifo cannot be combined with target cpu, only with simulator"),
    ],
)
def test_words_that_are_wrong_end_with_2(run: Tuner, options: tuple[str, ...], message: str) -> None:
    assert message in run.refused("run", str(EXAMPLES / "two_matmuls.mlir"), "--target", "cpu", *options)


def test_a_file_that_is_not_there_ends_with_2(run: Tuner) -> None:
    done = run("run", "none.mlir", "--target", "cpu")
    line = "none.mlir: cannot be read (No such file or directory), expected MLIR text"
    assert (done.code, done.err) == (2, f"error: {line}\n")


class Noticed(io.StringIO):
    """A stream that tells when a line was written."""

    def __init__(self) -> None:
        super().__init__()
        self.has_line = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if "\n" in text:
            self.has_line.set()
        return written


def test_a_program_that_takes_long_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = Noticed()
    monkeypatch.setattr(sys, "stderr", printed)
    with noting_slowness(Path("chain.mlir"), "a\nb", after_s=0.0):
        assert printed.has_line.wait(60)
    assert printed.getvalue() == "note: chain.mlir: 2 lines; still at work, for 600 s at most\n"
    with noting_slowness(Path("chain.mlir"), "a", after_s=3600):
        pass
    assert printed.getvalue().count("note") == 1


# ``tuner lower``: text, files, documents, and one line for errors.

OWN_STREAM = str(Path(__file__).parents[3] / "examples" / "gpux_own_streams.mlir")
COPY = text_beside(__file__, "COPY")


@pytest.mark.slow
def test_the_text_and_nothing_else_is_printed(run: Tuner) -> None:
    done = run("lower", "-", "--to", "device-memory", stdin=COPY)
    assert done.code == 0, done.err
    assert done.out.startswith("module")
    assert done.out.endswith("}\n")
    assert "gpu.memcpy" in done.out
    assert done.err == ""


@pytest.mark.slow
def test_a_file_and_a_document_with_the_text(run: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "out.ptx"
    done = run("lower", "-", "--to", "ptx", "--chip", "sm_80", "-o", str(file), "--json", stdin=COPY)
    assert done.code == 0, done.err
    assert done.json == {"entry": "f", "chip": "sm_80", "to": "ptx", "file": str(file)}
    assert ".target sm_80" in file.read_text()
    done = run("lower", "-", "--to", "gpux", "--json", stdin=COPY)
    assert done.code == 0, done.err
    assert '"gpux.create_stream"' in done.json["text"]
    assert (done.json["to"], done.json["chip"]) == ("gpux", "sm_90")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ("--to", "async", "--form", "sync"),
            "--form cannot be combined with --to async, only with llvm, ptx",
        ),
        (("--to", "llvm", "--form", "graph"), "form: found 'graph', allowed streams, tokens, sync"),
        (("--to", "nvvm"), "'nvvm' is not one of"),
        (("--to", "ptx", "--chip", "sm_1"), "chip: found 'sm_1', allowed sm_80"),
        (("--to", "async", "--entry", "g"), "entry: found 'g', allowed f"),
    ],
)
def test_a_wrong_word_is_one_line(run: Tuner, options: tuple[str, ...], line: str) -> None:
    assert line in run.refused("lower", "-", *options, stdin=COPY)


@pytest.mark.slow
def test_a_form_without_meaning_and_no_place_to_write_are_refused(run: Tuner, tmp_path: Path) -> None:
    assert "form='tokens' cannot be combined with a program that names its streams (GPUX)" in run.refused(
        "lower", OWN_STREAM, "--to", "llvm", "--form", "tokens"
    )
    assert "out.mlir: cannot be written: No such file or directory" in run.refused(
        "lower", "-", "--to", "device-memory", "-o", str(tmp_path / "none" / "out.mlir"), stdin=COPY
    )
