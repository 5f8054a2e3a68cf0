"""Records a program's device calls as lines that are equal in every run; counts launches and copied bytes."""

import ctypes
import itertools
from typing import final

from tuner.core.compiled_code import TensorMapLayout
from tuner.core.device import AbstractDevice, Extent, KernelLaunch
from tuner.core.device_programs import DeviceWork

POINTER_BYTES = 8
DEVICE = "d"  # first letter of the names of device memory


@final
class RecordingDevice(AbstractDevice):
    """A device that forwards every call to another device and records most calls as lines of ``trace``.

    The lines are equal in every run: streams are named s0, s1, ... in the order of first use (the default
    stream is ``default``), events e0, device memory d0, pinned memory p0, modules m0, graphs g0; other memory
    is ``host``. ``work`` has the launches and the copied bytes.
    """

    def __init__(self, inner: AbstractDevice) -> None:
        self._inner = inner
        self.name = inner.name
        self.chip = inner.chip
        self.watch = inner.watch
        self.trace: list[str] = []
        self.work = DeviceWork()
        self._names: dict[tuple[str, int], str] = {}  # (kind, handle) -> name
        self._count: dict[str, int] = {}
        self._blocks: dict[int, tuple[int, str]] = {}  # address -> (size in bytes, name)
        self._functions: dict[int, str] = {}

    def load_module(self, image: bytes) -> int:
        module = self._inner.load_module(image)
        return self._add(f"load {len(image)} bytes -> {self._name('m', module)}", module)

    def unload_module(self, module: int) -> None:
        self._inner.unload_module(module)
        self._add(f"unload {self._name('m', module)}")

    def function(self, module: int, name: str) -> int:
        handle = self._inner.function(module, name)
        self._functions[handle] = name
        return handle

    def launch(self, launch: KernelLaunch, stream: int) -> None:
        self._inner.launch(launch, stream)
        self.work = self.work.with_launch()
        name = self._functions.get(launch.function, "?")
        text = [f"launch {name} grid {_by(launch.grid)} block {_by(launch.block)}"]
        text += [f"cluster {_by(launch.cluster)}"] if launch.cluster else []
        text += [f"shared {launch.shared_bytes}"] if launch.shared_bytes else []
        self._add(f"{' '.join(text)} ({self._buffers(launch)}) on {self._stream(stream)}")

    def create_stream(self) -> int:
        stream = self._inner.create_stream()
        return self._add(f"create stream -> {self._new('s', stream)}", stream)

    def destroy_stream(self, stream: int) -> None:
        self._inner.destroy_stream(stream)
        self._add(f"destroy {self._stream(stream)}")

    def synchronize_stream(self, stream: int) -> None:
        self._inner.synchronize_stream(stream)
        self._add(f"synchronize {self._stream(stream)}")

    def create_event(self, *, is_timed: bool = False) -> int:
        event = self._inner.create_event(is_timed=is_timed)
        return self._add(f"create {'timed ' if is_timed else ''}event -> {self._new('e', event)}", event)

    def destroy_event(self, event: int) -> None:
        self._inner.destroy_event(event)
        self._add(f"destroy {self._name('e', event)}")

    def record_event(self, event: int, stream: int) -> None:
        self._inner.record_event(event, stream)
        self._add(f"record {self._name('e', event)} on {self._stream(stream)}")

    def wait_event(self, stream: int, event: int) -> None:
        self._inner.wait_event(stream, event)
        self._add(f"wait for {self._name('e', event)} on {self._stream(stream)}")

    def synchronize_event(self, event: int) -> None:
        self._inner.synchronize_event(event)
        self._add(f"synchronize {self._name('e', event)}")

    def elapsed_s(self, start: int, stop: int) -> float:
        return self._inner.elapsed_s(start, stop)

    def allocate(self, size_bytes: int, stream: int) -> int:
        address = self._inner.allocate(size_bytes, stream)
        self._add_block(DEVICE, address, size_bytes)
        return self._add(
            f"allocate {size_bytes} on {self._stream(stream)} -> {self._memory(address)}", address
        )

    def free(self, address: int, stream: int) -> None:
        self._inner.free(address, stream)
        self._add(f"free {self._memory(address)} on {self._stream(stream)}")

    def allocate_host(self, size_bytes: int) -> int:
        address = self._inner.allocate_host(size_bytes)
        self._add_block("p", address, size_bytes)
        return self._add(f"allocate {size_bytes} pinned -> {self._memory(address)}", address)

    def free_host(self, address: int) -> None:
        self._inner.free_host(address)
        self._add(f"free pinned {self._memory(address)}")

    def register_host(self, address: int, size_bytes: int) -> None:
        self._inner.register_host(address, size_bytes)
        self._add(f"register {size_bytes} bytes of host")

    def unregister_host(self, address: int) -> None:
        self._inner.unregister_host(address)
        self._add("unregister host")

    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        self._inner.copy(target, source, size_bytes, stream)
        to = self._memory(target)
        from_ = self._memory(source)
        self.work = self.work.with_copy(
            size_bytes, to_device=to.startswith(DEVICE), from_device=from_.startswith(DEVICE)
        )
        self._add(f"copy {size_bytes} to {to} from {from_} on {self._stream(stream)}")

    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        self._inner.fill(address, value, item_bytes, count, stream)
        what = f"{count} x {value:#0{2 + 2 * item_bytes}x}"
        self._add(f"fill {self._memory(address)} with {what} on {self._stream(stream)}")

    def begin_capture(self, stream: int) -> None:
        self._inner.begin_capture(stream)
        self._add(f"begin capture on {self._stream(stream)}")

    def end_capture(self, stream: int) -> int:
        graph = self._inner.end_capture(stream)
        return self._add(f"end capture on {self._stream(stream)} -> {self._new('g', graph)}", graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._inner.launch_graph(graph, stream)
        self._add(f"launch {self._name('g', graph)} on {self._stream(stream)}")

    def destroy_graph(self, graph: int) -> None:
        self._inner.destroy_graph(graph)
        self._add(f"destroy {self._name('g', graph)}")

    def tensor_map(self, address: int, layout: TensorMapLayout) -> bytes:
        map_address = self._inner.tensor_map(address, layout)
        text = f"sizes {layout.sizes} box {layout.box} swizzle {layout.swizzle}"
        self._add(f"tensor map of {self._memory(address)} {text}")
        return map_address

    def _add(self, line: str, result: int = 0) -> int:
        self.trace.append(line)
        return result

    def _new(self, kind: str, handle: int) -> str:
        # a handle that was destroyed and reused gets a new name
        number = self._count.get(kind, 0)
        self._count[kind] = number + 1
        self._names[kind, handle] = f"{kind}{number}"
        return self._names[kind, handle]

    def _name(self, kind: str, handle: int) -> str:
        return self._names.get((kind, handle)) or self._new(kind, handle)

    def _stream(self, stream: int) -> str:
        if stream:
            return self._name("s", stream)
        return "default"

    def _add_block(self, kind: str, address: int, size_bytes: int) -> None:
        # freed blocks keep their names until a new block overlaps them
        end = address + max(size_bytes, 1)
        for start, (size, _) in tuple(self._blocks.items()):
            if start < end and address < start + max(size, 1):
                del self._blocks[start]
        self._blocks[address] = (size_bytes, self._new(kind, address))

    def _memory(self, address: int) -> str:
        for start, (size, name) in self._blocks.items():
            if start <= address < start + max(size, 1):
                if address == start:
                    return name
                return f"{name}+{address - start}"
        return "host"

    def _buffers(self, launch: KernelLaunch) -> str:
        # in order; each parameter is read as a pointer, since its size is not known: numbers name no buffer
        count = launch.parameter_count
        pointers = (ctypes.c_void_p * count).from_address(launch.parameters) if count else ()
        contents = (ctypes.string_at(pointer, POINTER_BYTES) for pointer in pointers if pointer)
        every = (self._memory(int.from_bytes(content, "little")) for content in contents)
        # a memref is passed as two pointers, allocated and aligned: of equal neighbours one is named
        named = (name for name in every if name != "host")
        return ", ".join(name for name, _ in itertools.groupby(named))


def _by(extent: Extent) -> str:
    return "x".join(map(str, extent))
