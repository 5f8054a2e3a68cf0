"""The Python API: Sphinx reads the docstrings of the public names, and of the classes that they return."""

import inspect
from typing import Final

import tuner
from docs.generators.markdown import fenced
from tuner.analysis.portfolio import Regret
from tuner.core.problem import Problem
from tuner.core.runs import StoredTrial
from tuner.library.dispatch.matmul import DispatchedMatmul
from tuner.library.dispatch.portfolio import CampaignPortfolio
from tuner.library.dispatch.resolver import Chosen, Misses
from tuner.programs.run.captured_graph import ProgramGraph
from tuner.programs.run.device_function import DeviceFunction
from tuner.programs.run.fused_program import FusedFunction
from tuner.programs.run.host_function import HostFunction
from tuner.results.past_runs import Trials
from tuner.targets.cpu.callables import CpuCallable
from tuner.tuning.tuned_run import TunedRun

RETURNED: Final[tuple[type, ...]] = (
    Problem,
    TunedRun,
    StoredTrial,
    Trials,
    CpuCallable,
    DispatchedMatmul,
    Chosen,
    Misses,
    CampaignPortfolio,
    Regret,
    HostFunction,
    FusedFunction,
    DeviceFunction,
    ProgramGraph,
)


def python_api() -> str:
    """Returns a directive of Sphinx's autodoc for each public name, then for each class that is returned."""
    names = (name for name in tuner.__all__ if not name.startswith("_"))
    return "\n".join((*map(_directive, names), "## What is returned\n", *map(_class_directive, RETURNED)))


def _directive(name: str) -> str:
    found = getattr(tuner, name)
    if isinstance(found, type) and issubclass(found, BaseException):
        return fenced("{eval-rst}", f".. autoexception:: tuner.{name}")
    if isinstance(found, DispatchedMatmul):
        return fenced("{eval-rst}", f".. autodata:: tuner.{name}\n   :no-value:")
    kind = "class" if isinstance(found, type) else "function"
    assert kind == "class" or inspect.isfunction(inspect.unwrap(found)), name
    return fenced("{eval-rst}", f".. auto{kind}:: tuner.{name}")


def _class_directive(kind: type) -> str:
    members = "   :members:\n   :special-members: __call__\n   :exclude-members: __init__, __new__"
    return fenced("{eval-rst}", f".. autoclass:: {kind.__module__}.{kind.__qualname__}\n{members}")
