"""What a warp-specialized kernel has besides its main loop: copies by TMA, registers handed over."""

import re
from dataclasses import dataclass

from tuner.core.compiled_code import Resources
from tuner.gpu.cost_model.untimed import is_serialized
from tuner.gpu.target.sass import Kernel

LIMIT = re.compile(r"USETMAXREG\.\S+ (?:UP\d, )?(0x[0-9a-f]+)")


@dataclass(frozen=True)
class PipelineCounts:
    """The producer of a kernel, and what its warpgroups may keep in registers."""

    tma_copies: int  # instructions that fetch a box
    is_elected: bool  # one thread of a warp is chosen before the first of them
    register_limits: tuple[int, ...]  # of setmaxnreg, ascending
    is_serialized: bool  # ptxas says that products wait for each other


def count_pipeline(kernel: Kernel, resources: Resources) -> PipelineCounts:
    """Counts over the whole kernel."""
    names = [each.name for each in kernel.code]
    copies = [place for place, name in enumerate(names) if name.startswith("UTMALDG")]
    limits = sorted(int(found[1], 16) for each in kernel.code if (found := LIMIT.match(each.text)))
    is_elected = bool(copies) and "ELECT" in names[: copies[0]]
    return PipelineCounts(len(copies), is_elected, tuple(limits), is_serialized(resources))
