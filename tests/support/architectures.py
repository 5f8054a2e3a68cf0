"""Marks of tests that hold on one architecture of processors alone."""

import pytest

from tuner.core.instruction_sets import X86_64
from tuner.runtime.cpu.host import own_architecture

ON_X86_64 = pytest.mark.skipif(
    own_architecture() is not X86_64, reason="names instructions of x86-64, which only such a processor runs"
)
