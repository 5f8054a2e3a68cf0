"""A blocked SGEMM in CUDA C with the knobs of CLBlast's SGEMM, whose times are in recordings.

A block multiplies MWG x NWG of C, each thread (MWG / MDIMC) x (NWG / NDIMC) of it. KWG rows of K are staged
in shared memory where SA or SB say so, by MDIMA or NDIMB threads across; VWM and VWN are the widths of
accesses. The meaning of the knobs: C. Nugteren, "CLBlast: A Tuned OpenCL BLAS Library", 2018.
"""

from collections.abc import Mapping
from pathlib import Path

KNOBS = ("MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN", "SA", "SB")
ENTRY = "blocked_gemm"
SOURCE = (Path(__file__).parent / "blocked_gemm.cu").read_text()


def definitions(knobs: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the compiler options that define the knobs."""
    return tuple(f"-D{name}={knobs[name]}" for name in KNOBS)


def distinct(knobs: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the knobs that affect the code: MDIMA counts with SA only, NDIMB with SB only."""
    counts = {"MDIMA": knobs["SA"], "NDIMB": knobs["SB"]}
    return tuple(knobs[name] if counts.get(name, 1) else 0 for name in KNOBS)
