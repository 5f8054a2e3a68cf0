"""The source text of a small module with its arguments, and the module that it is."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.op_corpus.small_modules.arguments import NORMAL, PLAIN, ModuleArgument

NAMES = "xyzuvw"  # of arguments
HEAD = """\
import torch
from torch.nn import functional as F


class Module(torch.nn.Module):
    def forward(self, {names}):
"""
FLOATS = ("float32", "float32", "float32", "float64", "bfloat16", "float16")  # as often as they stand here
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
LENGTH_LIMIT = 70  # of what is reduced


@dataclass(frozen=True)
class SmallModule:
    """A module of a few lines with its arguments."""

    arguments: tuple[ModuleArgument, ...]  # named x, y, z and so on
    body: tuple[str, ...]  # lines of ``forward``
    specials: tuple[str, ...] = (PLAIN,)  # numbers that calls after the first have among the others
    sizes: tuple[int, ...] = ()  # of the dynamic dimension, in calls after the first
    has_truth: bool = False  # a result is right, too, where it is as near to that in f64 as eager's is

    @property
    def text(self) -> str:
        """Returns a file with the class ``Module``."""
        lines = "".join(f"        {line}\n" for line in self.body)
        return HEAD.format(names=", ".join(NAMES[: len(self.arguments)])) + lines

    def module(self) -> torch.nn.Module:
        """Returns the module."""
        names: dict[str, Any] = {"__name__": "small_module"}
        exec(compile(self.text, "small_module.py", "exec"), names)  # noqa: S102 - text of this package
        module: torch.nn.Module = names["Module"]()
        return module.eval()


@dataclass
class Draft:
    """A small module that is being drawn."""

    rng: random.Random
    arguments: list[ModuleArgument] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def argument(
        self,
        shape: Sequence[int],
        dtype: str,
        values: str = NORMAL,
        limit: int = 0,
        dynamic: int | None = None,
    ) -> str:
        """Adds an argument; returns its name."""
        self.arguments.append(ModuleArgument(tuple(shape), dtype, values, limit, dynamic))
        return NAMES[len(self.arguments) - 1]

    def choice(self, choices: Sequence[str]) -> str:
        """Returns one of some texts, with the names of ``arguments`` as they stand."""
        return self.rng.choice(choices)

    def length(self) -> int:
        """Returns a length: 1 to 70, small ones as often as all others."""
        return self.rng.choice((self.rng.randint(1, 9), self.rng.randint(1, LENGTH_LIMIT)))

    def shape(self, rank: int) -> tuple[int, ...]:
        """Returns a shape of which one size may be long."""
        sizes = [self.rng.randint(1, 7) for _ in range(rank)]
        sizes[self.rng.randrange(rank)] = self.length()
        return tuple(sizes)

    def finished(self, **options: Any) -> SmallModule:
        """Returns the module."""
        return SmallModule(tuple(self.arguments), tuple(self.lines), **options)
