"""tuner.torch.compile: modules equal eager mode; what does not fit is refused in one line.

torch-mlir runs in a child process: a crash is a refusal, and weights are never sent there.
"""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tuner
from tests.cli.real import brief_remeasurement
from tests.texts import text_beside
from tuner.core.errors import UsageError
from tuner.db.store import Store

pytestmark = pytest.mark.mlir

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402 - after the skip

import tuner.torch  # noqa: E402
from tests.models.exports.export import Function  # noqa: E402
from tuner.models.mlir.torch_dialect import first_line  # noqa: E402
from tuner.models.run.fused_program import FusedFunction  # noqa: E402
from tuner.models.torch.export import export_module  # noqa: E402
from tuner.models.torch.lowering import lower_in_child, lower_in_process  # noqa: E402
from tuner.models.torch.program import TensorProgram  # noqa: E402


def mlp() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()


X = torch.linspace(-2, 2, 64).reshape(4, 16)


Compiled = tuple[Any, TensorProgram]  # a module and its program


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    module = mlp()
    return module, tuner.torch.compile(module, (X,))


equal = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_module_gives_what_it_gives_in_eager_mode_for_other_layouts_too(compiled: Compiled) -> None:
    module, program = compiled
    with torch.no_grad():
        equal(program(X), module(X))
        first = program(X)
        equal(program(-X), module(-X))
        equal(first, module(X))  # it is held, so the second call has not written there
        equal(program(X.t().contiguous().t()), module(X))
    assert program.why_no_fusions == ""
    assert isinstance(program.function, FusedFunction)
    assert {each.strategy for each in program.function.code.fusions} == {"contraction_cpu_packed"}


@pytest.mark.slow
def test_results_share_memory_with_no_result_that_is_held(compiled: Compiled) -> None:
    _, program = compiled
    view = program(X)[1:].t()
    before = view.clone()
    program(-X)
    assert torch.equal(view, before)
    del view
    gc.collect()
    assert len({program(X).data_ptr() for _ in range(4)}) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[:2],), r"argument 0: found float32 of shape \(2, 16\), allowed float32 of shape \(4, 16\)"),
        ((X.double(),), r"argument 0: found float64 of shape \(4, 16\), allowed float32 of shape \(4, 16\)"),
        ((X.numpy(),), "argument 0: found ndarray, allowed a tensor"),
        ((X, X), "arguments: too many positional arguments; the module takes"),
        ((X.to("meta"),), "argument 0: found device meta, allowed cpu"),
        ((X.clone().requires_grad_(),), r"autograd is not supported: call the program under torch\.no_grad"),
    ],
)
def test_what_does_not_fit_is_named(compiled: Compiled, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compiled[1](*arguments)


def test_changed_weights_are_named_and_the_state_stays(compiled: Compiled) -> None:
    module = mlp()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    program = tuner.torch.compile(module, (X,))
    assert program.stale() == ()
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    old = program(X)
    with torch.no_grad():
        module[0].weight.add_(1)
        module[2].bias.data = torch.zeros(8)
    assert program.stale() == ("0.weight", "2.bias")
    module[2].bias.data.copy_(before["2.bias"])
    assert program.stale() == ("0.weight",)
    module[2].weight.detach().numpy()[7, 31] += 1
    assert program.stale() == ("0.weight", "2.weight")
    assert torch.equal(program(X), old)
    del module
    gc.collect()
    assert program.stale() == ()


class Several(nn.Module):
    """Takes a pair and a keyword; gives a dict with a tuple, and a constant."""

    def forward(self, pair: tuple[Any, Any], *, scale: Any) -> dict[str, Any]:
        a, b = pair
        return {"both": (a + b * scale, (a > b)), "sum": a.sum(), "number": 3}


def test_structures_go_in_and_come_out_and_bytes_of_weights_stay_here() -> None:
    pair, scale, module = (torch.randn(3, 5), torch.randn(3, 5)), torch.tensor(2.0), Several().eval()
    program = tuner.torch.compile(module, (pair,), {"scale": scale})
    found, expected = program(pair, scale=scale), module(pair, scale=scale)
    equal(found["both"][0], expected["both"][0])
    assert torch.equal(found["both"][1], expected["both"][1])
    equal(found["sum"], expected["sum"])
    assert (found["number"], found["sum"].shape) == (3, ())
    with pytest.raises(
        UsageError, match=r"arguments: too many positional arguments; the module takes \(pair, "
    ):
        program(*pair, scale=scale)
    lowered = lower_in_process(WEIGHTED)
    assert "torch" not in lowered
    assert lowered.endswith(WEIGHTED[WEIGHTED.index("\n{-#") :])


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "bfloat16"])
def test_types_of_torch_are_those_of_the_results(dtype: str) -> None:
    x = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    found = tuner.torch.compile(Function(lambda x: x + x), (x,))(x)
    assert found.dtype == x.dtype
    assert torch.equal(found, x + x)


