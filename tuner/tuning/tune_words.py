"""What a user would type to begin a run on a recording."""

from pathlib import Path

from tuner.core.runs import RunSettings


def tune_words(settings: RunSettings, file: Path) -> tuple[str, ...]:
    """Returns the words that follow ``tuner tune``."""
    problem = settings.problem
    options = {
        "--dtype": problem.dtype,
        "--layout": problem.layout,
        "--epilogue": problem.epilogue,
        "--output": problem.result_dtype,
        "--target": f"replay:{file}",
        "--sampler": settings.sampler,
        "--trials": str(settings.trials),
        "--seed": str(settings.seed),
        "--workers": str(settings.workers),
    }
    return (problem.operation, problem.shape, *(word for pair in options.items() for word in pair))
