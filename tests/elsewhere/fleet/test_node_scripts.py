"""Scripts that start nodes; they run with programs that print what they were given."""

import ast
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tuner.core.errors import UsageError
from tuner.elsewhere.fleet.commands.node_scripts import (
    LOG,
    MOUNTED,
    NodeCommand,
    at_least_one,
    kubernetes_manifest,
    one_line,
    slurm_job,
    ssh_lines,
)

URL = "postgresql://tuner@db.example.org/tuner"
TELLS = f"""#!{sys.executable}
import os
import sys

print([sys.argv[1:], {{key: value for key, value in os.environ.items() if key.startswith(("TUNER", "PG"))}}])
"""
COMMAND = NodeCommand(URL, slots=16, certificates="/home/o'neil/my certs")
FAR = '#!/bin/sh\necho "$1 $2"\nexec sh -c "$3"\n'  # in place of ssh: the other machine is this one
COMPILING = NodeCommand(URL + "?options=-c a", slots=16, certificates="/my certs")
HERE = '#!/bin/sh\n[ "$1" = --cpus-per-task=16 ] && shift && exec "$@"\n'  # in place of srun


def run_with(folder: Path, script: str, **programs: str) -> str:
    """Runs a shell script where only the programs given, nohup and env are found; returns what it prints."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("bash", "nohup", "sh"):
        found = next(Path(place) / name for place in os.defpath.split(":") if (Path(place) / name).exists())
        (folder / name).symlink_to(found)
    command, path = ["bash", "-c", script], {"PATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=True).stdout


def assert_is_bash(script: str) -> None:
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_command_names_what_a_node_does_and_the_environment_its_work_and_certificates() -> None:
    command = NodeCommand(URL, "cuda:sm_90", 4, has_device=True, program="/opt/tuner")
    options = "/opt/tuner fleet worker --target cuda:sm_90 --compile 4 --measure"
    assert (command.argv, command.environment) == (tuple(options.split()), (("TUNER_DB", URL),))
    command = NodeCommand(URL, slots=1, certificates="/my certs")
    files = {"PGSSLROOTCERT": "ca.crt", "PGSSLCERT": "tls.crt", "PGSSLKEY": "tls.key"}
    paths = {name: f"/my certs/{file}" for name, file in files.items()}
    assert dict(command.environment) == {"TUNER_DB": URL, "PGSSLMODE": "verify-full", **paths}
    assert command.assignments[-1] == "PGSSLKEY='/my certs/tls.key'"
    assert NodeCommand(URL, "cuda:sm_90", has_device=True).needs_gpu
    assert not NodeCommand(URL, "cuda:sm_90", slots=1).needs_gpu
    assert not NodeCommand(URL, "cpu", has_device=True).needs_gpu


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "history.db", "slots": 1}, "found 'history.db' as its database"),
        ({"url": "postgresql://tuner:secret@db/tuner", "slots": 1}, "the database's URL holds a password"),
        ({"url": "postgresql://db/tuner?password=secret", "slots": 1}, "the database's URL holds a password"),
        ({}, "a node has nothing to do; --compile N"),
        ({"slots": -1}, "compile: found -1, allowed 1 or more"),
        ({"slots": 1, "certificates": "a\rb"}, r"certificates: found 'a\\rb'"),
        ({"slots": 1, "target": "a\nb"}, r"target: found 'a\\nb'"),
        ({"slots": 1, "program": ""}, "program: found '', allowed a text of one line"),
    ],
)
def test_what_no_node_can_have_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        NodeCommand(**{"url": URL, **options})
    assert "secret" not in str(refused.value)


def test_numbers_words_and_addresses_of_scripts_are_checked() -> None:
    local = ("localhost/tuner", "[::1]:5433/tuner", "/tuner", "/tuner?host=/run/postgresql")
    for address in (*local, "db.example.org/tuner", "/tuner?host=db"):
        command = NodeCommand(f"postgresql://tuner@{address}", slots=1)
        assert command.has_address_of_this_machine == (address in local)
    assert (at_least_one("nodes", 1), one_line("host", "a b")) == (1, "a b")
    for make in (lambda: at_least_one("nodes", 0), lambda: manifest(NodeCommand(URL, slots=8), nodes=0)):
        with pytest.raises(UsageError, match="nodes: found 0, allowed 1 or more"):
            make()
    with pytest.raises(UsageError, match="cores: found -1, allowed 1 or more"):
        kubernetes_manifest(NodeCommand(URL, slots=8), "n", 1, -1, "i", "")
    for nodes, cores, limit, options, message in (
        (1, 1, "01:00:00", ("--a\nreboot",), r"sbatch: found '--a\\nreboot', allowed a text of one line"),
        (1, 1, "1\n2", (), r"time: found '1\\n2'"),
        (0, 1, "01:00:00", (), "nodes: found 0"),
        (1, 0, "01:00:00", (), "cores: found 0"),
    ):
        with pytest.raises(UsageError, match=message):
            slurm_job(COMPILING, nodes, cores, limit, options)


def test_there_is_a_line_for_each_host_that_starts_the_command_with_its_environment(tmp_path: Path) -> None:
    hosts = ("build1", "me@build2")
    lines = ssh_lines(COMMAND, hosts)
    assert [line.split()[:3] for line in lines.splitlines()] == [["ssh", "-n", host] for host in hosts]
    assert_is_bash(lines)
    for text in ("-oProxyCommand=reboot", "", "a\nb"):
        with pytest.raises(UsageError, match="host: found"):
            ssh_lines(COMMAND, (text,))
    assert run_with(tmp_path, ssh_lines(COMMAND, ("build 1",)), ssh=FAR, tuner=TELLS) == "-n build 1\n"
    until_s = time.monotonic() + 120
    while not (tmp_path / LOG).read_text() and time.monotonic() < until_s:
        time.sleep(0.01)  # it runs beside us
    assert ast.literal_eval((tmp_path / LOG).read_text()) == [[*COMMAND.argv[1:]], dict(COMMAND.environment)]


def directives(job: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in job.splitlines() if line.startswith("#SBATCH ")]


def test_an_array_has_a_job_for_each_node_that_starts_the_command_with_its_environment(
    tmp_path: Path,
) -> None:
    found = directives(slurm_job(COMPILING, 4, 16, "01:00:00", ("--partition=short",)))
    assert {"--array=0-3", "--cpus-per-task=16", "--time=01:00:00", "--partition=short"} <= set(found)
    assert "--signal=TERM@120" in found
    assert not {"--exclusive", "--gres=gpu:1"} & set(found)
    for target, is_asked_for in (("cuda:sm_90", "--gres=gpu:1"), ("cpu", "--exclusive")):
        found = directives(slurm_job(NodeCommand(URL, target, has_device=True), 1, 1, "01:00:00"))
        assert [text for text in found if text in ("--gres=gpu:1", "--exclusive")] == [is_asked_for]
    job = slurm_job(COMPILING, 2, 16, "01:00:00")
    assert_is_bash(job)
    said = run_with(tmp_path, job, srun=HERE, tuner=TELLS)
    assert ast.literal_eval(said) == [list(COMPILING.argv[1:]), dict(COMPILING.environment)]


def manifest(command: NodeCommand, nodes: int = 3, secret: str = "") -> Any:
    return yaml.safe_load(kubernetes_manifest(command, "tuner: yes", nodes, 8, "registry/tuner:1", secret))


def node_of(document: Any) -> Any:
    (container,) = document["spec"]["template"]["spec"]["containers"]
    return container


def test_a_deployment_has_a_pod_for_each_node_with_its_gpu_its_secret_and_its_volume() -> None:
    command = NodeCommand(URL, slots=8)
    document = manifest(command)
    labels = {"app.kubernetes.io/name": "tuner: yes"}
    assert (document["apiVersion"], document["kind"]) == ("apps/v1", "Deployment")
    assert document["metadata"] == {"name": "tuner: yes", "labels": labels}
    spec = document["spec"]
    assert (spec["replicas"], spec["selector"]["matchLabels"]) == (3, labels)
    assert spec["template"]["metadata"]["labels"] == labels
    node = node_of(document)
    assert (node["image"], node["command"]) == ("registry/tuner:1", list(command.argv))
    assert node["env"] == [{"name": "TUNER_DB", "value": URL}, {"name": "HOME", "value": "/tmp"}]
    assert node["resources"] == {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}
    document = manifest(NodeCommand(URL, "cuda:sm_90", has_device=True), nodes=1)
    assert node_of(document)["resources"]["limits"] == {"cpu": "8", "nvidia.com/gpu": "1"}
    assert document["spec"]["strategy"] == {"type": "Recreate"}
    document = manifest(NodeCommand(URL, slots=8, certificates=MOUNTED), secret="fleet-tls")
    pod, node = document["spec"]["template"]["spec"], node_of(document)
    (volume,) = [each for each in pod["volumes"] if "secret" in each]
    assert volume["secret"] == {"secretName": "fleet-tls", "defaultMode": 0o440}  # nobody else may read it
    assert {"name": "PGSSLKEY", "value": "/etc/tuner-fleet/tls.key"} in node["env"]
    assert {"name": volume["name"], "mountPath": MOUNTED, "readOnly": True} in node["volumeMounts"]
    assert {each["name"] for each in node["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert node["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