def test_an_export_runs_on_arrays_and_on_tensors(compiled: Compiled, tmp_path: Path) -> None:
    _, program = compiled
    program.export(tmp_path / "mlp")
    assert np.array_equal(tuner.load(tmp_path / "mlp")(X.numpy()), program(X).numpy())
    loaded = tuner.torch.load(tmp_path / "mlp")
    assert torch.equal(loaded(X), program(X))
    assert loaded.stale() == ()


@pytest.mark.slow
def test_an_exported_program_of_torch_is_compiled_and_its_changed_weights_are_named() -> None:
    module = mlp()
    exported = torch.export.export(module, (X,))
    program = tuner.torch.compile(exported)
    assert program.stale() == ()
    with torch.no_grad():
        equal(program(X), module(X))
        exported.state_dict["0.weight"].mul_(2)
    assert program.stale() == ("0.weight",)


@pytest.mark.slow
def test_threads_compile_one_after_the_other() -> None:
    start, is_traced, wrong = threading.Barrier(4), threading.Lock(), []

    class Traced(nn.Linear):
        def forward(self, x: Any) -> Any:
            if not is_traced.acquire(blocking=False):
                wrong.append("two at once")
                return x
            found = super().forward(x)
            is_traced.release()
            return found

    def compile_one() -> None:
        module = Traced(16, 3).eval()
        start.wait()
        program = tuner.torch.compile(module, (X,))
        if not torch.allclose(program(X), nn.functional.linear(X, module.weight, module.bias), atol=1e-5):
            wrong.append("result")

    with ThreadPoolExecutor(start.parties) as threads:
        for each in [threads.submit(compile_one) for _ in range(start.parties)]:
            each.result()
    assert wrong == []


