"""The script of this processor without tuning."""

import pytest

from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import default_script


def own_script(problem: Problem) -> Script:
    """Returns the default script of a problem on this processor; skips the test where it has no strategy."""
    script = default_script(problem, describe_machine())
    if script is None:
        pytest.skip(f"this processor has no strategy for {problem.key}")
    return script
