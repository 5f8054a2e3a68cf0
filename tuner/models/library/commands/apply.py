"""``tuner apply``: a transform script, or a library of schedules, on a payload."""

import re
from pathlib import Path
from typing import Any

import click

from tuner.cli.options import EXPORTED, json_option, library_option
from tuner.core.errors import UsageError
from tuner.core.processors import processor_of
from tuner.core.text_files import read_text_or_stdin
from tuner.space.scripts.header import is_exported, source_file

FUNCTION = re.compile(r"^\s*\w+\.func\b", re.MULTILINE)
SEQUENCE = re.compile(r"^[^/\n]*\btransform\.(?:named_)?sequence\b", re.MULTILINE)


@click.command()
@click.argument("script", type=click.Path(path_type=Path, allow_dash=True))
@click.argument("payload", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--allow-effects", is_flag=True, help="Also passes that write files or start programs.")
@click.option(
    "--cpu", default="", metavar="NAME", help="The result is for this processor: sapphirerapids, znver4, ..."
)
@click.option("--strict", is_flag=True, help="Of a library: exit with 1 where it left a contraction alone.")
@click.option(
    "--debug-bind-trailing-args",
    "trailing",
    default="",
    metavar="LIST",
    help="Arguments of the entry after the first, as mlir-opt's option: linalg.matmul,^linalg.fill,#8;16.",
)
@library_option
@json_option
@click.pass_context
def apply(
    context: click.Context,
    /,
    script: Path,
    payload: Path | None,
    cpu: str,
    **_options: Any,
) -> None:
    """Applies a transform script of any origin to a payload and prints the result; - is stdin.

    Without PAYLOAD, the schedules in a file are applied to its functions, one schedule after another.

    A script runs passes by name. Those that write files, start programs or print are refused unless
    --allow-effects says that the script is trusted. A script whose result needs instructions that this
    machine does not have is refused, unless --cpu or the script's provenance names another processor.

    With --library, sequences that the script declares come from other files, as mlir-opt preloads them.

    Of a library of several schedules it lists each contraction of the payload on stderr: the entry that
    took it, or why none did.

    Example: tuner apply best.mlir best.source.mlir
    """
    if cpu:
        processor_of(cpu)
    if str(script) == str(payload) == "-":
        raise UsageError("apply: only one of SCRIPT and PAYLOAD can be '-' (stdin)")
    script_text = read_text_or_stdin(script, "MLIR text", hint=EXPORTED)
    is_own = is_exported(script_text)
    is_script = is_own or SEQUENCE.search(script_text) is not None
    if payload is None and is_script and not FUNCTION.search(script_text):
        source = str(source_file(script)) if is_own and str(script) != "-" else "PAYLOAD.mlir"
        raise UsageError(
            f"apply: the payload is missing: {script.name} has no function", f"tuner apply {script} {source}"
        )
    payload_text = script_text if payload is None else read_text_or_stdin(payload, "MLIR text", hint=EXPORTED)
    if payload is not None and not SEQUENCE.search(script_text) and SEQUENCE.search(payload_text):
        raise UsageError(
            f"apply: script and payload are exchanged: {script.name} has no transform sequence, "
            f"{payload.name} has one",
            f"tuner apply {payload} {script}",
        )
    from tuner.models.library.commands.applied import apply_script  # loads MLIR: the texts are right

    context.exit(apply_script(context, script_text, payload_text))