EIGENVALUES = Function(lambda x: torch.linalg.eigh(x @ x.t())[0])
REFUSED: dict[str, tuple[Any, str]] = {
    "branches": (Function(lambda x: x if x.sum() > 0 else -x), r"^torch\.export refuses the module: [^\n]+$"),
    "operation": (
        EIGENVALUES,
        r"^operators that are not supported: aten\._?linalg_eigh at [^ ]+:\d+ \([^\n]+\)$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_is_refused_is_one_line(name: str) -> None:
    module, message = REFUSED[name]
    with pytest.raises(UsageError, match=message):
        tuner.torch.compile(module, (X,))


def test_dynamic_sizes_widened_integers_and_what_does_not_lower_are_refused_in_one_line() -> None:
    dynamic = torch.export.export(mlp(), (X,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    with pytest.raises(UsageError, match="the module has dynamic sizes: only static ones are supported"):
        tuner.torch.compile(dynamic)
    with pytest.raises(UsageError, match=r"aten\.neg \(it would compute integers as floats\)$"):
        lower_in_process(NEGATED)
    assert "arith.sitofp" in lower_in_process(NEGATED.replace("integers ", ""))  # torch-mlir alone is wrong
    with pytest.raises(UsageError, match=r"^torch-mlir refuses the module: error: [^\n]+$"):
        lower_in_process(NEGATED.replace("torch.aten.neg", "torch.aten.no_such"))
    lines = "Could not guard on Eq(u0, 1)\n\nThe following call raised this error:\n  if x.sum() > 0:"
    assert first_line(RuntimeError(lines)) == "Could not guard on Eq(u0, 1)"


def test_a_program_that_is_no_fusions_runs_and_is_not_exported(tmp_path: Path) -> None:
    function: Any = tuner.compile_program(text_beside(__file__, "PADDED"), target="cpu")
    program = TensorProgram(function, export_module(mlp(), (X,)).form)
    equal(program(X), 6 * X)
    assert "control flow" in program.why_no_fusions
    with pytest.raises(UsageError, match="only a program of fusions is exported: control flow"):
        program.export(tmp_path / "whole")


def test_a_module_that_is_compiled_as_a_whole_says_so_and_why() -> None:
    line = r"^Function: compiled as a whole, without schedules: .* tensor<3x0xf32> has no elements$"
    module = Function(lambda x: x[:, :0].sum(1) + x[:, 0])
    with pytest.warns(UserWarning, match=line) as noted:
        program = tuner.torch.compile(module, (X[:3],))
    assert len(noted) == 1
    equal(program(X[:3]), X[:3, 0])


@pytest.mark.slow
def test_an_index_out_of_range_is_an_error_as_in_eager_mode_also_under_torch_compile() -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 5)

        def forward(self, i: Any, x: Any) -> tuple[Any, ...]:
            return self.table(i), x[i], torch.index_select(x, 0, i)

    module, i, x = Rows().eval(), torch.arange(8), torch.randn(9, 3)
    program = tuner.torch.compile(module, (i, x))
    for wrong in (9, -10):
        for call in (module, program):
            with pytest.raises(IndexError):
                call(i + wrong, x)
        for one, other in zip(program(i, x), module(i, x), strict=True):
            assert torch.equal(one, other)
    i = torch.tensor([0, 3, 2, 4])
    compiled: Any = torch.compile(lambda i: nn.functional.one_hot(i, 5), backend="tuner")
    assert torch.equal(compiled(i), nn.functional.one_hot(i, 5))
    with pytest.raises((IndexError, RuntimeError)):
        compiled(i + 1)


@pytest.mark.slow
def test_a_class_out_of_range_is_an_error() -> None:
    functional = nn.functional

    def both(x: Any, i: Any) -> Any:
        return functional.one_hot(i, 5), functional.nll_loss(x, i, reduction="none")

    x, i = torch.randn(4, 5).log_softmax(1), torch.tensor([0, 3, 2, 4])
    program = tuner.torch.compile(Function(both), (x, i))
    alone = tuner.torch.compile(Function(lambda i: functional.one_hot(i, 5)), (i,))
    for wrong in (i + 1, i - 1, i + 2**40):
        for call, arguments in ((program, (x, wrong)), (alone, (wrong,))):
            with pytest.raises(IndexError, match="index must be"):
                call(*arguments)
    assert all(map(torch.equal, program(x, i), both(x, i)))
    ignored = torch.tensor([-100, 3, -100, 4])
    loss = tuner.torch.compile(Function(functional.nll_loss), (x, i))
    equal(loss(x, ignored), functional.nll_loss(x, ignored))
    with pytest.raises(IndexError):
        loss(x, i + 1)


@pytest.mark.slow
def test_a_tuned_module_is_compiled_with_its_schedules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24)).eval()
    x, database = torch.randn(8, 24), tmp_path / "results.db"
    with brief_remeasurement():
        program = tuner.torch.tune(
            module, (x,), trials=2, workers=1, baseline="eager", db=database, progress=True
        )
    assert "campaign 1: " in capsys.readouterr().err
    assert repr(program).startswith("TensorProgram(float32(8, 24): FusedFunction(")
    assert repr(program).endswith("; fusions: 2, threads: 1); tuned by campaign 1)")
    assert torch.allclose(program(x), module(x), atol=1e-5)
    tuned: Any = program.tuned
    assert tuned.campaign.trials == 2
    assert [each.fusion.origin for each in tuned.fusions] == ["tuned", "tuned"]
    (eager,) = tuned.baselines
    assert eager.name == "eager"
    assert 0 < eager.call_s.low <= eager.call_s.median <= eager.call_s.high
    assert (eager.speed is None) == bool(eager.reason)
    with Store.open(str(database)) as store:
        (campaign,) = store.campaigns()
    result: Any = campaign.result
    assert (result.baselines, result.fusions) == ((eager,), tuned.fusions)
    again: Any = tuner.torch.compile(module, (x,), db=database)
    assert [each.origin for each in again.function.code.fusions] == ["tuned", "tuned"]
    with pytest.raises(UsageError, match="no such file"):
        tuner.torch.compile(module, (x,), db=tmp_path / "missing.db")


@pytest.mark.slow
def test_integers_of_the_example_are_indices_in_a_tuning(tmp_path: Path) -> None:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 16)  # a random index would be outside
            self.linear = nn.Linear(16, 16)

        def forward(self, rows: Any, is_kept: Any, shades: Any) -> Any:
            return self.linear(self.table(rows)) * is_kept + shades

    rows, is_kept = torch.arange(7), torch.arange(16) % 3 == 0
    shades = torch.arange(240, 256, dtype=torch.uint8)
    module = Embedded().eval()
    with brief_remeasurement():
        program = tuner.torch.tune(
            module, (rows, is_kept, shades), trials=1, workers=1, baseline="none", db=tmp_path / "results.db"
        )
    assert torch.allclose(program(rows, is_kept, shades), module(rows, is_kept, shades), atol=1e-4)


def test_an_unknown_baseline_is_refused_before_anything_is_tuned(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="baseline: found 'mkl', allowed all, eager, "):
        tuner.torch.tune(nn.Linear(4, 4), (torch.ones(2, 4),), baseline="mkl", db=tmp_path / "results.db")
    assert not (tmp_path / "results.db").exists()


# torch-mlir in a child process.
CRASHING, WEIGHTED, NEGATED = (text_beside(__file__, part) for part in ("CRASHING", "WEIGHTED", "NEGATED"))


@pytest.mark.slow
def test_a_crash_of_torch_mlir_is_a_refusal() -> None:
    for _ in range(2):  # the second finds the thread's child gone
        with pytest.raises(UsageError, match="torch-mlir refuses the module: killed by SIGSEGV"):
            lower_in_child(CRASHING)
    assert "dense_resource<weight>" in lower_in_child(WEIGHTED)
