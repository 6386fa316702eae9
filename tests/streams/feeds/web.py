"""A web server of this machine for tests: it answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass
class Web:
    """What is published by path. A page that is published has an ETag, and is not sent to whoever names it."""

    url: str
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, Message]] = field(default_factory=list)
    """Path and headers of every request."""
    under_way: int = 0
    most_under_way: int = 0
    hold: threading.Event | None = None
    """Answers wait for it where there is one."""

    def publish(self, path: str, body: bytes, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies[path] = Reply(200, {"ETag": f'"{sha256(body).hexdigest()}"'} | named, body)

    def answer(self, path: str, status: int, **headers: str) -> None:
        self.replies[path] = Reply(status, {name.replace("_", "-"): value for name, value in headers.items()})


@contextmanager
def web() -> Iterator[Web]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with lock:
                site.asked.append((self.path, self.headers))
                site.under_way += 1
                site.most_under_way = max(site.most_under_way, site.under_way)
            try:
                if site.hold is not None:
                    site.hold.wait(10)
                self._reply(site.replies.get(self.path, Reply(404)))
            finally:
                with lock:
                    site.under_way -= 1

        def _reply(self, reply: Reply) -> None:
            etag = reply.headers.get("ETag")
            if etag and self.headers.get("If-None-Match") == etag:
                reply = Reply(304, {"ETag": etag})
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Web(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
