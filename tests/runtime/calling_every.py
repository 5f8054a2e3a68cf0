"""One good call of every method of a device, for suites that hold for any."""

import ctypes
from collections.abc import Callable, Iterator

import numpy as np

from tests.texts import text_beside
from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import AbstractDevice, Extent, KernelLaunch

Call = tuple[str, Callable[[], object]]
KERNEL = text_beside(__file__, "KERNEL").encode()  # that is called
# elapsed_s is left out: not every device has a clock


def call_everything(device: AbstractDevice, image: bytes = KERNEL) -> Iterator[Call]:
    """Yields (method, call), each allowed behind those before; ``image`` has a kernel k of three values."""
    made: dict[str, int] = {}
    host = np.zeros(64, np.float32)
    there = host.ctypes.data

    def make(name: str, call: Callable[[], int]) -> Callable[[], None]:
        def run() -> None:
            made[name] = call()

        return run

    def launch(cluster: Extent | None) -> None:
        values = (ctypes.c_uint64 * 3)(made["memory"], 7, made["memory"])
        first = ctypes.addressof(values)
        pointers = (ctypes.c_void_p * 3)(first, first + 8, first + 16)
        where = ctypes.addressof(pointers)
        what = KernelLaunch(made["function"], Extent(1), Extent(32), 0, where, 3, cluster)
        device.launch(what, made["stream"])

    yield "load_module", make("module", lambda: device.load_module(image))
    yield "function", make("function", lambda: device.function(made["module"], "k"))
    yield "create_stream", make("stream", device.create_stream)
    yield "create_event", make("event", device.create_event)
    yield "create_event", make("timed", lambda: device.create_event(is_timed=True))
    yield "allocate", make("memory", lambda: device.allocate(256, made["stream"]))
    yield "allocate_host", make("pinned", lambda: device.allocate_host(256))
    yield "register_host", lambda: device.register_host(there, 256)
    yield "copy", lambda: device.copy(made["memory"], there, 256, made["stream"])
    yield "copy", lambda: device.copy(made["pinned"], made["memory"], 256, made["stream"])
    yield "fill", lambda: device.fill(made["memory"], 0xAB, 1, 256, made["stream"])
    yield "fill", lambda: device.fill(made["memory"], 0xABCD, 2, 128, made["stream"])
    yield "launch", lambda: launch(None)
    yield "launch", lambda: launch(Extent(1))
    yield "record_event", lambda: device.record_event(made["event"], made["stream"])
    yield "wait_event", lambda: device.wait_event(0, made["event"])
    yield "synchronize_event", lambda: device.synchronize_event(made["event"])
    yield "synchronize_stream", lambda: device.synchronize_stream(made["stream"])
    yield "begin_capture", lambda: device.begin_capture(made["stream"])
    yield "fill", lambda: device.fill(made["memory"], 0x3F800000, 4, 64, made["stream"])
    yield "end_capture", make("graph", lambda: device.end_capture(made["stream"]))
    yield "launch_graph", lambda: device.launch_graph(made["graph"], made["stream"])
    yield "copy", lambda: device.copy(there, made["memory"], 256, made["stream"])
    yield "synchronize_stream", lambda: device.synchronize_stream(made["stream"])
    yield "destroy_graph", lambda: device.destroy_graph(made["graph"])
    yield "tensor_map", lambda: device.tensor_map(made["memory"], TensorMapLayout((8, 8), (32,), (8, 8), 7))
    yield "unregister_host", lambda: device.unregister_host(there)
    yield "free_host", lambda: device.free_host(made["pinned"])
    yield "free", lambda: device.free(made["memory"], made["stream"])
    yield "destroy_event", lambda: device.destroy_event(made["event"])
    yield "destroy_event", lambda: device.destroy_event(made["timed"])
    yield "synchronize_stream", lambda: device.synchronize_stream(made["stream"])
    yield "destroy_stream", lambda: device.destroy_stream(made["stream"])
    yield "unload_module", lambda: device.unload_module(made["module"])
    yield "done", lambda: np.testing.assert_array_equal(host, np.float32(1))
