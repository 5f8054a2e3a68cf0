"""The name of a target: a target kind, and its detail (a GPU's chip, a replay's recording)."""

from dataclasses import dataclass

CPU = "cpu"
CUDA = "cuda"
SIMULATOR = "simulator"  # runs the same PTX as CUDA
REPLAY = "replay"  # outcomes are read from a recording; nothing is compiled or run


@dataclass(frozen=True)
class TargetName:
    """A target as on the command line: a kind (``cpu``), or kind and detail (``cuda:sm_90``)."""

    kind: str  # a name of ``tuner.tuning.parts.kinds.KINDS``, or "replay", which has no machine
    detail: str = ""  # of a GPU the chip, of a replay the recording; "" where the kind has no detail

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """Returns ``kind`` or ``kind:detail``: the form in databases and on the command line."""
        return f"{self.kind}:{self.detail}" if self.detail else self.kind

    @property
    def has_machine(self) -> bool:
        """Returns whether outcomes are measured on a machine; False for a replay, which reads a recording."""
        return self.kind != REPLAY

    @property
    def is_on_cpu(self) -> bool:
        """Returns whether candidates run on the CPU of a machine: True for cpu only."""
        return self.kind == CPU

    @property
    def is_on_gpu(self) -> bool:
        """Returns whether candidates run on a real GPU: True for cuda, False for the simulator of a GPU."""
        return self.kind == CUDA

    def is_of(self, kind: str) -> bool:
        """Returns whether ``kind`` ("cuda") is the kind of this target."""
        return self.kind == kind

    @classmethod
    def parse(cls, text: str) -> "TargetName":
        """Returns the target of a text ``kind`` or ``kind:detail``; does not check that it exists."""
        kind, _, detail = text.partition(":")
        return cls(kind, detail)
