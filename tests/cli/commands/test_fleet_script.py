import pytest
import yaml

from tests.cli.conftest import Tuner

URL = "postgresql://tuner@db.example.org/tuner"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ssh build1 build2", "ssh -n build2 'TUNER_DB="),
        ("slurm --nodes 4 --sbatch=--partition=gpu", "#SBATCH --array=0-3\n"),
        ("slurm", "#SBATCH --cpus-per-task=6\n"),
        ("slurm --cores 9", "#SBATCH --cpus-per-task=9\n"),
        ("kubernetes --image tuner:1", "cpu: '6'"),
    ],
)
def test_what_starts_nodes_is_printed(tuner: Tuner, text: str, found: str) -> None:
    asked = f"fleet script {text} --compile 6 --db {URL}"
    done = tuner(asked)
    assert (done.code, done.err) == (0, "")
    assert found in done.out
    assert tuner(asked, "--json").json == {"kind": text.split()[0], "text": done.out}


def test_a_secret_gives_pods_certificates(tuner: Tuner) -> None:
    text = tuner(f"fleet script kubernetes --image tuner:1 --compile 1 --db {URL} --secret tls").out
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    assert {"name": "PGSSLCERT", "value": "/etc/tuner-fleet/tls.crt"} in container["env"]


def test_a_file_is_no_database_of_a_fleet_and_one_of_this_machine_is_reported(tuner: Tuner) -> None:
    done = tuner.done("fleet script slurm --compile 6 --db postgresql://tuner@localhost/tuner")
    assert done.err == "note: only this machine finds that database: name its host in --db\n"
    assert "allowed postgresql://USER@HOST/DATABASE" in tuner.refused("fleet script slurm --compile 6")
