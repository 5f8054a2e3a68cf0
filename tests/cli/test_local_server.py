import os
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tuner.cli.local_server import HOST, listening, serve
from tuner.core.errors import UsageError


def greet(_environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"here"]


def test_it_answers_this_machine_until_interrupted(capfd: pytest.CaptureFixture[str]) -> None:
    with listening(0, greet) as server:
        assert server.server_address[0] == HOST
        answers: list[bytes] = []

        def ask_and_interrupt() -> None:
            with urllib.request.urlopen(f"http://{HOST}:{server.server_port}/", timeout=120) as answer:
                answers.append(answer.read())
            os.kill(os.getpid(), signal.SIGINT)

        asking = threading.Thread(target=ask_and_interrupt)
        asking.start()
        serve(server)
        asking.join()
    assert answers == [b"here"]
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_refused() -> None:
    with listening(0, greet) as taken:
        port = taken.server_port
        with pytest.raises(
            UsageError, match=f"port: found {port}, Address already in use; allowed a free one"
        ):
            listening(port, greet)
