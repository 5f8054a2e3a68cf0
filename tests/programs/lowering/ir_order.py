"""What happens before what in a function without control flow: read from tokens, or from stream calls.

Told apart from how the passes decide: streams and events are followed op by op. Ops are known by their
attribute ``id``.
"""

from dataclasses import dataclass, field
from typing import Any

BEGIN, END = -1, -2
DEVICE = ("gpu.alloc", "gpu.memcpy", "gpu.memset", "gpu.launch_func", "gpu.dealloc")
Seen = frozenset[int]
NOTHING: Seen = frozenset()


@dataclass
class Order:
    """All pairs (earlier, later) of a function, BEGIN and END of a call included."""

    has_caller: bool
    pairs: set[tuple[int, int]] = field(default_factory=set)
    host: Seen = NOTHING
    streams: dict[Any, Seen] = field(default_factory=dict)
    events: dict[Any, Seen] = field(default_factory=dict)
    tokens: dict[Any, tuple[Any, Seen]] = field(default_factory=dict)  # token -> stream, what it stands for
    skipped: int = -1  # this one of the waits by calls is not done
    waits: int = 0  # by calls, so far

    def read(self, function: Any) -> "Order":
        if self.has_caller:  # the caller's stream is the first one
            argument = next(each for each in function.regions[0].blocks[0].arguments if _is_pointer(each))
            self.streams[argument] = frozenset({BEGIN})
        for op in function.regions[0].blocks[0].operations:
            self._take(op.operation)
        if self.has_caller:
            self.pairs |= {(u, END) for u in self.streams[argument] | self.host}
        else:
            self.pairs |= {(u, END) for u in self.host}
        return self

    def _take(self, op: Any) -> None:
        if op.name in DEVICE:
            self._device(op)
        elif op.name == "gpu.wait":
            self._wait(op)
        elif op.name == "builtin.unrealized_conversion_cast":
            self.tokens[op.results[0]] = (op.operands[0], NOTHING)
        elif op.name == "func.call":
            self._call(op.attributes["callee"].value, list(op.operands), op)
        elif "id" in op.attributes:
            number = op.attributes["id"].value
            self.pairs |= {(u, number) for u in self.host}
            self.host |= {number}

    def _device(self, op: Any) -> None:
        number = op.attributes["id"].value
        stream, _ = self.tokens[op.operands[0]]
        assert self.has_caller or stream in self.streams, "the stream was destroyed"
        seen = self.streams.get(stream, NOTHING) | self.host
        self.pairs |= {(u, number) for u in seen}
        self.streams[stream] = seen | {number}
        self.tokens[op.results[len(op.results) - 1]] = (stream, self.streams[stream])

    def _wait(self, op: Any) -> None:
        if op.results:
            seen = frozenset[int]().union(*(self.tokens[token][1] for token in op.operands))
            self.streams[op] = seen | self.host
            self.tokens[op.results[0]] = (op, self.streams[op])
            return
        for token in op.operands:
            stream, _ = self.tokens[token]
            self.host |= self.streams.pop(stream)  # gone: gpu-to-llvm destroys it

    def _call(self, name: str, operands: list[Any], op: Any) -> None:
        if name == "mgpuEventCreate":
            self.events[op.results[0]] = NOTHING
        elif name == "mgpuEventDestroy":
            del self.events[operands[0]]
        elif name == "mgpuEventRecord":
            self.events[operands[0]] = self.streams.get(operands[1], NOTHING) | self.host
        elif self._is_skipped():
            return
        elif name == "mgpuStreamWaitEvent":
            self.streams[operands[0]] = self.streams.get(operands[0], NOTHING) | self.events[operands[1]]
        elif name == "mgpuStreamSynchronize":
            self.host |= self.streams.get(operands[0], NOTHING)
        elif name == "mgpuEventSynchronize":
            self.host |= self.events[operands[0]]

    def _is_skipped(self) -> bool:
        self.waits += 1
        return self.waits - 1 == self.skipped


def _is_pointer(value: Any) -> bool:
    return str(value.type) == "!llvm.ptr"
