"""Rules for the tests of this folder: configurations of the shipped search space, with given times."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tuner.core.machine import Machine
from tuner.core.problem import Problem
from tuner.runtime.cpu.host import describe_machine
from tuner.tuning import pretuned, rule
from tuner.tuning.rule import DispatchRule, rule_text


@cache
def machine() -> Machine:
    return describe_machine()


@cache
def space(threads: int = 1) -> rule.ProblemSpaces:
    return rule.ProblemSpaces.shipped(machine(), threads)


def ship(folder: Path, monkeypatch: pytest.MonkeyPatch, rule: DispatchRule | None = None) -> None:
    """Ships a rule of this processor's class, or one of another class; None: nothing is shipped."""
    is_own = rule is None or rule.machine == machine().name
    own = pretuned.ProcessorClass("some", machine().isa, ".*" if is_own else "$", machine().has_amx_bf16)
    monkeypatch.setattr(pretuned, "CLASSES", (own,))
    monkeypatch.setattr(pretuned, "FOLDER", folder)
    if rule is not None:
        name = f"some_{rule.problems[0].problem.dtype}_{rule.threads}"
        (folder / f"{name}{pretuned.SUFFIX}").write_text(rule_text(rule))


def configurations() -> tuple[rule.Configuration, ...]:
    """Returns a packed configuration and a direct one, which applies to every problem."""
    first = {each.strategy: each for each in reversed(space().first)}
    chosen = (first["matmul_cpu_packed"], first["matmul_cpu_direct"])
    return tuple(rule.Configuration(each.strategy, each.choices) for each in chosen)


def rule_of(
    times_s: Mapping[Problem, tuple[float, ...]], baseline_s: float | None = None
) -> rule.DispatchRule:
    """Returns a rule with these times of the packed and the direct configuration, in two equal rounds."""
    return rule.DispatchRule(
        tuner="0.1.0",
        date="2026-01-01T00:00:00+00:00",
        machine=machine().name,
        threads=1,
        compiler="of a test",
        space_sha256=space().sha256(each.strategy for each in configurations()),
        regret=rule.StatedRegret(0.98, 0.9, 0.95, 0.8),
        configurations=configurations(),
        problems=tuple(
            rule.RuleProblem(
                problem,
                1,
                min(range(len(times)), key=lambda place: times[place]),
                tuple((time, time) for time in times),
                tuple(0.0 for _ in times),
                baseline_s,
            )
            for problem, times in times_s.items()
        ),
    )
