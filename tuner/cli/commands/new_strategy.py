"""``tuner new-strategy``: writes starter files of a custom strategy."""

import shlex
import sys
from pathlib import Path

import click

from tuner.cli.options import json_option, print_found
from tuner.core.errors import UsageError


@click.command("new-strategy")
@click.argument("name", metavar="NAME")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where to write. Default: the current folder.",
)
@json_option
def new_strategy(name: str, folder: Path, as_json: bool) -> None:
    """Writes three starter files of a custom strategy, which work: script template, search space, test.

    Example: tuner new-strategy my_tiles
    """
    from tuner.output.atomic_write import write_atomically
    from tuner.scripts.new_strategy import starter_files
    from tuner.space.file.reading import load_space_file
    from tuner.space.file.shipped import default_space_file

    shipped = load_space_file(default_space_file()).strategies
    files = {folder / file.name: file.text for file in starter_files(name, tuple(e.name for e in shipped))}
    for path in files:
        if path.exists():
            raise UsageError(f"{path}: exists, and is not replaced")
    if not folder.is_dir():
        raise UsageError(f"--folder: no such folder: {folder}")
    for path, text in files.items():
        write_atomically(path, text.encode())
        print(f"wrote {path}", file=sys.stderr)
    space, test = (shlex.quote(str(folder / file)) for file in (f"{name}.yaml", f"test_{name}.py"))
    print_found(
        as_json,
        {"strategy": name, "files": [str(path) for path in files]},
        f"next  tuner tune matmul 64x64x64 --space {space} --strategy {name} --trials 4",
        f"      python -m pytest {test}    # needs: pip install pytest",
    )
