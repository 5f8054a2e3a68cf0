"""``python -m benchmarks.verify_cost OTHER``: seconds of verification, here and in another checkout.

OTHER is the folder of another checkout, such as the parent commit's. For each problem a process of each
checkout loads the kernel of the same script once; then the two verify it in turns, so that both meet the same
disturbances. Printed are the medians of their processor times, and the median of the ratios of the turns: of
the draws of the search, and of those of the final re-measurement. Other programs may run.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tuner.core.problem import Problem

BUDGET_S = 20.0  # of a problem, loading included: five problems take less than two minutes
MOST_TURNS = 200
LEAST_TURNS = 3
TOP_TRIALS = 9  # timed together in a final re-measurement, the fastest twice
PROBLEMS = (
    ((64, 64, 64), "f32"),
    ((512, 512, 512), "f32"),
    ((512, 512, 512), "bf16"),
    ((512, 512, 512), "i8"),
    ((1, 4096, 4096), "f32"),
)
STEPS = ("search", "final")
HERE = Path(__file__).parents[1]
Times = dict[str, float]  # processor seconds by step


def works_of(problem: "Problem") -> dict[str, Callable[[], object]]:
    """Returns what verifies the default kernel of a problem, by step, with the code that is imported."""
    import numpy as np

    from tuner.runtime.cpu.host import describe_machine
    from tuner.space.scripts.choice import default_script
    from tuner.targets.cpu import evaluator as evaluators
    from tuner.targets.cpu.compiler import CpuCompiler

    script = default_script(problem, describe_machine())
    assert script is not None
    evaluators.VERIFY_S = 0.0  # the least draws: their number does not depend on the clock
    evaluator, rng = evaluators.CpuEvaluator(1), np.random.default_rng(0)
    loaded = evaluator.load(problem, CpuCompiler().compile(problem, script))
    # its name in older checkouts has an underscore
    name = "verify_on_extremes" if hasattr(evaluator, "verify_on_extremes") else "_verify_on_extremes"
    on_extremes: Callable[..., None] = getattr(evaluator, name)
    return {
        "search": lambda: evaluator.verify(problem, loaded, rng),
        "final": lambda: on_extremes(problem, (loaded,) * TOP_TRIALS, rng),
    }


def answer(number: int) -> None:
    """Verifies once for each line of standard input, and prints the processor seconds by step."""
    from tuner.core.matmul import Matmul

    sizes, dtype = PROBLEMS[number]
    works = works_of(Matmul(*sizes, dtype=dtype))
    for work in works.values():  # the first allocates
        work()
    for _ in sys.stdin:
        times: Times = {}
        for step, work in works.items():
            start = time.process_time()
            work()
            times[step] = time.process_time() - start
        print(json.dumps(times), flush=True)


@contextmanager
def verifying(checkout: Path, number: int) -> Iterator[Callable[[], Times]]:
    """Yields a function that verifies problem ``number`` once by the code of a checkout."""
    command = [sys.executable, str(Path(__file__).resolve()), "--problem", str(number)]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        asks, answers = child.stdin, child.stdout

        def verify() -> Times:
            asks.write("\n")
            asks.flush()
            times: Times = json.loads(answers.readline())
            return times

        yield verify


def compared(other: Path, number: int, budget_s: float) -> list[tuple[Times, Times]]:
    """Returns the times (here, of ``other``) of each turn; who begins changes from turn to turn."""
    end = time.monotonic() + budget_s
    turns: list[tuple[Times, Times]] = []
    with ExitStack() as stack:
        here, there = (stack.enter_context(verifying(each, number)) for each in (HERE, other))
        while len(turns) < LEAST_TURNS or (len(turns) < MOST_TURNS and time.monotonic() < end):
            if len(turns) % 2:
                ours = here()
                turns.append((ours, there()))
            else:
                theirs = there()
                turns.append((here(), theirs))
    return turns


@click.command()
@click.argument("other", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--problem", type=int, help="Verify this problem by the code that is imported, when asked.")
@click.option("--budget-s", type=float, default=BUDGET_S, show_default=True, help="Seconds of a problem.")
def main(other: Path | None, problem: int | None, budget_s: float) -> None:
    """Compares the processor time of verification with that of the checkout OTHER."""
    if problem is not None:
        answer(problem)
        return
    if other is None:
        raise click.UsageError("missing argument OTHER: the folder of another checkout")
    for number, (sizes, dtype) in enumerate(PROBLEMS):
        turns = compared(other.resolve(), number, budget_s)
        for step in STEPS:
            here_ms, there_ms = (
                statistics.median(times[step] for times in column) * 1e3
                for column in zip(*turns, strict=True)
            )
            ratio = statistics.median(here[step] / there[step] for here, there in turns)
            name = f"{'x'.join(map(str, sizes))} {dtype} {step}"
            times = f"{here_ms:.2f} ms, {there_ms:.2f} ms"
            print(f"{name}: {times}, ratio {ratio:.3f} of {len(turns)} turns", flush=True)


if __name__ == "__main__":
    main()
