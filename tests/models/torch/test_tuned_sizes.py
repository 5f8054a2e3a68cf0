"""A module with a dynamic size is tuned at the sizes that are named, under one budget."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = [
    pytest.mark.mlir,
    pytest.mark.filterwarnings("ignore"),  # of torch, about its own code
]

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_mlir.fx", reason="torch-mlir has no importer here")

from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import tuner.torch  # noqa: E402
from tests.cli.real import brief_remeasurement  # noqa: E402
from tuner.core.errors import UsageError  # noqa: E402
from tuner.models.dynamic.tuned_sizes import SharedLimits  # noqa: E402
from tuner.models.torch import tuned_parts  # noqa: E402

SHAPES = ({0: Dim("t", min=1, max=8)},)


def layers() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24)).eval()


@pytest.mark.slow
def test_a_module_is_tuned_at_the_size_of_its_example_and_at_others(tmp_path: Path) -> None:
    module = layers()
    database = tmp_path / "results.db"
    with brief_remeasurement():
        program = tuner.torch.tune(
            *(module, (torch.randn(3, 24),)),
            dynamic_shapes=SHAPES,
            sizes=[8],
            trials=4,
            workers=1,
            baseline="eager",
            db=database,
        )
    assert [*program.tuned_sizes] == [4, 8]
    for tuned in program.tuned_sizes.values():
        assert [made.fusion.origin for made in tuned.fusions] == ["tuned", "tuned"]
        assert tuned.campaign is not None
        assert tuned.campaign.trials == 2
    assert program.tuned is not None
    assert [timed.name for timed in program.tuned.baselines] == ["eager"]
    with torch.no_grad():
        for n in (1, 3, 7):  # that of 1 is compiled now, and not tuned
            x = torch.randn(n, 24)
            torch.testing.assert_close(program(x), module(x), rtol=1e-5, atol=1e-5)
    again = tuner.torch.compile(module, (torch.randn(3, 24),), dynamic_shapes=SHAPES, db=database)
    again.export(tmp_path / "folder")
    assert (tmp_path / "folder" / "program.json").read_text().count('"origin": "tuned"') == 4


def test_parts_share_the_limits_and_are_compiled_alone_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []
    now_s = [0.0]

    made_by_tuning: Any = SimpleNamespace(tuned=SimpleNamespace(campaign=SimpleNamespace(trials=6)))

    def tuned_module(_exported: Any, options: Any, _tensors: Any) -> Any:
        limits.append(options.limits)
        now_s[0] += 4
        return made_by_tuning

    exported = SimpleNamespace(payload=None, form=None)
    monkeypatch.setattr(tuned_parts, "export_module", lambda *_: exported)
    monkeypatch.setattr(tuned_parts, "tuned_module", tuned_module)
    monkeypatch.setattr(tuned_parts, "compiled", lambda *_, **__: "compiled")
    options: Any = tuned_parts.TuningOptions("m", SharedLimits(16, 12.0), 0, 1, None, 1, print)
    parts: Any = tuned_parts.TunedParts(options, 3, lambda: now_s[0])
    module = layers()
    made: list[Any] = [parts(module, ()) for _ in range(2)]
    assert made == [made_by_tuning] * 2
    assert limits == [SharedLimits(5, 4.0), SharedLimits(5, 4.0)]
    now_s[0] = 11.5  # half a second is left
    assert parts(module, ()) == "compiled"
    now_s[0] = 0.0
    parts.end()
    assert parts(module, ()) == "compiled"


def test_what_cannot_be_combined_is_refused_before_anything_is_tuned(tmp_path: Path) -> None:
    arguments = (layers(), (torch.ones(2, 24),))
    database = tmp_path / "results.db"
    with pytest.raises(UsageError, match="sizes: found without dynamic_shapes"):
        tuner.torch.tune(*arguments, sizes=[8], db=database)
    with pytest.raises(UsageError, match="fallback eager cannot be combined with dynamic_shapes"):
        tuner.torch.tune(*arguments, dynamic_shapes=SHAPES, fallback="eager", db=database)
    assert not database.exists()
