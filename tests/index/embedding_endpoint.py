"""An endpoint for embeddings on this machine, with a hash for a model and faults on demand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Endpoint(ThreadingHTTPServer):
    """Answers /v1/embeddings with vectors made from the text's hash; the next answers can be replaced by faults."""

    daemon_threads = True
    dimensions = 16

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.requests: list[dict[str, Any]] = []
        self.faults: list[Callable[[dict[str, Any]], tuple[int, object]]] = []
        self.pause = threading.Event()
        self.pause.set()
        self.active = self.most_active = 0
        self.lock = threading.Lock()

    def sent(self) -> list[str]:
        return [text for request in self.requests for text in request["input"]]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        size = request.get("dimensions", self.dimensions)
        rows = [
            {"object": "embedding", "index": i, "embedding": vector(text, size)}
            for i, text in enumerate(request["input"])
        ]
        # Reversed: the order of the answer is in `index` alone.
        return {
            "object": "list",
            "model": request["model"],
            "data": rows[::-1],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }


class _Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # head and body in one packet: two would wait for each other
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(request)
            fault = self.server.faults.pop(0) if self.server.faults else None
            self.server.active += 1
            self.server.most_active = max(self.server.most_active, self.server.active)
        self.server.pause.wait(10)
        status, body = fault(request) if fault else (200, self.server.answer(request))
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        with self.server.lock:
            self.server.active -= 1
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


def vector(text: str, size: int) -> list[float]:
    """What the endpoint answers for `text`; not of unit length."""
    digest = hashlib.shake_128(text.encode()).digest(size)
    return [byte / 100 - 1 for byte in digest]


@contextmanager
def serving() -> Iterator[Endpoint]:
    """An endpoint that answers until the block ends."""
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.pause.set()
        server.shutdown()
        thread.join()
        server.server_close()
