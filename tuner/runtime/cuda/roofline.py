"""The roofline of a GPU: bytes/s measured by copies, flop/s as NVIDIA documents."""

from tuner.core.chips import CLOCK_FLOP
from tuner.core.device import AbstractDevice
from tuner.core.errors import TunerError
from tuner.core.machine import Roofline
from tuner.runtime.cuda.facts import CudaFacts

COPY_BYTES = 1 << 30  # many times any cache
COPIES = 10


def gpu_roofline(device: AbstractDevice, facts: CudaFacts, dtype: str) -> Roofline:
    """Returns a GPU's roofline: documented peak flop/s in ``dtype``, and measured bytes/s of copies.

    Raises TunerError where NVIDIA documents no peak for the chip or dtype.
    """
    flop_per_s = documented_flop_per_s(facts, dtype)
    source = f"documented, at {facts.clock_hz / 1e6:.0f} MHz"
    return Roofline(flop_per_s, copied_bytes_per_s(device, facts.memory_bytes), source)


def documented_flop_per_s(facts: CudaFacts, dtype: str) -> float:
    """Returns the documented peak flop/s of a GPU in ``dtype``, at its highest clock.

    Raises TunerError for a chip or dtype without a documented peak.
    """
    known = CLOCK_FLOP.get(facts.chip)
    if known is None:
        raise TunerError(f"roofline: found {facts.chip}, allowed {', '.join(CLOCK_FLOP)}: no documented peak")
    if dtype not in known:
        raise TunerError(f"roofline: found {dtype}, allowed {', '.join(known)}: no documented peak")
    return known[dtype] * facts.multiprocessors * facts.clock_hz


def copied_bytes_per_s(device: AbstractDevice, memory_bytes: int) -> float:
    """Returns the bytes read plus written per second by the fastest of 10 copies within GPU memory.

    ``memory_bytes``: the memory of the GPU; a copy has an eighth of it, but at most 1 GiB.
    """
    size = min(COPY_BYTES, memory_bytes // 8 // 256 * 256)
    stream = device.create_stream()
    source, target = (device.allocate(size, stream) for _ in range(2))
    events = start, stop = tuple(device.create_event(is_timed=True) for _ in range(2))
    device.fill(source, 0, 4, size // 4, stream)
    taken_s = []
    for _ in range(COPIES):
        device.copy(target, source, size, stream)  # during this copy the next one is launched
        device.record_event(start, stream)
        device.copy(target, source, size, stream)
        device.record_event(stop, stream)
        device.synchronize_event(stop)
        taken_s.append(device.elapsed_s(start, stop))
    for event in events:
        device.destroy_event(event)
    for address in (source, target):
        device.free(address, stream)
    device.destroy_stream(stream)
    return 2 * size / min(taken_s)
