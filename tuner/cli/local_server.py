"""A web server on the loopback interface that runs until Ctrl-C."""

import threading
from collections.abc import Callable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tuner.core.errors import UsageError

HOST = "127.0.0.1"  # loopback: other machines cannot connect
Application = Callable[..., Any]  # WSGI application, PEP 3333


class _QuietHandler(WSGIRequestHandler):
    """Request handler that logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        """Does not log the request."""


def listening(port: int, application: Application) -> WSGIServer:
    """Returns an HTTP server for a WSGI application that listens on 127.0.0.1; port 0 picks a free port.

    Raises UsageError if the port cannot be used, such as one that is in use.
    """
    try:
        return make_server(HOST, port, application, handler_class=_QuietHandler)
    except OSError as error:
        raise UsageError(f"port {port}: {error.strerror}", "--port 0 takes a free one") from error


def serve(server: WSGIServer) -> None:
    """Serves HTTP requests until Ctrl-C, then returns.

    The server runs in a thread, since wsgiref drops an interrupt during a request.
    """
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    try:
        thread.start()
        thread.join()
    except KeyboardInterrupt:
        if thread.is_alive():  # ``shutdown`` waits for a loop that runs
            server.shutdown()
