"""Command lines that start nodes over SSH."""

import shlex

from tuner.core.errors import UsageError
from tuner.fleet.scripts.node_command import NodeCommand, one_line

LOG = "tuner-fleet.log"  # in the folder where SSH begins


def ssh_lines(command: NodeCommand, hosts: tuple[str, ...]) -> str:
    """Returns a shell script with one line per host that starts a node there over ssh.

    The node keeps running when the connection ends. ``-n`` keeps ssh from reading the script's remaining
    lines as its input. Raises UsageError for a host's name that ssh would read as an option, and for one that
    is empty or has control characters.
    """
    remote = f"{' '.join(command.assignments)} nohup {shlex.join(command.words)} >>{LOG} 2>&1 </dev/null &"
    return "".join(f"ssh -n {_host(host)} {shlex.quote(remote)}\n" for host in hosts)


def _host(text: str) -> str:
    """Returns a host's name, quoted for a shell. Raises UsageError for a name that ssh reads as an option."""
    if text.startswith("-"):
        raise UsageError(f"host: found {text!r}, allowed a name or an address, such as me@build1")
    return shlex.quote(one_line("host", text))
