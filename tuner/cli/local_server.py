"""A web server for this machine alone, until Ctrl-C."""

import threading
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tuner.core.errors import UsageError

HOST = "127.0.0.1"  # nobody else's machine can reach it
Application = Callable[..., Any]  # of WSGI, PEP 3333


class _QuietHandler(WSGIRequestHandler):
    """Answers without a line about each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        """Tells nothing."""


def listening(port: int, application: Application) -> WSGIServer:
    """Returns a server that listens, at a free port for 0. Raises UsageError for one that is taken."""
    try:
        return make_server(HOST, port, application, handler_class=_QuietHandler)
    except OSError as error:
        raise UsageError(f"port {port}: {error.strerror}", "--port 0 takes a free one") from error


def serve(server: WSGIServer) -> None:
    """Answers until Ctrl-C; from a thread, since wsgiref forgets an interrupt that comes within an answer."""
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    try:
        thread.start()
        thread.join()
    except KeyboardInterrupt:
        if thread.is_alive():  # it waits for one that serves
            server.shutdown()
