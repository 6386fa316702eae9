"""The extractor behind an endpoint, through the real client: what it reads, what fails how, and what that costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import BudgetSpent, ModelHeld, ModelMisset, ModelUnavailable
from index.metrics import Metrics
from index.text import norm
from index.types import Extraction, Triple
from streams.extract import prompts
from streams.extract.base import PaidExtractor
from streams.extract.openai import OpenAIExtractor, _extraction
from streams.extract.rules import RulesExtractor
from streams.extract.spending import Budget, Price, Spending

from . import model_endpoint as endpoints
from .model_endpoint import Endpoint, Fault, completion, serving

PASSAGE = ("Ada", "Ada Moor met Bo Larsen in Port Ellery.")
OTHER = ("Bo", "Bo Larsen left Port Ellery.")
PRICE = Price(input=1.0, output=2.0)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


@pytest.fixture
def make(endpoint: Endpoint, tmp_path: Path) -> Callable[..., OpenAIExtractor]:
    def maker(budget: Budget | None = None, **options: Any) -> OpenAIExtractor:
        spending = Spending(tmp_path / "spending.db", budget or Budget(), PRICE)
        options = {"base_url": endpoint.url, "max_retries": 0, "timeout": 10.0, **options}
        return OpenAIExtractor("m", spending, **options)

    return maker


Make = Callable[..., OpenAIExtractor]


def by_rules(passage: tuple[str, str]) -> Extraction:
    [found] = RulesExtractor().extract([passage])
    return found


def spent(extractor: OpenAIExtractor) -> dict[str, tuple[int, int, int]]:
    """Calls, tokens in and tokens out by outcome."""
    return {outcome: (row.calls, row.input, row.output) for outcome, row in extractor.spending.by_outcome().items()}


@pytest.mark.parametrize(("strategy", "calls"), [("combined", 1), ("staged", 3)])
def test_a_passage_becomes_memory_names_and_facts(make: Make, endpoint: Endpoint, strategy: str, calls: int) -> None:
    extractor = make(strategy=strategy)
    assert isinstance(extractor, PaidExtractor)
    expected = by_rules(PASSAGE)
    [found] = extractor.extract([PASSAGE])
    assert found.memory == PASSAGE[1] and not found.degraded
    # The second and third step read the memory, which has no title to begin with.
    subject = expected if strategy == "combined" else by_rules(("", PASSAGE[1]))
    assert (found.entities, found.triples) == (subject.entities, subject.triples)
    assert len(endpoint.requests) == calls
    assert spent(extractor) == {"answered": (calls, calls * 100, calls * 50)}


def test_a_request_is_strict_and_the_passage_is_data(make: Make, endpoint: Endpoint) -> None:
    make(most_tokens=77).extract([PASSAGE])
    [request] = endpoint.requests
    form = request["response_format"]["json_schema"]
    assert form["strict"] and form["schema"]["additionalProperties"] is False
    assert form["schema"]["required"] == ["memory", "named_entities", "triples"]
    assert (request["model"], request["temperature"], request["max_completion_tokens"]) == ("m", 0, 77)
    assert json.loads(request["messages"][1]["content"]) == {"title": "Ada", "passage": PASSAGE[1]}


def test_the_fingerprint_names_model_strategy_and_prompts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make().fingerprint
    assert first == make(concurrency=3, timeout=1.0).fingerprint
    assert first != make(strategy="staged").fingerprint
    assert prompts.VERSION in first and "m" in first


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_nothing_is_not_asked_about(make: Make, endpoint: Endpoint, text: str) -> None:
    assert make().extract([("Title", text)]) == [Extraction()]
    assert not endpoint.requests


@pytest.mark.parametrize(
    ("fault", "outcome", "calls"),
    [
        (endpoints.garbage, "garbage", 3),
        (endpoints.other_form, "garbage", 3),
        (endpoints.truncated, "truncated", 1),
        (endpoints.refused, "refused", 1),
        (endpoints.filtered, "refused", 1),
        (endpoints.status(400, "context_length_exceeded"), "refused", 1),
        (endpoints.status(400, "content_filter"), "refused", 1),
        (endpoints.status(413), "refused", 1),
    ],
)
def test_what_one_passage_does_to_the_model_is_its_own_affair(
    make: Make, endpoint: Endpoint, fault: Fault, outcome: str, calls: int
) -> None:
    """It is read by the rules, and the others of the call are not held up."""
    endpoint.poison["Larsen in"] = fault
    extractor = make(concurrency=2)
    found = extractor.extract([OTHER, PASSAGE])
    assert [one.degraded for one in found] == [False, True]
    assert found[1] == extractor.fall_back(PASSAGE)
    assert found[1].triples == by_rules(PASSAGE).triples
    assert extractor.spending.by_outcome()[outcome].calls == calls
    if fault in (endpoints.garbage, endpoints.truncated, endpoints.refused):
        assert extractor.spending.by_outcome()[outcome].cost == pytest.approx(calls * PRICE.of(endpoints.USAGE))
    endpoint.poison.clear()
    assert not extractor.extract([PASSAGE])[0].degraded, "the next time it is asked again"


def test_garbage_is_asked_again_at_once(make: Make, endpoint: Endpoint) -> None:
    endpoint.faults += [endpoints.garbage, endpoints.other_form]
    extractor = make()
    assert not extractor.extract([PASSAGE])[0].degraded
    assert spent(extractor) == {"answered": (1, 100, 50), "garbage": (2, 200, 100)}


@pytest.mark.parametrize(
    "fault", [endpoints.status(429), endpoints.status(500), endpoints.status(503), endpoints.disconnect]
)
def test_what_passes_is_tried_again_by_the_client(make: Make, endpoint: Endpoint, fault: Fault) -> None:
    metrics = Metrics()
    endpoint.faults += [fault, fault]
    extractor = make(max_retries=2, metrics=metrics)
    assert not extractor.extract([PASSAGE])[0].degraded
    assert spent(extractor) == {"answered": (1, 100, 50)}, "one call, whatever it took"
    assert "gistream_model_retries_total 2.0" in metrics.render().decode()
    assert 'gistream_model_calls_total{outcome="answered"} 1.0' in metrics.render().decode()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (endpoints.status(429), "429"),
        (endpoints.status(500), "500"),
        (endpoints.disconnect, "cannot be reached"),
        (endpoints.slow(1.0), "in time"),
    ],
)
def test_what_does_not_pass_is_recoverable(make: Make, endpoint: Endpoint, fault: Fault, says: str) -> None:
    endpoint.faults.append(fault)
    extractor = make(timeout=0.2)
    with pytest.raises(ModelUnavailable, match=says) as caught:
        extractor.extract([PASSAGE])
    assert caught.value.recoverable and endpoint.url in str(caught.value)
    assert not extractor.extract([PASSAGE])[0].degraded
    outcomes = spent(extractor)
    assert outcomes["unavailable"][0] == 1
    assert (outcomes["unavailable"][2] > 0) == ("in time" in says), "what timed out may have been billed"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (endpoints.status(401), "OPENAI_API_KEY"),
        (endpoints.status(403), "OPENAI_API_KEY"),
        (endpoints.status(404), "GISTREAM_EXTRACTOR_MODEL"),
        (endpoints.status(400, "unsupported_value"), "JSON schema"),
        (endpoints.page, "JSON schema"),
    ],
)
def test_wrong_settings_are_no_fault_of_a_passage(make: Make, endpoint: Endpoint, fault: Fault, says: str) -> None:
    endpoint.faults.append(fault)
    with pytest.raises(ModelMisset, match=says) as caught:
        make().extract([PASSAGE])
    assert isinstance(caught.value, ModelHeld) and not caught.value.recoverable


def test_an_endpoint_that_has_answered_before_knows_what_it_is_asked(make: Make, endpoint: Endpoint) -> None:
    extractor = make()
    extractor.extract([OTHER])
    endpoint.faults.append(endpoints.status(400, "strange"))
    assert extractor.extract([PASSAGE])[0].degraded


def test_a_passage_that_fails_while_others_are_answered_is_given_up(make: Make, endpoint: Endpoint) -> None:
    endpoint.poison["Larsen in"] = endpoints.status(500)
    extractor = make()
    for text in ("One.", "Two."):
        with pytest.raises(ModelUnavailable):
            extractor.extract([PASSAGE])
        with pytest.raises(ModelUnavailable):
            extractor.extract([PASSAGE])  # nobody else was answered meanwhile: it may be the endpoint
        extractor.extract([("", text)])
    assert extractor.extract([PASSAGE]) == [extractor.fall_back(PASSAGE)]


def test_a_paid_step_is_not_asked_again(make: Make, endpoint: Endpoint) -> None:
    extractor = make(strategy="staged")
    endpoint.gate.clear()
    future = extractor.begin(PASSAGE)
    endpoint.gate.set()
    future.result()
    endpoint.requests.clear()
    steps = iter([None, endpoints.status(503)])
    endpoint.poison["Larsen left"] = lambda server: (next(steps, None) or _well)(server)
    with pytest.raises(ModelUnavailable):
        extractor.extract([OTHER])
    assert not extractor.extract([OTHER])[0].degraded
    assert spent(extractor)["answered"][0] == 3 + 3


def _well(server: Endpoint) -> tuple[int, object]:
    request = server.requests[-1]
    material = json.loads(request["messages"][-1]["content"])
    passage = (material.get("title", ""), material.get("passage") or material["memory"])
    return 200, completion(json.dumps(endpoints.answer(request, passage)))


def test_no_more_calls_than_allowed_are_under_way(make: Make, endpoint: Endpoint) -> None:
    endpoint.latency = 0.02
    extractor = make(concurrency=3)
    extractor.extract([("", f"Ada wrote letter {number}.") for number in range(12)])
    assert endpoint.most_active == 3


def test_after_a_failure_what_has_not_begun_is_not_paid_for(make: Make, endpoint: Endpoint) -> None:
    endpoint.faults.append(endpoints.status(401))
    endpoint.latency = 0.05
    with pytest.raises(ModelMisset):
        make(concurrency=1).extract([("", f"Ada wrote letter {number}.") for number in range(12)])
    assert len(endpoint.requests) <= 2


def test_the_budget_is_never_passed_and_says_so(make: Make, endpoint: Endpoint) -> None:
    passages = [("", f"Ada wrote letter {number}.") for number in range(60)]
    extractor = make(Budget(tokens=9_000), most_tokens=200, concurrency=8)
    with pytest.raises(BudgetSpent, match=r"of 9,000 tokens.*GISTREAM_BUDGET_TOKENS"):
        extractor.extract(passages)
    totals = extractor.spending.totals()
    assert 0 < totals.input + totals.output <= 9_000
    assert totals.calls == len(endpoint.requests)
    assert len(make(Budget(tokens=90_000)).extract(passages)) == 60, "a larger budget goes on"


texts = st.text(max_size=12)


@given(texts, st.lists(texts, max_size=4), st.lists(st.tuples(texts, texts, texts), max_size=4))
def test_whatever_a_model_says_has_normal_forms(
    memory: str, names: list[str], triples: list[tuple[str, str, str]]
) -> None:
    found = _extraction(memory, names, triples)
    assert all(norm(name) for name in found.entities)
    assert all(norm(head) and relation.strip() and norm(tail) for head, relation, tail in found.triples)
    assert len(found.triples) == len(set(found.triples))
    said = [Triple(*triple) for triple in triples if norm(triple[0]) and triple[1].strip() and norm(triple[2])]
    assert bool(found.triples) == bool(said)


def test_half_a_character_is_garbage(make: Make, endpoint: Endpoint) -> None:
    content = '{"memory": "\\ud800", "named_entities": [], "triples": []}'
    endpoint.poison["Larsen in"] = lambda server: (200, completion(content))
    assert make().extract([PASSAGE])[0].degraded
