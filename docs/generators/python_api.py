"""The Python API: signatures and docstrings of the public names, and of the classes that they return."""

import ast
import inspect
import re
import textwrap
from typing import Any, Final

import tuner
from docs.generators.markdown import as_markdown, fenced
from tuner.analysis.portfolio import Regret
from tuner.core.problem import Problem
from tuner.core.trials import StoredTrial
from tuner.gpu.run.device_function import DeviceFunction, ProgramGraph
from tuner.models.library.dispatch.matmul import DispatchedMatmul, Misses
from tuner.models.library.dispatch.resolver import Chosen
from tuner.models.quantized.quantized_files import QuantizedTensor
from tuner.models.run.fused_program import FusedFunction
from tuner.models.run.host_function import HostFunction
from tuner.results.past_runs import Trials
from tuner.results.portfolio import CampaignPortfolio
from tuner.targets.cpu.callables import CpuCallable
from tuner.targets.range_kernel import RangeKernel
from tuner.tuning.tuned_run import TunedRun

RETURNED: Final[tuple[type, ...]] = (
    Problem,
    TunedRun,
    StoredTrial,
    Trials,
    CpuCallable,
    RangeKernel,
    QuantizedTensor,
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
SECTION: Final = re.compile(r"^(Args|Returns|Raises|Example):\n((?:    .*\n|\n)+)", re.MULTILINE)
ITEM: Final = re.compile(r"^(\w+|\*\w+): ", re.MULTILINE)  # of Args and Raises
LINE_LIMIT: Final = 100  # characters of a signature's line


def python_api() -> str:
    """Returns a section for each public name, then for each class that is returned."""
    names = (name for name in tuner.__all__ if not name.startswith("_"))
    public = (_public(f"tuner.{name}", getattr(tuner, name)) for name in names)
    return "\n".join((*public, "## What is returned\n", *map(_returned, RETURNED)))


def _public(name: str, found: Any) -> str:
    if inspect.isfunction(inspect.unwrap(found)):
        return _section("##", name, inspect.unwrap(found))
    about = f"`{name}` of [`{type(found).__name__}`](#{type(found).__name__.lower()})."
    return f"## {name}\n\n{_markdown(inspect.getdoc(found) or '') if isinstance(found, type) else about}\n"


def _returned(kind: type) -> str:
    parts = [f"### {kind.__name__}\n", _markdown(inspect.getdoc(kind) or "")]
    members = {
        name: each for name, each in vars(kind).items() if not name.startswith("_") or name == "__call__"
    }
    for name, each in members.items():
        if isinstance(each, property):
            parts.append(f"- `{name}`: {_first_line(each)}")
        elif inspect.isfunction(inspect.unwrap(each)) and inspect.getdoc(each):
            parts.append(_section("####", f"{kind.__name__}.{name}", inspect.unwrap(each)))
    return "\n".join(parts)


def _first_line(found: property) -> str:
    return as_markdown((inspect.getdoc(found) or "").partition("\n")[0]) + "\n"


def _section(level: str, title: str, function: Any) -> str:
    return "\n".join(
        (
            f"{level} {title}\n",
            fenced("python", _signature(function)),
            _markdown(inspect.getdoc(function) or ""),
        )
    )


def _signature(function: Any) -> str:
    """Returns a function's signature as its source has it, one parameter to a line where it is long."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    texts = [_parameter(*pair) for pair in zip(positional, defaults, strict=True)]
    texts += [f"*{ast.unparse(given.vararg)}"] if given.vararg else ["*"] * bool(given.kwonlyargs)
    texts += [_parameter(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    texts = [each for each in texts if each != "self"]
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({', '.join(texts)}){returned}"
    if len(line) <= LINE_LIMIT:
        return line
    return "\n".join((f"{node.name}(", *(f"    {each}," for each in texts), f"){returned}"))


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = ast.unparse(argument)
    return (text if default is None else f"{text} = {ast.unparse(default)}").replace("'", '"')


def _markdown(docstring: str) -> str:
    """Returns a docstring as Markdown: its arguments and errors as lists, its example as a block."""
    return SECTION.sub(_titled, f"{as_markdown(docstring)}\n")


def _titled(section: re.Match[str]) -> str:
    title, text = section[1], textwrap.dedent(section[2]).strip("\n")
    if title == "Example":
        return fenced("python", text)
    listed = text if title == "Returns" else ITEM.sub(r"- `\1`: ", text)
    return f"**{title}**\n\n{listed}\n\n"
