"""A model for tests, behind OpenAI's chat completions on this machine: it reads by the rules and fails by script."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from streams.extract.rules import RulesExtractor
from streams.extract.spending import Usage

Passage = tuple[str, str]
Fault = Callable[["Endpoint"], tuple[int, object]]
"""What is answered instead: a status and a body; DISCONNECT for no answer at all."""
DISCONNECT: Final = 0
USAGE: Final = Usage(100, 50)
"""What every answer says it took."""


class Endpoint(ThreadingHTTPServer):
    """Answers every question about a passage or a memory; counts what it was asked.

    The next answers are replaced by `faults`, and those to a text with one of the words of `poison` in it always are.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, latency: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.latency = latency
        self.faults: list[Fault] = []
        self.poison: dict[str, Fault] = {}
        self.requests: list[dict[str, Any]] = []
        self.asked: Counter[Passage] = Counter()
        """Requests by (title, text)."""
        self.answered: Counter[Passage] = Counter()
        """Whole answers by (title, text), steps of staged reading apart."""
        self.active = self.most_active = 0
        self.lock = threading.Lock()
        self.gate = threading.Event()
        """While it is clear, nobody is answered."""
        self.gate.set()

    def complete(self, request: dict[str, Any]) -> tuple[int, object]:
        """Status and body of the answer to a request."""
        material = json.loads(request["messages"][-1]["content"])
        passage = (material.get("title", ""), material.get("passage") or material.get("memory", ""))
        with self.lock:
            self.requests.append(request)
            self.asked[passage] += 1
            fault = self.faults.pop(0) if self.faults else None
            fault = next((bad for word, bad in self.poison.items() if word in passage[1]), fault)
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        try:
            self.gate.wait(20)
            time.sleep(self.latency)
            if fault is not None:
                return fault(self)
            with self.lock:
                self.answered[passage] += 1
            return 200, completion(json.dumps(answer(request, passage)))
        finally:
            with self.lock:
                self.active -= 1


def answer(request: dict[str, Any], passage: Passage) -> dict[str, Any]:
    """What the rules read, in the form that the request asks for."""
    [found] = RulesExtractor().extract([passage])
    known = {
        "think": "It is plain.",
        "memory": passage[1],
        "named_entities": list(found.entities),
        "triples": [list(triple) for triple in found.triples],
    }
    return {name: known[name] for name in request["response_format"]["json_schema"]["schema"]["required"]}


def completion(content: str | None, finish: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    """A completion with that content."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": USAGE.input, "completion_tokens": USAGE.output, "total_tokens": sum(USAGE)},
    }


def status(code: int, kind: str = "", message: str = "told to") -> Fault:
    """An error of the protocol."""
    return lambda endpoint: (code, {"error": {"message": message, "type": "error", "code": kind or None}})


def garbage(endpoint: Endpoint) -> tuple[int, object]:
    return 200, completion('{"memory": "half an ans')


def other_form(endpoint: Endpoint) -> tuple[int, object]:
    return 200, completion('{"memory": "m", "named_entities": "Ada", "triples": [["one", "two"]]}')


def truncated(endpoint: Endpoint) -> tuple[int, object]:
    return 200, completion('{"memory": "cut o', "length")


def refused(endpoint: Endpoint) -> tuple[int, object]:
    return 200, completion(None, refusal="I would rather not.")


def filtered(endpoint: Endpoint) -> tuple[int, object]:
    return 200, completion("", "content_filter")


def page(endpoint: Endpoint) -> tuple[int, object]:
    return 200, "<html>It works!</html>"


def disconnect(endpoint: Endpoint) -> tuple[int, object]:
    return DISCONNECT, ""


def slow(seconds: float) -> Fault:
    def fault(endpoint: Endpoint) -> tuple[int, object]:
        time.sleep(seconds)
        return 503, {"error": {"message": "too late"}}

    return fault


class _Handler(BaseHTTPRequestHandler):
    wbufsize = -1  # head and body in one packet: two would wait for each other
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        code, body = self.server.complete(request)
        if code == DISCONNECT:
            self.close_connection = True
            return
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@contextmanager
def serving(latency: float = 0.0) -> Iterator[Endpoint]:
    """An endpoint that answers until the block ends."""
    server = Endpoint(latency)
    # A client that was killed is no news.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


def whole(endpoint: Endpoint, passages: Sequence[Passage]) -> list[int]:
    """How often each passage was answered."""
    return [endpoint.answered[passage] for passage in passages]
