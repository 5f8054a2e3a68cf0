"""OpenBLAS, as numpy's wheel has it: not tuned, the baseline of all ratios."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.race.peer import Peer, PeerKernel, PeerPlace, PeerResult, RaceMatmul

SYMBOL = "scipy_cblas_sgemm64_"


def entries(_case: RaceMatmul, _budgets_s: tuple[float, ...], _place: PeerPlace) -> Iterator[PeerResult]:
    """Yields the library."""
    folder = Path(np.__file__).parents[1] / "numpy.libs"
    libraries = sorted(folder.glob("libscipy_openblas64_*"))
    if not libraries:
        yield PeerResult(None, 0.0, reason="numpy has no OpenBLAS with integers of 64 bits here")
        return
    yield PeerResult(None, 0.0, PeerKernel("cblas", str(libraries[0]), SYMBOL))


def library_version() -> str:
    """Returns "0.3.31.188, numpy 2.4.6"."""
    configured = np.show_config(mode="dicts")
    blas = configured["Build Dependencies"]["blas"]  # type: ignore[index,unused-ignore]
    return f"{blas['version']}, numpy {np.__version__}"


OPENBLAS = Peer(
    name="openblas",
    title="OpenBLAS",
    package="numpy",
    requirements=(),
    dtypes=("f32",),
    settings="cblas_sgemm of the library in numpy's wheel, OPENBLAS_NUM_THREADS=1",
    source="https://www.openmathlib.org/OpenBLAS/docs/runtime_variables/",
    entries=entries,
    version=library_version,
)
