"""``torch.compile(model, backend="tuner")`` of twelve networks gives what eager gives, in one graph."""

from collections.abc import Iterator

import pytest

pytestmark = [pytest.mark.mlir, pytest.mark.filterwarnings("ignore")]  # of torch about its own code

NO_TORCH = "needs PyTorch: pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
torch = pytest.importorskip("torch", reason=NO_TORCH)
dynamo = pytest.importorskip("torch._dynamo")
counters = pytest.importorskip("torch._dynamo.utils").counters
pytest.importorskip("tuner.torch.dynamo_backend")
networks = pytest.importorskip("tests.programs.exports.networks")
export = pytest.importorskip("tests.programs.exports.export")

EXPORTS = {each.name: each for each in networks.EXPORTS}
CONVOLUTIONS = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)
ALLOWED = 1e-5  # of the largest number of a result


@pytest.fixture(autouse=True)
def no_graphs_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Counts from 0; what is left goes to eager: inductor runs a C++ compiler for half a minute."""
    import tuner.torch
    from tuner.torch import dynamo_backend

    monkeypatch.setattr(dynamo_backend, "FALLBACK", "eager")
    dynamo.reset()
    counters.clear()
    tuner.torch.graph_counts(reset=True)
    with torch.no_grad():
        yield


def test_there_are_twelve() -> None:
    assert len(EXPORTS) == len(networks.EXPORTS) == 12


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", EXPORTS)
def test_a_network_is_one_graph_that_gives_what_eager_gives(name: str) -> None:
    import tuner.torch

    made = export.build(EXPORTS[name])
    compiled = torch.compile(made.module, backend="tuner")
    for _ in range(2):
        found = compiled(*made.inputs)
        (wanted,) = made.expected
        assert (found - wanted).abs().max() <= ALLOWED * wanted.abs().max()
    counts = tuner.torch.graph_counts()
    assert counts.taken + counts.left == 1
    assert all(reason.startswith("convolution would run as loops") for reason in counts.reasons)
    assert counts.taken == 1 or any(isinstance(each, CONVOLUTIONS) for each in made.module.modules())
    assert sum(counters["graph_break"].values()) == 0
