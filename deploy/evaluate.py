"""Measure retrieval on a question set: stream its passages in as documents, ask its questions, score the answers."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from index.delta import facts_of
from index.errors import BadRequest, InvalidEvent, MissingRecording, NotFound
from index.home import Home
from index.models.base import Embedder
from index.models.recorded import RecordedEmbedder, Recording
from index.naming import about, sentences_of
from index.reader import Reader
from index.text import clean
from index.types import DocumentEvent, Passage
from query.evaluate import ask, embedded, latencies, scores
from query.modes.base import Mode
from streams.applier import Pace
from streams.apply import Applied
from streams.extract.base import Extractor
from streams.extract.recorded import RecordedExtractor
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

from .assembly import build_embedder
from .kit import Kit
from .settings import Settings

RECORDED_MODEL = "all-MiniLM-L6-v2"
"""The model of the recorded vectors of every question set."""
BATCH = 500

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, how much there is."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `gistream eval` prints; `ranks` holds the rankings, per mode and question."""

    figures: Mapping[str, Any]
    ranks: Sequence[Mapping[str, Any]]


def extractor(name: str, kit: Kit) -> Extractor:
    """`rules`, or `recorded:NAME` for the set's extractions_NAME.jsonl.gz.

    Raises BadRequest for any other name and ModelError where the recording cannot be read.
    """
    kind, _, source = name.partition(":")
    if kind == "recorded" and source:
        return RecordedExtractor.load_kit(kit.folder, source)
    if name != "rules":
        raise BadRequest(f"there is no extractor {name!r}", hint="use rules or recorded:NAME")
    return RulesExtractor()


def embedder(name: str, kit: Kit, settings: Settings, written: Mapping[str, str]) -> Embedder:
    """`hashing`, `local`, `openai` (the configured endpoint), or `recorded`: the vectors of the set, else the endpoint.

    `written` is that of `RecordedEmbedder`. Raises BadRequest for any other name, NotFound where nothing is recorded,
    and ModelError where files or the endpoint do not fit.
    """
    if name in ("hashing", "local", "openai"):
        return build_embedder(settings.model_copy(update={"embedder": name}))
    if name != "recorded":
        raise BadRequest(f"there is no embedder {name!r}", hint="use recorded, hashing, local or openai")
    folder = kit.folder.resolve()
    files = sorted((folder.parent / "embeddings").glob(f"{folder.name}.*.npz"))
    if not files:
        raise NotFound(f"there are no recorded vectors of {kit.folder}", hint="use --embedder hashing or openai")
    has_endpoint = settings.embedding_base_url is not None
    endpoint = build_embedder(settings.model_copy(update={"embedder": "openai"})) if has_endpoint else None
    recordings = [Recording.load(file) for file in files]
    return RecordedEmbedder(recordings, model=RECORDED_MODEL, fallback=endpoint, written=written)


def written(kit: Kit, extractor: Extractor) -> dict[str, str]:
    """Clean spelling -> spelling as extracted, of every fact and name whose white space the index cleans."""
    found = {}
    for extraction in extractor.extract(_texts(kit)):
        for triple in extraction.triples:
            for text in (triple.head, triple.tail, " ".join(triple)):
                if clean(text) != text:
                    found[clean(text)] = text
    return found


