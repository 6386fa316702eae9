"""`gistream search`: ask a namespace a question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from index.errors import BadRequest

from .. import show
from ..options import Data, Json, Namespace, configured
from ..where import conditions

if TYPE_CHECKING:
    from index.home import Home
    from query.explanation import Explanation, NearFact, QuestionRead, Why
    from query.retrieve import Answer
    from query.waiting import Staleness

    from ..settings import Settings

_TEXT_SHOWN = 400
"""Characters of a passage; `--json` has all of it."""
_NAMES_SHOWN = 8

_Moment = Annotated[
    str | None,
    typer.Option(
        metavar="MOMENT",
        show_default=False,
        help="Only content of this time or later (--since), or earlier (--until), in ISO 8601.",
    ),
]


def search(
    namespace: Namespace,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question, in words.")],
    mode: Annotated[str | None, typer.Option(show_default=False, help="fused, cogito, dense, bm25 or hybrid.")] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", show_default=False, help="How many passages, 1 to 200.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what led to each passage.")] = False,
    since: _Moment = None,
    until: _Moment = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            show_default=False,
            help="Only where the metadata says so: = >= <= > <, or KEY alone; values of one KEY are alternatives.",
        ),
    ] = None,
    phrase: Annotated[
        str | None, typer.Option(metavar="WORDS", show_default=False, help="Only passages with these words in a row.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", show_default=False, help="Ask an older snapshot: its number, or a moment in ISO 8601."
        ),
    ] = None,
    wait_for: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", show_default=False, help="Wait for this write. (env: GISTREAM_WAIT_TIMEOUT)"),
    ] = None,
    max_staleness: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            show_default=False,
            help="Wait for all that was accepted so long ago or earlier. (env: GISTREAM_WAIT_TIMEOUT)",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Ask a namespace a question; the whole answer comes from one snapshot.

    Example: gistream search notes "Who repaired the boat of Ada's sister?" --explain
    """
    from index.history import parse_when, standing
    from index.home import Home
    from index.metrics import Metrics
    from index.token import Token
    from query.filters import Filter
    from query.history import History
    from query.limits import DEFAULT_K, DEFAULT_MODE
    from query.readers import Readers
    from query.retrieve import retrieve
    from query.waiting import until_fresh

    from ..assembly import build_embedder
    from ..embedders import Deferred, Embedders

    settings = configured(data=data)
    token = None if wait_for is None else Token.parse(wait_for)
    when = None if as_of is None else parse_when(as_of)
    filter = Filter(since=_moment(since), until=_moment(until), where=conditions(where or []), phrase=phrase)
    if when is not None and (token is not None or max_staleness is not None):
        raise BadRequest("--as-of asks what was", hint="it cannot wait for what comes (--wait-for, --max-staleness)")
    home = Home(settings.data)
    readers = Readers(home, Metrics(), exact_max=settings.exact_max)
    with _staleness(settings, home) as staleness:
        if token is not None:
            readers.renewed(namespace).wait_for(token.source, token.position, settings.wait_timeout)
        if max_staleness is not None:
            asyncio.run(until_fresh(readers, staleness, namespace, max_staleness, settings.wait_timeout))
        snapshot = History(readers, Metrics()).snapshot(namespace, when)
        embedders = Embedders(settings, Deferred(lambda: build_embedder(settings)), lambda embedder: embedder)
        with standing(snapshot.folder, snapshot.manifest.number):
            answer = retrieve(
                snapshot,
                embedders(snapshot.manifest.fingerprint.embedder),
                question,
                mode=DEFAULT_MODE if mode is None else mode,
                k=DEFAULT_K if k is None else k,
                eligible=filter.mask(snapshot),
                with_explanation=explain,
                staleness_seconds=staleness(namespace, snapshot.manifest.positions) if when is None else None,
            )
    if json:
        show.as_json(answer.model_dump(mode="json"))
    else:
        for line in _lines(answer):
            print(show.printable(line))


def _moment(written: str | None) -> datetime | None:
    from index.history import parse_moment

    try:
        return None if written is None else parse_moment(written)
    except ValueError as error:
        raise BadRequest(
            f"{written[:40]!r} is no moment" if written else "a moment is empty", hint=str(error)
        ) from None


@contextmanager
def _staleness(settings: Settings, home: Home) -> Iterator[Staleness]:
    """What knows how stale a snapshot is; nobody does where there is no log."""
    from streams.log import Log

    from ..assembly import log_path
    from ..lag import Lag

    if not log_path(settings).exists():
        yield lambda *_: None
        return
    with Log(log_path(settings)) as log:
        yield Lag(log, home).staleness


def _lines(answer: Answer) -> Iterator[str]:
    if answer.explanation:
        yield from _asked(answer.explanation)
    for rank, passage in enumerate(answer.passages, start=1):
        yield f"{rank}. {passage.score:.4f}  {passage.document}  {passage.title}"
        yield f"   {show.short(passage.text, _TEXT_SHOWN)}"
        yield from _why(passage.why) if passage.why else ()
    if not answer.passages:
        yield "nothing was found"
    notes = "".join(f", {name}: {note}" for name, note in answer.notes.items())
    newest = "" if answer.watermark is None else f" of {answer.watermark:%Y-%m-%d %H:%M:%S}"
    behind = f", {answer.staleness_seconds:.1f} s behind" if answer.staleness_seconds else ""
    yield f"mode {answer.mode}, snapshot {answer.snapshot}{newest}{behind}{notes}"


def _asked(explanation: Explanation) -> Iterator[str]:
    for read in explanation.questions:
        yield from _read(read)
    if explanation.anchor:
        named = _listed(f"{title.title} {title.sure:.2f}" for title in explanation.titles)
        yield f"read: {f'names {named}, ' if named else ''}nearest is {explanation.anchor}"
        if explanation.rest:
            yield f"   of all others is asked: {explanation.rest}"


def _read(read: QuestionRead) -> Iterator[str]:
    yield f"read: {read.question}"
    yield f"   near facts: {_facts(read.facts)}"
    yield f"   seeds: {_listed(f'{seed.entity} {seed.start:.3f}' for seed in read.seeds)}"
    yield f"   entities: {_listed(f'{active.entity} {active.mass:.3f}' for active in read.entities)}"


def _why(why: Why) -> Iterator[str]:
    told = {
        "cosine": None if why.cosine is None else f"{why.cosine:.3f}",
        "ranks": _listed(f"{mode} {rank}" for mode, rank in why.ranks.items()),
        "words": _listed(f"{term.term} {term.weight:.2f}" for term in why.terms),
        "mass": None if why.mass is None else f"{why.mass:.4f}",
        "by way of": _listed(f"{active.entity} {active.mass:.3f}" for active in why.entities),
        "facts": _facts(why.facts),
        "sentence": why.sentence and show.short(why.sentence, _TEXT_SHOWN),
        "parts": why.parts and _listed(f"{name} {part:.3f}" for name, part in dict(why.parts).items() if part),
        "leapt": why.leapt and f"over {why.leapt.name} from {why.leapt.document}, +{why.leapt.gain:.3f}",
    }
    for name, value in told.items():
        if value:
            yield f"   {name}: {value}"


def _facts(facts: list[NearFact]) -> str:
    return _listed(f"({fact.fact}) {fact.similarity:.3f}" for fact in facts)


def _listed(parts: Iterator[str]) -> str:
    listed = list(parts)
    return ", ".join(listed[:_NAMES_SHOWN]) + (f" and {rest} more" if (rest := len(listed) - _NAMES_SHOWN) > 0 else "")
