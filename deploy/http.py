"""An ASGI application behind a socket, served by uvicorn in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Self

import uvicorn

from index.errors import BadRequest, GistreamError

GRACE_SECONDS = 10
"""What requests under way may still take once the server is told to stop."""
_BACKLOG = 2048


class HttpServer:
    """Listens from `__enter__` to `__exit__`, which lets the requests under way end.

    In a thread of its own, so that the signals of the process remain with whoever has to close more than this.
    """

    def __init__(self, app: Any, host: str, port: int) -> None:
        self._host, self._port = host, port
        # Without log_config uvicorn leaves the logging of the process alone.
        config = uvicorn.Config(app, access_log=False, log_config=None, lifespan="off")
        config.timeout_graceful_shutdown = GRACE_SECONDS
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """Where it listens; with port 0, the port that was free."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        """Raises BadRequest where the address cannot be listened on."""
        listening = _listen(self._host, self._port)
        self._port = listening.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, args=([listening],), name="gistream-http", daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self.running:
                listening.close()
                raise GistreamError("the HTTP server did not start", hint="its log says why")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        hint = "choose another with the settings host and port, or stop what listens there"
        raise BadRequest(f"cannot listen on {host}:{port}: {error.strerror or error}", hint=hint) from error
    # Connections inherit it. asyncio sets it only where the socket's protocol is named, which this one's is not;
    # without it the second packet of every answer waits 40 ms for the acknowledgement of the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
