"""Models on the command line: a function of a file of Python, a file of torch.export."""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tuner.cli.options import is_model
from tuner.core.candidate import TargetName
from tuner.core.errors import UsageError
from tuner.mlir.ir.resources import ConstantsFile, split_payload
from tuner.models.model_files import baselines, model_text, read_model
from tuner.models.request import ProgramRequest
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

MODEL = """
import torch

def linear():
    torch.manual_seed(0)
    return torch.nn.Linear(16, 8).eval(), torch.ones(4, 16)

def nothing():
    return 3

def fails():
    raise KeyError("no weights")
"""

OWN_CLASS = """
from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import get_type_hints

import torch

SCALE = 2.0

@dataclass
class Config:
    width: int = 16

class Gate(torch.nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(config.width, config.width)

    def forward(self, x):
        return scaled(self.linear(x)) * x

def scaled(x):
    return torch.sigmoid(x) * SCALE

def gate():
    assert get_type_hints(Config) == {"width": int}
    return pickle.loads(pickle.dumps(Gate(Config()).eval())), (torch.ones(4, 16),)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path / "model.py"


@pytest.fixture
def imports(tmp_path: Path) -> Iterator[None]:
    """Takes back what a test has imported from its folder, and the folder from the search path."""
    yield
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]
    for name, module in tuple(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_names_of_models_are_known() -> None:
    assert all(map(is_model, ("m.py:f", "a/m.pt2")))
    assert not any(map(is_model, ("m.py", "m.mlir", "m.py:f()", "-")))


@pytest.mark.slow
def test_a_function_of_a_file_is_run_and_explained(model: Path, tmp_path: Path) -> None:
    run = Tuner(tmp_path / "results.db", real_backends())
    done = run("run", f"{model}:linear", "--target", "cpu", "--compare", "--explain", "--json")
    assert done.code == 0, done.err
    assert done.json["right"]
    (fusion,) = done.json["fusions"]
    expected = {"kind": "contraction", "strategy": "contraction_cpu_packed", "origin": "first"}
    assert fusion.items() >= expected.items()
    assert fusion["share"] == (1 if fusion["reliability"] == "reliable" else None)
    assert fusion["roofline"] is None or 0 < fusion["roofline"] < 1


@pytest.mark.slow
def test_a_tuned_model_is_timed_next_to_eager_and_a_resumed_one_again(model: Path, tmp_path: Path) -> None:
    run = Tuner(tmp_path / "results.db", real_candidates())
    options = ("--target", "cpu", "--workers", "1", "--baseline", "eager")
    with brief_remeasurement():
        done = run("tune", f"{model}:linear", *options, "--trials", "1", "--json")
        again = run("tune", "--resume", "campaign:1", "--trials", "2")
    assert done.code == 0, done.err
    eager, *parts = done.json["baselines"]  # of fusions that are slower than their operators
    assert (eager["name"], eager["part"]) == ("eager", None)
    assert all(each["name"] == "eager" and each["part"] for each in parts)
    assert (eager["speedup"] is None) == (eager["reason"] is not None)  # on a disturbed machine
    if eager["speedup"] is not None:
        low, high = eager["speedup_interval"]
        assert 0 < low <= eager["speedup"] <= high
    assert again.code == 0, again.err
    assert "equal   result 0" in again.out
    assert "gain    " in again.out
    assert re.search(r"^eager +[\d.]+ us +(?:un)?reliable\b.*", again.out, re.MULTILINE)
    assert "baseline" in run.refused("tune", f"{model}:linear", "--baseline", "eagre")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["own.py", "math.py", "own-class.py", "v1.2.py"])
def test_classes_of_a_file_are_found_by_name_as_those_of_an_imported_module(
    tmp_path: Path, imports: None, name: str
) -> None:
    (tmp_path / name).write_text(OWN_CLASS)
    module, (x,) = read_model(f"{tmp_path / name}:gate")
    with torch.no_grad():
        compiled = torch.compile(module, backend="eager", dynamic=False)(x)
    assert torch.equal(compiled, module(x))
    assert not list(tmp_path.glob("__pycache__"))


def test_a_file_that_fails_is_not_left_among_the_modules(tmp_path: Path, imports: None) -> None:
    (tmp_path / "half_read.py").write_text("raise KeyError('no weights')")
    with pytest.raises(UsageError, match="KeyError: 'no weights'"):
        read_model(f"{tmp_path / 'half_read.py'}:gate")
    assert "half_read" not in sys.modules


def test_without_time_left_no_baseline_is_begun_and_each_says_so(model: Path) -> None:
    request = ProgramRequest(
        "", TargetName("cpu"), model=f"{model}:fails", baselines=("eager", "torch.compile"), baselines_s=0.0
    )
    reasons = [(each.name, each.reason) for each in baselines(request)]
    assert reasons == [(name, "the budget ended before it was timed") for name in ("eager", "torch.compile")]


def test_an_exported_program_is_read(tmp_path: Path) -> None:
    program = torch.export.export(torch.nn.Linear(16, 8).eval(), (torch.ones(4, 16),))
    torch.export.save(program, tmp_path / "linear.pt2")
    with contextlib.closing(ConstantsFile()) as file:
        payload = split_payload(model_text(str(tmp_path / "linear.pt2"), file.path))
        weights = [bytes(data) for data in payload.resources.values()]
    assert "linalg.matmul" in payload.text
    assert program.state_dict["weight"].detach().numpy().tobytes() in weights


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("missing", "model.py: has no function 'missing'$"),
        ("nothin", "model.py: has no function 'nothin'; did you mean nothing\\?"),
        ("nothing", r"model.py:nothing: must return \(module, example inputs\)"),
        ("fails", "model.py:fails: KeyError: 'no weights'"),
    ],
)
def test_a_wrong_function_is_named(model: Path, function: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model_text(f"{model}:{function}", "")


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "wrong.pt2").write_text("nothing")
    with pytest.raises(UsageError, match=r"wrong\.pt2: \w+: "):
        model_text(str(tmp_path / "wrong.pt2"), "")
    with pytest.raises(UsageError, match="cannot be read \\(No such file"):
        model_text(str(tmp_path / "none.pt2"), "")
