"""A process that accepts and indexes documents until somebody kills it.

`python -m tests.system.ingesting FOLDER SEED [CHECKPOINT_SECONDS]` prints `try DOCUMENT REVISION` before and
`ack DOCUMENT REVISION` after every event it accepts.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from index.home import Home
from index.models.hashing import HashingEmbedder
from index.types import DocumentEvent
from streams.applier import Pace
from streams.chunk import ChunkConfig
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline

NAMESPACE = "crash"
PIPELINE = Pipeline(ChunkConfig(least=8, most=24), RulesExtractor(), HashingEmbedder(64))
DOCUMENTS = 12
NAMES = ("Anna Ruiz", "Bo Larsen", "Cape Horn", "Delta Works", "Eli Stone", "Fort Nine", "Gale House", "Hull Road")


def event(document: int, revision: int, chance: random.Random) -> DocumentEvent:
    """Revision `revision` of a document; every seventh one deletes it."""
    if revision % 7 == 0:
        return DocumentEvent(op="delete", namespace=NAMESPACE, id=str(document), version=revision)
    sentences = [
        "{} wrote to {} about {} in {}.".format(*chance.choices(NAMES, k=3), 1900 + chance.randrange(40))
        for _ in range(chance.randrange(12))
    ]
    text = " ".join([f"This is revision {revision} of document {document}.", *sentences])
    return DocumentEvent(
        namespace=NAMESPACE,
        id=str(document),
        version=revision,
        title=f"Paper {document}",
        text=text,
        metadata={"revision": revision},
    )


def main(folder: Path, seed: int, checkpoint_seconds: float) -> None:
    chance = random.Random(seed)
    revisions = dict.fromkeys(range(DOCUMENTS), seed * 100_000)
    with Log(folder / "log.db") as log:
        runner = Runner(Home(folder), log, PIPELINE, pace=Pace(batch_events=5, checkpoint_seconds=checkpoint_seconds))
        runner.start()
        while runner.error is None:
            batch = []
            for _ in range(chance.randrange(1, 5)):
                document = chance.randrange(DOCUMENTS)
                revisions[document] += 1
                batch.append(event(document, revisions[document], chance))
                print("try", document, revisions[document], flush=True)
            log.append(batch)
            for accepted in batch:
                print("ack", accepted.id, accepted.version, flush=True)
        raise runner.error


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.3)
