"""``tuner run`` on the examples and on programs that are wrong, some in child processes as for users."""

import io
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Tuner, require, require_fields
from tests.support.gpu_trials import configuration, store_gpu_trial
from tests.texts import text_beside
from tuner.core.matmul import Matmul
from tuner.db.store import Store
from tuner.gpu.interpreter import host_functions
from tuner.models import service
from tuner.models.commands.ran import noting_slowness
from tuner.models.request import ProgramRequest
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.gpu.lowering.device")

EXAMPLES = Path(__file__).parents[3] / "examples"
BARRIER = text_beside(__file__, "BARRIER")


@pytest.fixture
def run(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", real_backends())


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles and runs programs here: a child that loads the compilers takes a second to start."""

    def call(_name: str, work: Callable[[], object], _timeout_s: float, **_options: object) -> object:
        return work()

    def call_after_compiling(
        work: Callable[..., object], request: ProgramRequest, _timeout_s: float
    ) -> object:
        return work(request)

    monkeypatch.setattr(service, "call_in_child", call)
    monkeypatch.setattr(service, "in_compiling_child", call_after_compiling)


def on(run: Tuner, target: str, name: str, *options: str, stdin: str = "") -> Done:
    path = "-" if stdin else str(EXAMPLES / f"{name}.mlir")
    return run.done("run", path, "--target", target, *options, stdin=stdin)


VECTORIZED = """module attributes {transform.with_named_sequence} {
  func.func @main(%m: memref<8xi32>) {
    affine.for %j = 0 to 6 {
      %v = affine.load %m[%j] : memref<8xi32>
      %w = arith.addi %v, %v : i32
      affine.store %w, %m[%j] : memref<8xi32>
    }
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %g = transform.apply_registered_pass "affine-super-vectorize"
      with options = { "virtual-vector-size" = [4] } to %f : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


@pytest.mark.usefixtures("in_this_process")
def test_a_schedule_in_the_file_of_its_program_is_compared_by_default(run: Tuner) -> None:
    """Issue 218120 of llvm-project: the pass doubles two elements that the loop leaves."""
    done = run("run - --target cpu --arg", "0=range", stdin=VECTORIZED)
    assert done.code == 1
    require(done.out.splitlines(), "against the text as written, before any pass")
    assert "WRONG   argument 0" in done.out
    assert done.err == "hint: its schedule changes what it computes: tuner apply -\n"
    whole = VECTORIZED.replace("0 to 6", "0 to 8")
    document = run.done("run - --target cpu --json", stdin=whole).json
    assert (document["comparisons"][0]["equal"], document["not_compared"]) == (True, None)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_a_large_program_with_a_wrong_schedule_says_that_it_was_not_compared_and_how_to(
    run: Tuner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loops that --compare runs instead are those of the text before the schedule."""
    monkeypatch.setattr(host_functions, "OPERATIONS_LIMIT", 4)
    why = "it executes more than 4 operations"
    done = run.done("run - --target cpu --arg", "0=range", stdin=VECTORIZED)
    note = f"note    not compared with the text before its schedule: {why}; --compare compares with loops"
    require(done.out.splitlines(), note)
    done = run("run - --target cpu --compare --arg", "0=range", stdin=VECTORIZED)
    assert (done.code, "WRONG   argument 0" in done.out) == (1, True)
    assert f"against the payload as loops on the host, by MLIR's passes (not as written: {why})" in done.out


def test_a_script_is_not_run_as_a_program(run: Tuner, tmp_path: Path) -> None:
    script = tmp_path / "schedule.mlir"
    script.write_text("// func.func @none\nmodule attributes {transform.with_named_sequence} {}\n")
    line = f"error: {script}: is a transform script, not a program: it has no function\n"
    assert run.refused("run", str(script)) == f"{line}hint: tuner apply {script} PROGRAM.mlir\n"


def test_a_python_file_is_run_by_the_name_of_a_function(run: Tuner, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text("# a model\n")
    assert f"hint: {model}:FUNCTION, which returns" in run.refused("run", str(model))


def test_a_program_on_the_simulator_is_traced_checked_and_compared(run: Tuner) -> None:
    lines = on(run, "simulator", "gpux_own_streams", "--trace", "--compare").out.splitlines()
    assert sum(line.startswith("call    launch scale grid 4x1x1 block 32x1x1") for line in lines) == 2
    work = "work    2 launches, 1024 bytes to the device, 1024 back"
    require(lines, "ran     @main on simulator:sm_90, creates 3 streams", work)
    assert sum(line.startswith("equal   argument") for line in lines) >= 2
    assert lines[-1] == "checked 0 defects; no times: the simulator has no clock"


def test_a_program_whose_code_creates_its_streams_is_not_said_to_create_none(
    run: Tuner, tmp_path: Path
) -> None:
    program = tmp_path / "twice.mlir"
    twice = "func.func @main(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"
    program.write_text(f"!t = tensor<64xf32>\n{twice}\n")
    options = ("--target", "simulator", "--trace", "--form", "tokens")
    lines = run.done("run", str(program), *options).out.splitlines()
    require(lines, "call    create stream -> s0", "ran     @main on simulator:sm_90")


@pytest.mark.slow
def test_the_same_as_json_and_fusions_are_counted_with_and_without(run: Tuner) -> None:
    document = on(run, "simulator", "gpux_users_stream", "--json", "--order", "lifo").json
    require_fields(document, right=True, streams=1, reports=[], times=None, trace=None, comparisons=None)
    require_fields(document["work"], launches=1, copied_in_bytes=512, copied_out_bytes=512)
    lines = on(run, "simulator", "softmax", "--compare").out.splitlines()
    before = "before  6 launches, 15360 bytes to the device, 15360 back, without fusions"
    require(lines, "work    1 launch, 15360 bytes to the device, 15360 back", before)
    document = on(run, "simulator", "softmax", "--json").json
    assert (document["work"]["launches"], document["work_without_fusions"]["launches"]) == (1, 6)
    (fusion,) = document["fusions"]
    require_fields(fusion, kind="rows", reason=None)
    require_fields(document, resident_bytes=0, why_no_fusions=None)


@pytest.mark.usefixtures("in_this_process")
def test_a_program_on_the_host_is_timed_and_a_sample_reports_its_share(run: Tuner) -> None:
    document = on(run, "cpu", "async_matmul", "--compare", "--json").json
    assert document["times"]["call_s"] > 0
    require_fields(document, work=None, problems=["matmul 84x84x32 f32 nn none"])  # no device
    (comparison,) = document["comparisons"]
    require_fields(comparison, name="argument 2", equal=True)
    line = r"equal   f_kernel: 6 of 32 blocks, 1536 elements against the interpreter: error \S+, allowed \S+"
    assert re.search(line, on(run, "simulator", "-", "--sample", "4", stdin=BIG).out)


@pytest.mark.slow
def test_a_sample_is_in_json_and_a_whole_launch_has_none(run: Tuner) -> None:
    (sample,) = on(run, "simulator", "-", "--sample", "4", "--json", stdin=BIG).json["samples"]
    require_fields(sample, blocks=32, simulated=6, elements=1536)
    assert sample["comparison"]["equal"]
    assert on(run, "simulator", "-", "--json", stdin=BIG).json["samples"] is None


@pytest.mark.slow
@pytest.mark.parametrize("target", ["simulator", "cpu"])
@pytest.mark.parametrize("name", ["matmul_gelu", "rms_norm", "softmax"])
def test_programs_with_math_give_the_same_as_loops_on_the_host(run: Tuner, name: str, target: str) -> None:
    assert "equal   result 0: error " in on(run, target, name, "--compare").out


@pytest.mark.slow
def test_arguments_come_by_options_and_what_a_kernel_prints_comes_first(run: Tuner) -> None:
    program = "func.func @f(%x: f32, %n: index) -> index { return %n : index }"
    missing = "argument 1: a value of type index is missing; for example --arg 1=7"
    assert missing in run.refused("run - --target cpu", stdin=program)
    assert on(run, "cpu", "-", stdin=PRINT).out.startswith("thread 0\nthread 1\nran     @f on cpu")


@pytest.mark.slow
def test_work_that_nothing_orders_ends_with_1(run: Tuner) -> None:
    text = (EXAMPLES / "gpux_own_streams.mlir").read_text()
    raced = text.replace('"gpux.memcpy"(%s1, %x1, %b)', '"gpux.memcpy"(%s0, %x1, %b)')
    assert raced != text
    done = run.failed("run - --target simulator", stdin=raced)
    require(done.out, "found   ", without="checked 0 defects")


@pytest.mark.slow
def test_a_kernel_with_a_barrier_is_interpreted_so_it_is_compared_and_has_no_times(run: Tuner) -> None:
    compared = on(run, "simulator", "-", "--compare", stdin=BARRIER).out
    assert "equal   argument 0: error 0, allowed " in compared
    why = "no times: kernels whose threads wait or share memory are interpreted"
    require(on(run, "cpu", "-", stdin=BARRIER).out, why, without="time    ")
    assert on(run, "cpu", "-", "--json", stdin=BARRIER).json["times"] is None


PRINT, BIG = (text_beside(__file__, name) for name in ("PRINT", "BIG"))


def test_words_that_are_wrong_end_with_2(run: Tuner) -> None:
    for options, message in (
        ("--form async", "form: found 'async', allowed streams, tokens, sync"),
        ("--sample -1", "sample: found -1, allowed 1 or more, or 0 for all"),
        ("--sample 4", "sample 4 cannot be combined with target cpu, only with simulator"),
        ("--trace", "trace cannot be combined with target cpu, only with cuda, simulator"),
    ):
        assert message in run.refused(f"run --target cpu {options}", str(EXAMPLES / "two_matmuls.mlir"))


class Noticed(io.StringIO):
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

COPY = text_beside(__file__, "COPY")


def test_the_text_and_nothing_else_is_printed(run: Tuner) -> None:
    done = run.done("lower - --to device-memory", stdin=COPY)
    assert (done.out[:6], done.out[-2:], done.err) == ("module", "}\n", "")
    assert "gpu.memcpy" in done.out


@pytest.mark.usefixtures("in_this_process")
def test_a_file_and_a_document_with_the_text(run: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "out.ptx"
    done = run.done("lower - --to ptx --chip sm_80 -o", str(file), "--json", stdin=COPY)
    assert done.json == {"entry": "f", "chip": "sm_80", "to": "ptx", "file": str(file)}
    assert ".target sm_80" in file.read_text()
    done = run.done("lower - --to gpux --json", stdin=COPY)
    assert '"gpux.create_stream"' in done.json["text"]
    require_fields(done.json, to="gpux", chip="sm_90")


def test_a_wrong_word_is_one_line(run: Tuner) -> None:
    for options, line in (
        ("--to async --form sync", "--form cannot be combined with --to async, only with llvm, ptx"),
        ("--to ptx --chip sm_1", "chip: found 'sm_1', allowed sm_80"),
        ("--to async --entry g", "entry: found 'g', allowed f"),
    ):
        assert line in run.refused(f"lower - {options}", stdin=COPY)
    for option in (
        "--dtype bf16",
        "--math tf32",
        "--target gpu",
        "--chip sm_90",
        "--strategy a",
        "--threads 2",
    ):
        refused = run.refused(f"lower --trial 1 {option}")
        assert f"{option.split()[0]} cannot be combined with a trial, 1" in refused


@pytest.mark.slow
def test_a_form_without_meaning_and_no_place_to_write_are_refused(run: Tuner, tmp_path: Path) -> None:
    refused = run.refused("lower --to llvm --form tokens", str(EXAMPLES / "gpux_own_streams.mlir"))
    assert "form='tokens' cannot be combined with a program that names its streams (GPUX)" in refused
    file = str(tmp_path / "none" / "out.mlir")
    refused = run.refused("lower - --to device-memory -o", file, stdin=COPY)
    assert "out.mlir: cannot be written: No such file or directory" in refused
    script = tmp_path / "schedule.mlir"
    script.write_text("module attributes {transform.with_named_sequence} {}")
    assert "is a transform script, not a program" in run.refused("lower --to ptx", str(script))


# ``tuner lower OPERATION``: the stages of an operation's script, untuned or of a trial.

ROWS = text_beside(__file__, "ROWS")


@pytest.mark.slow
def test_an_untuned_operation_has_its_text_after_each_stage(run: Tuner) -> None:
    done = run.done("lower matmul 16x32x8 --target cpu --json")
    stages = done.json["stages"]
    assert list(stages)[:5] == ["source", "script", "payload", "loops", "code"]
    require(stages["source"], "linalg.matmul", "memref<16x8xf32>")
    require(stages["payload"], "vector.", "memref<16x8xf32>")
    require(stages["loops"], "scf.for")
    require(stages["code"], "llvm.func @matmul")
    assert "linalg.matmul" not in stages["payload"]
    assert "matmul 16x32x8 f32 nn none: matmul_cpu_" in done.err
    printed = run.done("lower matmul 16x32x8 --target cpu").out
    assert re.findall(r"^// ----- (\w+)$", printed, re.MULTILINE) == list(stages)
    assert run.done("lower matmul 16x32x8 --target cpu --to loops").out.strip() == stages["loops"].strip()


@pytest.mark.slow
def test_a_schedule_that_fails_shows_what_came_before(run: Tuner, tmp_path: Path) -> None:
    script = tmp_path / "rows.mlir"
    script.write_text(ROWS)
    done = run.done("lower matmul 16x32x8 --target cpu --to payload --strategy", str(script))
    assert "vector.transfer_read" in done.out
    failing = tmp_path / "failing.mlir"
    failing.write_text(ROWS.replace("[4, 16, 4]", "[5, 16, 4]"))
    refused = run("lower matmul 16x32x8 --target cpu --strategy", str(failing))
    assert refused.code == 1
    assert re.findall(r"^// ----- (\w+)$", refused.out, re.MULTILINE) == ["source", "script"]
    assert "error: apply: linalg.matmul at payload" in refused.err.splitlines()[-1]
    refused = run("lower matmul 16x32x8 --target cpu --to loops --strategy", str(failing))
    assert (refused.code, refused.out) == (1, "")
    assert "error: --to loops: apply: linalg.matmul at payload" in refused.err


def test_options_of_a_program_and_of_an_operation_are_not_mixed(run: Tuner) -> None:
    for options, line in (
        ("", "lower: the program or the operation is missing"),
        ("matmul", "lower: the shape is missing"),
        ("matmul 8x8x8 --pinned", "--pinned cannot be combined with an operation, matmul"),
        ("matmul 8x8x8 --to gpux", "--to: found 'gpux', allowed here source, script, payload, loops"),
        ("matmul 8x8x8 --trial 1", "--trial cannot be combined with matmul"),
        ("p.mlir --dtype f64 --to ptx", "--dtype cannot be combined with a program, p.mlir"),
        ("p.mlir", "lower: --to is missing"),
        ("p.mlir --to loops", "--to: found 'loops', allowed here device-memory, async"),
    ):
        assert line in run.refused(f"lower {options}".strip())


@pytest.mark.usefixtures("in_this_process")
def test_a_program_on_a_gpu_says_which_kernels_came_from_the_database(run: Tuner) -> None:
    problem = Matmul(84, 84, 32)
    chosen = configuration(problem, 1)
    with Store.open(str(run.database)) as store:
        trial = store_gpu_trial(store, problem, chosen)
    line = f"matmul  {problem.key}: tuned, {chosen[0].strategy} of trial {trial}"
    done = on(run, "simulator", "async_matmul", "--compare")
    require(done.out, line, "equal", "checked 0 defects")
    (kernel,) = on(run, "simulator", "async_matmul", "--json").json["tuned"]
    knobs = dict(chosen[0].choices)
    assert kernel["knobs"] == knobs
    assert (kernel["problem"], kernel["origin"], kernel["trial"]) == (problem.key, "tuned", trial)
    text = run.done("lower", str(EXAMPLES / "async_matmul.mlir"), "--to", "ptx")
    require(text.err, line)
    other = run.done("lower", str(EXAMPLES / "async_matmul.mlir"), "--to", "ptx", "--chip", "sm_80")
    assert other.err == ""
