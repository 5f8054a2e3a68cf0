"""The registry of target kinds. A new kind is a file in this folder and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from tuner.tuning.parts import cpu, cuda, simulator
from tuner.tuning.target_kind import TargetKind

KINDS: Mapping[str, TargetKind] = MappingProxyType(
    {
        "cpu": cpu.KIND,
        "cuda": cuda.KIND,
        "simulator": simulator.KIND,
    }
)
