"""Measure retrieval on a question set: stream its passages in as documents, ask its questions, and score what comes back."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from index.delta import facts_of, indexed_text
from index.errors import BadRequest, NotFound
from index.home import Home
from index.models.base import Embedder
from index.models.hashing import HashingEmbedder
from index.models.openai import OpenAIEmbedder
from index.models.recorded import RecordedEmbedder, Recording
from index.reader import Reader
from index.text import clean
from query.evaluate import ask, embedded, latencies, scores
from query.modes.base import Mode
from streams.apply import Applied
from streams.chunk import WHOLE
from streams.extract.base import Extractor
from streams.extract.recorded import RecordedExtractor
from streams.extract.rules import RulesExtractor
from streams.local import Pace, Runner
from streams.log import Log
from streams.pipeline import Pipeline

from .kit import Kit
from .settings import Settings

EMBEDDED_AS = "all-MiniLM-L6-v2"
"""The model of the recorded vectors."""
BATCH = 500

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, how much there is."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `gistream eval` prints; `ranks` holds the rankings, per mode and question."""

    figures: Mapping[str, Any]
    ranks: Sequence[Mapping[str, Any]]


def extractor(name: str, kit: Kit) -> Extractor:
    """`rules`, or `recorded:NAME` for the kit's extractions_NAME.jsonl.gz."""
    if name == "rules":
        return RulesExtractor()
    kind, _, source = name.partition(":")
    if kind != "recorded" or not source:
        raise BadRequest(f"there is no extractor {name!r}", hint="use rules or recorded:NAME")
    return RecordedExtractor.load_kit(kit.folder, source)


def embedder(name: str, kit: Kit, settings: Settings, written: Mapping[str, str]) -> Embedder:
    """`hashing`, `openai` (the configured endpoint), or `recorded` (the kit's vectors; what they lack comes from the endpoint, if there is one)."""
    if name == "hashing":
        return HashingEmbedder()
    endpoint = None
    if settings.embedding_base_url is not None or name == "openai":
        endpoint = OpenAIEmbedder.from_settings(settings)
    if name == "openai" and endpoint is not None:
        return endpoint
    if name != "recorded":
        raise BadRequest(f"there is no embedder {name!r}", hint="use recorded, hashing or openai")
    files = sorted((kit.folder.resolve().parent / "embeddings").glob(f"{kit.folder.resolve().name}.*.npz"))
    if not files:
        raise NotFound(f"there are no recorded vectors of {kit.folder}", hint="use --embedder hashing or openai")
    return RecordedEmbedder([Recording.load(file) for file in files], model=EMBEDDED_AS, fallback=endpoint, written=written)


def written(kit: Kit, extractor: Extractor) -> dict[str, str]:
    """Clean spelling -> spelling as extracted, of every fact and name whose white space the index cleans."""
    found = {}
    for extraction in extractor.extract([(row.get("title", ""), row["text"]) for row in kit.passages]):
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
    progress: Progress = lambda what, done, of: None,
) -> Report:
    """Index the kit, unless `data` holds it already, and ask every question in every mode.

    Raises MissingRecording, once, with the number of texts, where vectors or extractions are not recorded and no endpoint is configured.
    """
    with ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gistream-eval-")))
        ingest = index_kit(kit, pipeline, folder, progress)
        snapshot = Reader(Home(folder).incarnation(kit.namespace)).snapshot
    questions = kit.asked()
    vectors = embedded(questions, pipeline.embedder)
    figures: dict[str, Any] = {}
    ranks: list[dict[str, Any]] = []
    for name, mode in modes.items():
        progress(f"asking {name}", 0, len(questions))
        rankings = ask(snapshot, mode, questions, vectors, kit.names())
        progress(f"asking {name}", len(questions), len(questions))
        figures[name] = scores(questions, rankings) | latencies(rankings)
        ranks += [{"qid": ranked.id, "top": list(ranked.top)} | ({"mode": name} if len(modes) > 1 else {}) for ranked in rankings]
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
    """Bring a data folder to hold exactly the kit, through the log and the runner; figures of the work that took."""
    home, note = Home(folder), folder / f"{kit.namespace}.kit.json"
    made = {"passages": kit.digest(), "fingerprint": pipeline.fingerprint.model_dump()}
    if note.exists() and json.loads(note.read_text()) == made and kit.namespace in home.names():
        return {"reused": True}
    require_recorded(kit, pipeline)
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with Log(folder / "log.db") as log:
        if kit.namespace in home.names():
            home.bury(kit.namespace, {"log": log.last_position()})
        done = 0

        def count(namespace: str, applied: Applied) -> None:
            nonlocal done
            done += applied.events
            progress("indexing", done, len(kit.passages))

        with Runner(home, log, pipeline, pace=Pace(batch_events=BATCH), on_batch=count) as runner:
            events = list(kit.events())
            for start in range(0, len(events), BATCH):
                log.append(events[start : start + BATCH])
                runner.step()
            runner.drain()
            if letters := runner.letters.waiting(limit=1):
                raise BadRequest(f"{runner.letters.count()} passages could not be indexed: {letters[0].reason}")
    elapsed = time.perf_counter() - started
    note.write_text(json.dumps(made))
    return {"reused": False, "seconds": round(elapsed, 2), "passages_per_second": round(len(kit.passages) / elapsed, 1)}


def require_recorded(kit: Kit, pipeline: Pipeline) -> None:
    """Ask a recording without endpoint for everything at once, so that one error counts all that it lacks."""
    if not isinstance(pipeline.embedder, RecordedEmbedder) or pipeline.embedder.remote:
        return
    passages = [(row.get("title", ""), row["text"]) for row in kit.passages]
    texts = [f"{title}\n{text}" if title else text for title, text in passages]
    for extraction in pipeline.extractor.extract(passages):
        texts += [surface for _, heard in facts_of(extraction) for _, surface in heard]
    texts += [question["question"] for question in kit.questions]
    pipeline.embedder.embed(list(dict.fromkeys(texts)))
