"""Small modules are drawn from a seed, checked against eager, and what must not be has its own outcome."""

import json
import os
import sys
from pathlib import Path

import pytest

from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.runtime.workers.protocol import ServiceSpec
from tuner.runtime.workers.worker import Worker

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="needs expecttest, which PyTorch's samples import")
arguments = pytest.importorskip("benchmarks.op_corpus.small_modules.arguments")
checking = pytest.importorskip("benchmarks.op_corpus.small_modules.checking")
drawn_small_modules = pytest.importorskip("benchmarks.drawn_small_modules")
families = pytest.importorskip("benchmarks.op_corpus.small_modules.families")
module_text = pytest.importorskip("benchmarks.op_corpus.small_modules.module_text")
outcome = pytest.importorskip("benchmarks.op_corpus.outcome")
pool = pytest.importorskip("benchmarks.op_corpus.pool")

DRAWN = 3  # modules, seconds; ``python -m benchmarks.drawn_small_modules`` checks 400


def small(*body: str, dtype: str = "float32", **options: object) -> object:
    argument = arguments.ModuleArgument(
        (4,), dtype, arguments.NORMAL if dtype == "float32" else arguments.INTEGERS
    )
    module = module_text.SmallModule((argument,), body, **options)
    return families.DrawnSmallModule("power", module, families.COMPILE)


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["drawn_small_modules", *options])
    with pytest.raises(SystemExit) as ended:
        drawn_small_modules.main()
    return int(ended.value.code or 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_drawn_small_modules_are_right_or_refused_in_one_line(seed: int) -> None:
    numbers = range(seed * DRAWN, (seed + 1) * DRAWN)
    found = {number: checking.checked_small_module(number, seed=37) for number in numbers}
    assert {number: each for number, each in found.items() if each.kind in outcome.BAD} == {}


def test_a_module_is_the_same_whenever_it_is_drawn_and_eager_runs_most() -> None:
    numbers = range(5 * len(families.FAMILIES))
    modules = [families.drawn(number, seed=37) for number in numbers]
    assert modules == [families.drawn(number, seed=37) for number in numbers]
    assert modules != [families.drawn(number, seed=38) for number in numbers]
    assert {module.family for module in modules} == set(families.FAMILIES)
    assert {module.way for module in modules} == set(families.WAYS)
    runs = [
        checking.eager_error(each.module.module(), checking.argument_tuples(each.module)["plain"])
        for each in modules
    ]
    assert sum(not error for error in runs) > 0.9 * len(runs)


def test_arguments_have_the_special_numbers_and_sizes_that_are_asked_for() -> None:
    argument = arguments.ModuleArgument((6, 9), "float32", dynamic=0)
    assert torch.equal(argument.tensor(3), argument.tensor(3))
    assert argument.of_size(2).tensor(3).shape == (2, 9)
    assert argument.tensor(3, arguments.NAN).isnan().any()
    assert argument.tensor(3, arguments.INF).isinf().any()
    assert argument.tensor(3, arguments.LARGE).abs().max() > 1e4
    subnormal = argument.tensor(3, arguments.SUBNORMAL).abs().min()
    assert 0 < subnormal < torch.finfo(torch.float32).tiny
    ends = arguments.ModuleArgument((200,), "int16", arguments.ENDS).tensor(3)
    assert (ends.min(), ends.max()) == (-(2**15), 2**15 - 1)
    for values in arguments.VALUES:
        argument = arguments.ModuleArgument((3,), "float64", values, limit=4)
        assert argument.tensor(3).isfinite().all(), values


@pytest.mark.parametrize(
    ("drawn", "kind", "reason"),
    [
        (small("return x ** 2", specials=(arguments.NAN, arguments.INF)), "right", ""),
        (small("x.mul_(2)", "return x + 1"), "right", ""),
        (small("return F.dropout(x)"), "refused", "it draws random numbers"),
        (small("return x.reshape(7)"), "no sample", "eager: RuntimeError"),
        (
            small("x = x.clone() if torch.compiler.is_compiling() else x", "return x.zero_()"),
            "wrong",
            "changed",
        ),
        (small("return x + (1 if torch.compiler.is_compiling() else 2)"), "wrong", "plain: result 0: found"),
    ],
)
def test_what_becomes_of_a_small_module(drawn: object, kind: str, reason: str) -> None:
    found = checking.outcome_of_small(drawn)
    assert (found.kind, "\n" in found.reason) == (kind, False)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UsageError("the operator is not supported", "convert it"), "refused"),
        (UsageError("torch-mlir refuses the module: killed by SIGSEGV"), "crash"),
        (CandidateError(Stage.COMPILE, "timed out after 60 s"), "hang"),
        (UsageError("defect: IndexError: index out of range"), "traceback"),
        (UsageError("payload: function 'program' calls what the JIT cannot resolve"), "traceback"),
        (UsageError("Traceback:\n  File"), "traceback"),
        (IndexError("index out of range"), "traceback"),
    ],
)
def test_a_refusal_that_reports_a_crash_or_a_defect_is_none(error: Exception, kind: str) -> None:
    def refused() -> str:
        raise error

    found = outcome.of_compared(refused)
    assert (found.kind, str(error).split("\n")[0] in found.reason) == (kind, True)


def test_a_process_that_crashes_is_an_outcome_and_the_next_module_is_checked() -> None:
    rows: list[object] = []

    def check(worker: Worker, _task: int) -> object:
        return pool.asked(worker)

    pool.all_checked([1, 2], ServiceSpec("small module", os.abort), check, rows.append, jobs=1, limit_s=60.0)
    assert [row.kind for row in rows] == ["crash", "crash"]  # type: ignore[attr-defined]


def test_a_stopped_command_goes_on_and_what_is_wrong_is_its_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept.jsonl"
    table = tmp_path / "table.json"
    options = ("--kept", str(kept), "--modules", "2", "--jobs", "1")
    assert run(monkeypatch, *options, "--limit-s", "0") == 0
    assert "0 modules are kept, 2 are left" in capsys.readouterr().err
    for number, kind in ((0, "right"), (1, "wrong")):
        row = drawn_small_modules.row_of(number, 0, outcome.OpOutcome(kind, "found 1"))
        drawn_small_modules.keep_row(kept, row)
    with kept.open("a") as file:
        file.write('{"module": 2, "fam')  # where it was killed
    assert run(monkeypatch, *options, "--output", str(table)) == 1
    assert "2 modules are kept, 0 are left" in capsys.readouterr().err
    assert run(monkeypatch, *options, "--again", "--limit-s", "0") == 0
    assert "1 modules are kept, 1 are left" in capsys.readouterr().err
    document = json.loads(table.read_text())
    assert [row["module"] for row in document["rows"]] == [1]
    assert "class Module" in document["rows"][0]["text"]
    assert document["summary"]["by_outcome"] == {"right": 1, "wrong": 1}
