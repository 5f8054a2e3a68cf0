"""torch inductor with max-autotune: its C++ template against ATen's library, weights frozen."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.race.peer import Peer, PeerKernel, PeerPlace, PeerResult, RaceMatmul, compiled_once

LIMIT_S = 600.0
SERVED = Path(__file__).parents[1] / "served"


def entries(case: RaceMatmul, _budgets_s: tuple[float, ...], place: PeerPlace) -> Iterator[PeerResult]:
    """Yields the compiled layer; processes that load it find its code in inductor's cache."""
    variables = {
        "TORCHINDUCTOR_CACHE_DIR": str(place.folder / "cache"),
        "TORCHINDUCTOR_FREEZING": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    words = (str(place.python), str(SERVED / "inductor_layer.py"), *case.sizes, case.dtype)
    kernel = PeerKernel("inductor", "", "", tuple(variables.items()))
    yield compiled_once(words, kernel, place, LIMIT_S, variables)


INDUCTOR = Peer(
    name="inductor",
    title="inductor",
    package="torch",
    requirements=("numpy",),  # and PyTorch, by benchmarks.install_torch
    dtypes=("f32", "bf16"),
    settings=(
        'torch.compile(linear, mode="max-autotune"), TORCHINDUCTOR_FREEZING=1, no_grad: B is a '
        "constant weight, packed ahead; called from Python, C is a new tensor of the type of A"
    ),
    source="https://docs.pytorch.org/tutorials/prototype/max_autotune_on_CPU_tutorial.html",
    entries=entries,
)
