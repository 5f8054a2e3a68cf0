"""``python -m benchmarks.verify_cost OTHER``: seconds of verification, here and in another checkout.

OTHER is the folder of another checkout, such as the parent commit's. Both verify the kernels of the same
scripts in processes that take turns; per shape the ratio of the medians is printed, of the draws of the
search and of those of the final re-measurement. Processor time is compared: other programs may run.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click

ROUNDS = 7
DRAWN = 3  # verifications in a process, after one that allocates
SHAPES = (
    ((512, 512, 512), "f32"),
    ((64, 64, 64), "f32"),
    ((1, 4096, 4096), "f32"),
    ((512, 512, 512), "bf16"),
    ((512, 512, 512), "i8"),
)
HERE = Path(__file__).parents[1]
TOP_TRIALS = 9  # timed together in a final re-measurement, the fastest twice


def seconds_of(shape: tuple[int, int, int], dtype: str) -> tuple[float, float]:
    """Returns processor seconds of one verification by least draws, and of one on extreme inputs."""
    import numpy as np

    from tuner.core.problem import Matmul
    from tuner.runtime.cpu.host import describe_machine
    from tuner.space.scripts.choice import default_script
    from tuner.targets.cpu import evaluator as evaluators
    from tuner.targets.cpu.compiler import CpuCompiler

    problem = Matmul(*shape, dtype=dtype)
    script = default_script(problem, describe_machine())
    assert script is not None
    evaluators.VERIFY_S = 0.0  # the least draws: their number does not depend on the clock
    evaluator, rng = evaluators.CpuEvaluator(1), np.random.default_rng(0)
    loaded = evaluator.load(problem, CpuCompiler().compile(problem, script))
    # its name in older checkouts has an underscore
    name = "verify_on_extremes" if hasattr(evaluator, "verify_on_extremes") else "_verify_on_extremes"
    on_extremes: Callable[..., None] = getattr(evaluator, name)

    def search() -> None:
        evaluator.verify(problem, loaded, rng)

    def final() -> None:
        on_extremes(problem, (loaded,) * TOP_TRIALS, rng)

    times: list[list[float]] = [[], []]
    for _ in range(DRAWN + 1):
        for taken, work in zip(times, (search, final), strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    search_s, final_s = (min(each[1:]) for each in times)
    return search_s, final_s


def measured(checkout: Path, number: int) -> tuple[float, float]:
    """Returns ``seconds_of`` shape ``number`` by the code of a checkout, in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--shape", str(number)]
    done = subprocess.run(
        command, cwd=checkout, env={"PYTHONPATH": str(checkout)}, capture_output=True, check=True
    )
    search_s, final_s = json.loads(done.stdout)
    return search_s, final_s


@click.command()
@click.argument("other", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--shape", type=int, help="Print the seconds of one shape by the code that is imported.")
@click.option("--rounds", type=int, default=ROUNDS, show_default=True)
def main(other: Path | None, shape: int | None, rounds: int) -> None:
    """Compares the processor time of verification with that of the checkout OTHER."""
    if shape is not None:
        print(json.dumps(seconds_of(*SHAPES[shape])))
        return
    assert other is not None
    for number, (sizes, dtype) in enumerate(SHAPES):
        ours: list[tuple[float, float]] = []
        theirs: list[tuple[float, float]] = []
        for turn in range(rounds):
            pairs = ((HERE, ours), (other.resolve(), theirs))
            for checkout, taken in pairs if turn % 2 else pairs[::-1]:
                taken.append(measured(checkout, number))
        name = f"{'x'.join(map(str, sizes))} {dtype}"
        for step, place in (("search", 0), ("final", 1)):
            medians = [statistics.median(each[place] for each in taken) for taken in (ours, theirs)]
            here_s, there_s = medians
            times = f"{here_s * 1e3:.2f} ms, {there_s * 1e3:.2f} ms"
            print(f"{name} {step}: {times}, ratio {here_s / there_s:.3f}", flush=True)


if __name__ == "__main__":
    main()
