"""The machine code (SASS) of GPU kernels as text; needs nvdisasm."""

import subprocess

from tuner.core.kernel_program import KernelProgram
from tuner.targets.gpu.machine_code.listing import read_kernels
from tuner.targets.gpu.machine_code.nvdisasm import listing_of
from tuner.targets.gpu.machine_code.predicted import nvdisasm


def sass(program: KernelProgram | None) -> str:
    """Returns the machine code of a program as SASS text, kernel by kernel; "" where there is none to show.

    That is without a program or its cubin, without nvdisasm, or where nvdisasm fails.
    """
    tool = nvdisasm()
    if tool is None or program is None or not program.cubin:
        return ""
    try:
        kernels = read_kernels(listing_of(program.cubin, tool.path))
    except subprocess.SubprocessError:
        return ""
    return "".join(
        f"<{kernel.name}>:\n" + "".join(f"  {each.text}\n" for each in kernel.code) for kernel in kernels
    )
