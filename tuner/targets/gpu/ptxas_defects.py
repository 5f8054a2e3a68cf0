"""Versions of ptxas that are known to miscompile correct PTX, with sources."""

from dataclasses import dataclass

from tuner.core.chips import Chip

Version = tuple[int, ...]  # (12, 6, 85)


@dataclass(frozen=True)
class PtxasDefect:
    """A known miscompilation by ptxas: the affected versions and chips, and the URL of a source."""

    since: Version
    before: Version  # the first version that is not known to be affected
    capabilities: tuple[int, int]  # lowest and highest: 90 is sm_90
    what: str
    source: str  # URL


ANY = (0, 999)
DEFECTS = (
    PtxasDefect(
        (0,),
        (11, 1),
        ANY,
        "wrong results or invalid addresses of code like XLA's, which warns of it",
        "https://github.com/jax-ml/jax/issues/10083",
    ),
    PtxasDefect(
        (11, 3),
        (11, 7),
        ANY,
        "a stored double-precision complex number loses its imaginary part; seen up to 11.6",
        "https://github.com/llvm/llvm-project/issues/54633",
    ),
    PtxasDefect(
        (12, 0),
        (12, 6, 85),
        (90, 999),
        "NVIDIA's bug 4826023, of Hopper and later",
        "https://github.com/openxla/xla/pull/19927",
    ),
    PtxasDefect(
        (12, 3, 103),
        (12, 3, 104),
        ANY,
        "a defect that XLA was to refuse this version for",
        "https://github.com/openxla/xla/pull/7922",
    ),
    PtxasDefect(
        (12, 8),
        (13, 1),
        (120, 120),
        "NVIDIA's bug 5288270, wrong results at high register pressure; reported for 12.8, 12.9 and 13.0",
        "https://docs.nvidia.com/cuda/cusolverdx/0.2.1/release_notes.html",
    ),
)


def defects_of(version: str, chip: Chip | None = None) -> tuple[PtxasDefect, ...]:
    """Returns the known defects of a ptxas version ("12.6.85") for one chip; None: for any chip."""
    number = tuple(int(part) for part in version.split(".") if part)
    return tuple(
        defect for defect in DEFECTS if defect.since <= number < defect.before and _is_of(defect, chip)
    )


def defect_line(defect: PtxasDefect) -> str:
    """Returns one line of text that says what a version of ptxas miscompiles, with the URL of the source."""
    return f"this version is known to miscompile: {defect.what} ({defect.source})"


def _is_of(defect: PtxasDefect, chip: Chip | None) -> bool:
    lowest, highest = defect.capabilities
    return chip is None or lowest <= chip.capability <= highest