def run(
    kit: Kit,
    modes: Mapping[str, Mode],
    pipeline: Pipeline,
    data: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Report:
    """Index the set, unless `data` holds it already, and ask every question in every mode.

    Without `data` the index is thrown away afterwards. Raises what `index_kit` raises.
    """
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gistream-eval-")))
        ingest = index_kit(kit, pipeline, folder, progress)
        snapshot = Reader(Home(folder).incarnation(kit.namespace)).snapshot
        questions, names = kit.asked(), kit.names()
        vectors = embedded(questions, pipeline.embedder)
        figures: dict[str, Any] = {}
        ranks: list[dict[str, Any]] = []
        for name, mode in modes.items():
            rankings = ask(
                snapshot, mode, questions, vectors, names, _counted(progress, f"asking {name}", len(questions))
            )
            figures[name] = scores(questions, rankings) | latencies(rankings)
            label = {"mode": name} if len(modes) > 1 else {}
            ranks += [{"qid": ranked.id, "top": list(ranked.top)} | label for ranked in rankings]
    report = {
        "kit": kit.namespace,
        "questions": len(questions),
        "scored": sum(bool(question.gold) for question in questions),
        "fingerprint": pipeline.fingerprint.model_dump(),
        "index": snapshot.manifest.counts.model_dump(),
        "ingest": ingest,
        "modes": figures,
    }
    return Report(report, ranks)


def index_kit(kit: Kit, pipeline: Pipeline, folder: Path, progress: Progress) -> Mapping[str, Any]:
    """Bring a data folder to hold exactly the set, through the log and the runner; figures of the work that took.

    A note beside the index says what it was made of; where that is the same, nothing is done. Raises MissingRecording,
    once, with the number of texts, where vectors are recorded in part and there is no endpoint; InvalidEvent where a
    passage cannot be indexed; BadRequest where the folder has a namespace of that name that no evaluation made.
    """
    home, note = Home(folder), folder / f"{kit.namespace}.kit.json"
    made = json.dumps({"passages": kit.digest(), "fingerprint": pipeline.fingerprint.model_dump()})
    exists = kit.namespace in home.names()
    if exists and not note.exists():
        raise BadRequest(
            f"the namespace {kit.namespace} in {folder} was not made by an evaluation",
            hint="give --data a folder of its own",
        )
    if exists and note.read_text() == made:
        return {"reused": True}
    _require_recorded(kit, pipeline)
    folder.mkdir(parents=True, exist_ok=True)
    # An evaluation that is cut short leaves this note, which fits no set: the next one begins anew.
    note.write_text("unfinished")
    started = time.perf_counter()
    with Log(folder / "log.db") as log:
        if exists:
            home.bury(kit.namespace, {"log": log.last_position()})
        _stream(kit, pipeline, home, log, progress)
    elapsed = time.perf_counter() - started
    note.write_text(made)
    return {"reused": False, "seconds": round(elapsed, 2), "passages_per_second": round(len(kit.passages) / elapsed, 1)}


def _stream(kit: Kit, pipeline: Pipeline, home: Home, log: Log, progress: Progress) -> None:
    step = _counted(progress, "indexing", len(kit.passages))

    def on_batch(namespace: str, applied: Applied) -> None:
        for _ in range(applied.events):
            step()

    with Runner(home, log, pipeline, pace=Pace(batch_events=BATCH), on_batch=on_batch) as runner:
        runner.letters.erase(kit.namespace)
        events = list(kit.events())
        for start in range(0, len(events), BATCH):
            log.append(events[start : start + BATCH])
            runner.step()
        runner.drain()
        refused = [letter for letter in runner.letters.waiting() if letter.namespace == kit.namespace]
    if refused:
        raise InvalidEvent(
            f"passage {refused[0].id} of {kit.folder} cannot be indexed: {refused[0].reason}",
            hint="repair the set, or leave the passage out",
        )


def _require_recorded(kit: Kit, pipeline: Pipeline) -> None:
    """Ask a recording without endpoint for everything at once, so that one error counts all that it lacks."""
    if not isinstance(pipeline.embedder, RecordedEmbedder) or pipeline.embedder.remote:
        return
    passages = _texts(kit)
    texts = [f"{title}\n{text}" if title else text for title, text in passages]
    if pipeline.sentences:
        texts += [sentence.text for event in kit.events() for sentence in sentences_of(_whole(event))]
    for extraction in pipeline.extractor.extract(passages):
        texts += [surface for _, heard in facts_of(extraction) for _, surface in heard]
    texts += [question.text for question in kit.asked()]
    try:
        pipeline.embedder.embed(list(dict.fromkeys(texts)))
    except MissingRecording as error:
        hint = f"let GISTREAM_EMBEDDING_BASE_URL name an endpoint of {RECORDED_MODEL}, or use --embedder hashing"
        raise MissingRecording(error.message, hint=hint) from None


def _whole(event: DocumentEvent) -> Passage:
    """The only passage of a document, as far as its sentences go."""
    subject = about(event.title, event.text, event.metadata)
    return Passage(bytes(16), event.id, event.title, event.text, "{}", None, about=subject)


def _texts(kit: Kit) -> list[tuple[str, str]]:
    return [(row.get("title") or "", row["text"]) for row in kit.passages]


def _counted(progress: Progress, what: str, total: int) -> Callable[[], None]:
    """`progress` as a function that is called once for every thing done."""
    done = count(1)
    return lambda: progress(what, next(done), total)
