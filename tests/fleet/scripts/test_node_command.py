from typing import Any

import pytest

from tests.fleet.scripts.nodes import URL
from tuner.core.errors import UsageError
from tuner.fleet.commands.node_scripts import NodeCommand, at_least_one, one_line


def test_the_command_names_what_a_node_does_and_the_environment_where_it_gets_work() -> None:
    command = NodeCommand(URL, "cuda:sm_90", 4, has_device=True, program="/opt/tuner")
    options = "/opt/tuner fleet worker --target cuda:sm_90 --compile 4 --measure"
    assert command.words == tuple(options.split())
    assert command.environment == (("TUNER_DB", URL),)


def test_certificates_are_reported_to_the_library_of_the_server_s_client() -> None:
    command = NodeCommand(URL, slots=1, certificates="/my certs")
    assert dict(command.environment) == {
        "TUNER_DB": URL,
        "PGSSLMODE": "verify-full",
        "PGSSLROOTCERT": "/my certs/ca.crt",
        "PGSSLCERT": "/my certs/tls.crt",
        "PGSSLKEY": "/my certs/tls.key",
    }
    assert command.assignments[-1] == "PGSSLKEY='/my certs/tls.key'"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "history.db", "slots": 1}, "found 'history.db' as its database"),
        ({"url": "postgresql://tuner:secret@db/tuner", "slots": 1}, "the database's URL holds a password"),
        (
            {"url": "postgresql://db/tuner?password=secret", "slots": 1},
            "the database's URL holds a password",
        ),
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


@pytest.mark.parametrize(
    ("url", "is_of_this_machine"),
    [
        (URL, False),
        ("postgresql://tuner@localhost/tuner", True),
        ("postgresql://tuner@[::1]:5433/tuner", True),
        ("postgresql://tuner@/tuner", True),
        ("postgresql://tuner@/tuner?host=/run/postgresql", True),
        ("postgresql://tuner@/tuner?host=db", False),
    ],
)
def test_an_address_that_means_another_machine_on_another_machine_is_reported(
    url: str, is_of_this_machine: bool
) -> None:
    assert NodeCommand(url, slots=1).has_address_of_this_machine == is_of_this_machine


def test_a_gpu_is_needed_where_times_of_one_are_taken() -> None:
    assert NodeCommand(URL, "cuda:sm_90", has_device=True).needs_gpu
    assert not NodeCommand(URL, "cuda:sm_90", slots=1).needs_gpu
    assert not NodeCommand(URL, "cpu", has_device=True).needs_gpu


def test_numbers_and_words_of_scripts_are_checked() -> None:
    assert (at_least_one("nodes", 1), one_line("host", "a b")) == (1, "a b")
    with pytest.raises(UsageError, match="nodes: found 0, allowed 1 or more"):
        at_least_one("nodes", 0)
