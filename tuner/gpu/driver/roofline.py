"""A GPU's roofline: documented peak flop/s, and bytes/s measured by copies.

Williams et al., 2009, https://doi.org/10.1145/1498765.1498785.
"""

from tuner.core.device import AbstractDevice
from tuner.core.errors import TunerError
from tuner.core.gpu import CLOCK_FLOP
from tuner.core.roofline import Roofline
from tuner.gpu.driver.driver import CudaFacts

HZ_OF_MHZ = 1e6
COPY_BYTES = 1 << 30  # many times any cache
# of the GPU's memory at most an eighth, a multiple of 256 bytes
COPY_SHARE = 8
COPY_MULTIPLE = 256
COPIES = 10


def gpu_roofline(device: AbstractDevice, facts: CudaFacts, dtype: str) -> Roofline:
    """Returns a GPU's roofline: documented peak flop/s of ``dtype``, and measured bytes/s of copies.

    Raises TunerError if no peak is documented.
    """
    flop_per_s = documented_flop_per_s(facts, dtype)
    source = f"documented, at {facts.clock_hz / HZ_OF_MHZ:.0f} MHz"
    return Roofline(flop_per_s, copied_bytes_per_s(device, facts.memory_bytes), source)


def documented_flop_per_s(facts: CudaFacts, dtype: str) -> float:
    """Returns the documented peak flop/s of ``dtype`` at the GPU's highest clock.

    Raises TunerError if no peak is documented for the chip or the dtype.
    """
    known = CLOCK_FLOP.get(facts.chip)
    if known is None:
        raise TunerError(f"roofline: found {facts.chip}, allowed {', '.join(CLOCK_FLOP)}: no documented peak")
    if dtype not in known:
        raise TunerError(f"roofline: found {dtype}, allowed {', '.join(known)}: no documented peak")
    return known[dtype] * facts.multiprocessors * facts.clock_hz


def copied_bytes_per_s(device: AbstractDevice, memory_bytes: int) -> float:
    """Returns the bytes read plus written per second by the fastest of 10 copies of at most 1 GiB.

    ``memory_bytes``: of the GPU; a small one copies less.
    """
    size = min(COPY_BYTES, memory_bytes // COPY_SHARE // COPY_MULTIPLE * COPY_MULTIPLE)
    stream = device.create_stream()
    source, target = (device.allocate(size, stream) for _ in range(2))
    start, stop = (device.create_event(is_timed=True) for _ in range(2))
    device.fill(source, 0, 4, size // 4, stream)
    taken_s = []
    for _ in range(COPIES):
        device.copy(target, source, size, stream)  # during this copy the next one is launched
        device.record_event(start, stream)
        device.copy(target, source, size, stream)
        device.record_event(stop, stream)
        device.synchronize_event(stop)
        taken_s.append(device.elapsed_s(start, stop))
    for event in (start, stop):
        device.destroy_event(event)
    for address in (source, target):
        device.free(address, stream)
    device.destroy_stream(stream)
    return 2 * size / min(taken_s)
