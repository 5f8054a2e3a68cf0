"""Developers' commands on runs: ``python -m benchmarks COMMAND``, with the options of ``tuner``."""

import click

from benchmarks.record_space import record_space
from benchmarks.verify_resume import verify_resume
from tuner.cli.main import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Records search spaces, and checks that killed runs resume exactly.

    Example: python -m benchmarks verify-resume --runs 1 --sampler tpe --trials 25
    """


commands.program = "python -m benchmarks"
commands.add_command(record_space)
commands.add_command(verify_resume)

if __name__ == "__main__":
    commands()
