"""A SLURM job array, each of whose jobs is a node."""

import shlex

from tuner.fleet.scripts.node_command import DRAIN_S, NodeCommand, at_least_one, one_line


def slurm_job(command: NodeCommand, nodes: int, cores: int, time: str, options: tuple[str, ...] = ()) -> str:
    """Returns a script for ``sbatch``: a job array, each of whose ``nodes`` jobs is a node of the fleet.

    ``cores`` are the processors of each node, ``time`` is the time limit as SLURM writes it ("02:00:00"),
    ``options`` are further options of sbatch, such as "--partition=gpu". A node is signalled to end 120 s
    (DRAIN_S) before its time limit. Raises UsageError for fewer than 1 node or core, and for a time or an
    option of several lines.
    """
    directives = (
        "--job-name=tuner-fleet",
        "--output=tuner-fleet-%A_%a.log",
        f"--array=0-{at_least_one('nodes', nodes) - 1}",
        "--ntasks=1",
        f"--cpus-per-task={at_least_one('cores', cores)}",
        *_device(command),
        f"--time={time}",
        f"--signal=TERM@{DRAIN_S}",
        *options,
    )
    lines = (
        "#!/bin/bash",
        *(f"#SBATCH {one_line('sbatch', directive)}" for directive in directives),
        "set -euo pipefail",
        *(f"export {assignment}" for assignment in command.assignments),
        # srun does not inherit it from sbatch
        f"exec srun --cpus-per-task={cores} {shlex.join(command.words)}",
    )
    return "".join(f"{line}\n" for line in lines)


def _device(command: NodeCommand) -> tuple[str, ...]:
    """Returns the directives that give a measuring node exclusive use of its GPU or machine."""
    if command.needs_gpu:
        return ("--gres=gpu:1",)
    return ("--exclusive",) if command.has_device else ()
