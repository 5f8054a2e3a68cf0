"""A device that does nothing but keep time: work takes the seconds that a test says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tuner.core.device import AbstractDevice
from tuner.core.errors import DeviceError

FILL_S = 40e-6


@dataclass(eq=False)
class ScriptedDevice(AbstractDevice):
    """One stream in effect; a graph is a list of works, an event is a moment of the device's clock."""

    name = "scripted"
    chip = "sm_90"

    now_s: float = 0.0
    log: list[str] = field(default_factory=list)
    alive: set[int] = field(default_factory=set)  # handles that were not given back
    is_flushed: bool = False  # since the last work
    fail_after: int | None = None  # works until the device refuses
    runs: int = 0
    copy_bytes_per_s: float = 1e12
    _handles: int = 0
    _capture: list[Callable[[], None]] | None = None
    _graphs: dict[int, list[Callable[[], None]]] = field(default_factory=dict)
    _moments: dict[int, float] = field(default_factory=dict)

    def work(self, call_s: float, cold_s: float = 0.0, drift_s: float = 0.0) -> Callable[[int], None]:
        """Returns work that takes ``call_s``, ``cold_s`` more after a flush, ``drift_s`` per run so far."""

        def run() -> None:
            self.runs += 1
            if self.fail_after is not None and self.runs > self.fail_after:
                raise DeviceError("cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_LAUNCH_FAILED")
            self.now_s += call_s + (cold_s if self.is_flushed else 0.0) + drift_s * self.runs
            self.is_flushed = False

        def enqueue(stream: int) -> None:
            run() if self._capture is None else self._capture.append(run)

        return enqueue

    def create_stream(self) -> int:
        return self._new("stream")

    def create_event(self, *, is_timed: bool = False) -> int:
        assert is_timed
        return self._new("event")

    def record_event(self, event: int, stream: int) -> None:
        self._moments[event] = self.now_s

    def elapsed_s(self, start: int, stop: int) -> float:
        return self._moments[stop] - self._moments[start]

    def allocate(self, size_bytes: int, stream: int) -> int:
        return self._new(f"allocate {size_bytes}")

    def fill(self, address: int, value: int, item_bytes: int, count: int, stream: int) -> None:
        self.log.append(f"fill {item_bytes * count}")
        self.now_s += FILL_S
        self.is_flushed = True

    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        self.log.append(f"copy {size_bytes}")
        self.now_s += size_bytes / self.copy_bytes_per_s

    def begin_capture(self, stream: int) -> None:
        assert self._capture is None
        self._capture = []

    def end_capture(self, stream: int) -> int:
        assert self._capture is not None
        graph = self._new("graph")
        self._graphs[graph], self._capture = self._capture, None
        return graph

    def launch_graph(self, graph: int, stream: int) -> None:
        self.log.append(f"launch {len(self._graphs[graph])}")
        for run in self._graphs[graph]:
            run()

    def _new(self, what: str) -> int:
        self.log.append(what)
        self._handles += 1
        self.alive.add(self._handles)
        return self._handles

    def _give_back(self, *handle_and_stream: Any, **__: Any) -> Any:
        self.alive.remove(handle_and_stream[0])

    def _is_done_at_once(self, *_: Any, **__: Any) -> Any:
        pass

    destroy_stream = destroy_event = destroy_graph = free = _give_back
    synchronize_stream = synchronize_event = _is_done_at_once

    def _unneeded(self, *_: Any, **__: Any) -> Any:  # by timing
        raise NotImplementedError

    load_module = unload_module = function = launch = wait_event = _unneeded
    allocate_host = free_host = register_host = unregister_host = tensor_map = _unneeded
