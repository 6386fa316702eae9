"""A paid extractor from the command line: what it cost, what stops it, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.assembly import build_pipeline, pace
from deploy.exits import Exit
from deploy.settings import Settings, load
from index.errors import BadRequest
from streams.applier import Pace
from streams.extract.base import PaidExtractor

from ..streams import model_endpoint as endpoints
from ..streams.model_endpoint import USAGE, Endpoint, serving
from .terminal import Terminal, lines

PAPERS = [{"id": str(number), "title": "Ann", "text": f"Ann Lee repaired Swallow {number}."} for number in range(6)]


@pytest.fixture
def endpoint(gistream: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with serving() as server:
        monkeypatch.setenv("GISTREAM_EXTRACTOR", "openai")
        monkeypatch.setenv("GISTREAM_EXTRACTOR_BASE_URL", server.url)
        monkeypatch.setenv("GISTREAM_EXTRACTOR_PRICE_INPUT", "1")
        monkeypatch.setenv("GISTREAM_EXTRACTOR_PRICE_OUTPUT", "2")
        monkeypatch.setenv("GISTREAM_EXTRACTOR_MOST_TOKENS", "100")
        yield server


def test_ingest_and_status_tell_what_the_model_cost(gistream: Terminal, endpoint: Endpoint) -> None:
    endpoint.poison["Swallow 3"] = endpoints.refused
    ended = gistream.ok("ingest", "notes", "-", "--json", stdin=lines(*PAPERS))
    assert ended.json["model"] == {
        "calls": 6, "input_tokens": 6 * USAGE.input, "output_tokens": 6 * USAGE.output,
        "cost_usd": 6 * (100 + 2 * 50) / 1e6, "degraded": 1,
    }  # fmt: skip
    assert "could not read 1 passages" in ended.err
    told = gistream.ok("status", "--json").json["model"]
    assert told["outcomes"] == {"answered": 5, "refused": 1} and told["held"] is None
    assert "6 calls, 600 tokens in, 300 out" in gistream.ok("status").out
    assert "model" not in gistream.ok("ingest", "notes", "-", "--json", stdin=lines(*PAPERS[:3])).json
    assert gistream.ok("verify", "notes", "--json").json["equal"]


def test_a_spent_budget_ends_ingest_and_a_larger_one_goes_on(
    gistream: Terminal, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GISTREAM_BUDGET_USD", "0.0016")
    ended = gistream("ingest", "notes", "-", stdin=lines(*PAPERS))
    assert ended.code == Exit.MODEL and "GISTREAM_BUDGET_USD" in ended.err
    told = gistream.ok("status", "--json").json
    assert told["model"]["cost_usd"] <= 0.0016 and "budget is spent" in told["model"]["held"]
    assert "nothing is read at present" in gistream.ok("status").out
    asked = len(endpoint.requests)

    monkeypatch.setenv("GISTREAM_BUDGET_USD", "1")
    gistream.ok("ingest", "notes", "-", stdin=lines({"id": "last", "text": "Bea Lee left."}))
    told = gistream.ok("status", "--json").json
    assert told["namespaces"]["notes"]["documents"] == 7 and told["dead_letters"] == 0, "what was accepted had waited"
    assert told["model"]["held"] is None
    assert len(endpoint.requests) == 7 and asked < 7


def test_a_wrong_key_ends_ingest_and_nothing_is_lost(gistream: Terminal, endpoint: Endpoint) -> None:
    endpoint.poison["Ann"] = endpoints.status(401)
    ended = gistream("ingest", "notes", "-", stdin=lines(*PAPERS))
    assert ended.code == Exit.MODEL and "OPENAI_API_KEY" in ended.err
    endpoint.poison.clear()
    gistream.ok("ingest", "notes", "-", stdin="")
    gistream.ok("ingest", "notes", "-", stdin=lines({"id": "last", "text": "Bea Lee left."}))
    told = gistream.ok("status", "--json").json
    assert told["namespaces"]["notes"]["documents"] == 7 and told["dead_letters"] == 0


def test_the_parts_are_made_of_the_settings(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTREAM_EXTRACTOR_STRATEGY", "staged")
    monkeypatch.setenv("GISTREAM_EXTRACTOR_CONCURRENCY", "3")
    settings = load()
    extractor = build_pipeline(settings).extractor
    assert isinstance(extractor, PaidExtractor) and extractor.concurrency == 3
    assert "gpt-4o-mini" in extractor.fingerprint and "staged" in extractor.fingerprint
    assert pace(settings).batch_events == 6
    assert pace(settings).mend_seconds == Pace().mend_seconds


def test_a_budget_in_dollars_needs_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest, match="extractor_price_input"):
        load({"budget_usd": 1.0})
    assert load({"budget_usd": 1.0, "extractor_price_output": 2.0}).budget_usd == 1.0
    assert Settings.model_fields["budget_tokens"].default is None
