"""Tests of both roles in a row, without a broker: what was accepted becomes an index, and is paid for once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

import streams.share
from index.errors import ModelUnavailable, StoreError, WriterBusy
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.plan import Changes
from index.reader import Reader
from index.token import Token
from index.types import Accepted, DocumentEvent, Extraction, Triple
from index.writer import Writer
from streams import trouble
from streams.applier import Applier, Pace
from streams.apply import apply
from streams.connection import APPLY, UNDERSTAND
from streams.extract.base import Text
from streams.pipeline import Pipeline
from streams.position import NOTHING
from streams.prepare import Preparer
from streams.rebuild import rebuild, verify
from streams.register import Register
from streams.renewal import Renewal
from streams.roles import ledgers, start_over
from streams.share import Share
from streams.wire import namespace_partition

from .kafkaless import NOW, PARTITIONS, REGISTER, SINCE, Stream, drain, fetch
from .preparing import Remote
from .stubs import SMALL, PaidNoting, small_pipeline

EVERYTHING = range(PARTITIONS)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0,))
    monkeypatch.setattr(streams.share, "ADVANCE_SECONDS", 0.0)


class Facts(PaidNoting):
    """Every passage is one fact; `away` while it does not answer."""

    away = False

    def extract(self, passages: Sequence[Text]) -> list[Extraction]:
        if self.away:
            raise ModelUnavailable("no answer")
        self.read += [text for _, text in passages]
        return [Extraction("m", ("Ada",), (Triple("Ada", "wrote", text),)) for _, text in passages]


def applier_of(share: Share) -> Applier:
    assert isinstance(share.work, Applier)
    return share.work


def degraded(home: Home, name: str = "ada") -> int:
    return int(Reader(home.incarnation(name)).snapshot.dataset("passages").count_rows("degraded"))


def test_an_understood_record_says_where_it_came_from(tmp_path: Path) -> None:
    stream = Stream(tmp_path, small_pipeline())
    offsets = [stream.documents.event(DocumentEvent(namespace="ada", id="x", text="now"), skip=4) for _ in range(2)]
    share = Share(stream.understand, EVERYTHING)
    drain(share, stream.documents)
    share.close()
    told = stream.understood.partitions[namespace_partition("ada", PARTITIONS)]
    [partition] = [number for number, records in enumerate(stream.documents.partitions) if records]
    source = REGISTER.documents.source(partition)
    assert [dict(one.headers) for one in told] == [
        {
            "origin": str(Token(source, offset)).encode(),
            "stamp": b"%d" % ((NOW + number) * 1000),
            "version": b"%d" % (SINCE + offset),
        }
        for number, offset in enumerate(offsets)
    ]
    assert [(one.key, one.value) for one in told] == [
        (one.key, one.value) for one in stream.documents.partitions[partition]
    ]
    applying = Share(stream.apply(), EVERYTHING)
    drain(applying, stream.understood)
    applying.close()
    positions = Reader(stream.home.incarnation("ada")).snapshot.manifest.positions
    assert positions == {source: offsets[-1], REGISTER.understood.source(told[0].partition): 1}


def test_each_text_is_bought_once_and_the_applier_buys_none(tmp_path: Path) -> None:
    extractor, embedder = Facts(), Remote()
    stream = Stream(tmp_path, Pipeline(SMALL, extractor, embedder))
    stream.send(*"abc")
    stream.send("a", "x", text="It was a long day at the pier. Nobody came to see the ship. {id}")
    understanding = Share(stream.understand, EVERYTHING)
    drain(understanding, stream.documents)
    understanding.close()
    bought, embedded = Counter(extractor.read), Counter(embedder.asked)
    assert set(bought.values()) == set(embedded.values()) == {1}
    for _ in range(2):
        share = Share(stream.apply(), EVERYTHING)
        drain(share, stream.understood)
        share.close()
        start_over(stream.home, UNDERSTAND, REGISTER)
        start_over(stream.home, APPLY, REGISTER)
        understanding = Share(stream.understand, EVERYTHING)
        drain(understanding, stream.documents)
        understanding.close()
    assert (Counter(extractor.read), Counter(embedder.asked)) == (bought, embedded)
    assert stream.ids() == {*"abcx"} and degraded(stream.home) == 0
    assert not list(verify(stream.home, "ada", stream.pipeline))


def test_free_extractors_have_their_facts_embedded_ahead_too(tmp_path: Path) -> None:
    embedder = Remote()
    stream = Stream(tmp_path, Pipeline(SMALL, small_pipeline().extractor, embedder))
    stream.send(*"abc")
    understanding = Share(stream.understand, EVERYTHING)
    drain(understanding, stream.documents)
    embedded = Counter(embedder.asked)
    share = Share(stream.apply(), EVERYTHING)
    drain(share, stream.understood)
    assert embedder.asked == embedded
    understanding.close()
    share.close()


def test_what_is_not_known_is_read_by_the_fallback_and_mended_later(tmp_path: Path) -> None:
    """As after a power loss that took the last answers. It is not bought again where it is known by then, and what is
    bought is kept: a clean rebuild is the same index.
    """
    extractor = Facts()
    stream = Stream(tmp_path, Pipeline(SMALL, extractor, HashingEmbedder(16)))
    stream.send("a")
    understanding = Share(stream.understand, EVERYTHING)
    drain(understanding, stream.documents)
    understanding.close()
    stream.home.understanding("ada").rename(tmp_path / "lost")
    share = Share(stream.apply(pace=Pace(mend_seconds=0.0, checkpoint_seconds=3600)), EVERYTHING)
    applier, before = applier_of(share), len(extractor.read)
    extractor.away = True
    drain(share, stream.understood)
    assert degraded(stream.home) == 1 and stream.ids() == {"a"} and not applier.troubles
    extractor.away = False
    for _ in range(3):
        applier.step()
    assert degraded(stream.home) == 0 and len(extractor.read) == before + 1
    assert not list(verify(stream.home, "ada", stream.pipeline))
    share.close()


def test_what_is_known_by_then_is_mended_for_nothing(tmp_path: Path) -> None:
    extractor = Facts()
    stream = Stream(tmp_path, Pipeline(SMALL, extractor, HashingEmbedder(16)))
    stream.send("a")
    understanding = Share(stream.understand, EVERYTHING)
    drain(understanding, stream.documents)
    understanding.close()
    known, lost = stream.home.understanding("ada"), tmp_path / "lost"
    known.rename(lost)
    share = Share(stream.apply(), EVERYTHING)
    drain(share, stream.understood)
    share.close()
    assert degraded(stream.home) == 1
    known.rename(tmp_path / "empty")
    lost.rename(known)
    extractor.away = True
    share = Share(stream.apply(pace=Pace(mend_seconds=0.0)), EVERYTHING)
    applier_of(share).step()
    assert degraded(stream.home) == 0
    share.close()


def test_a_former_writer_is_passed_by_and_a_rebuild_is_not(tmp_path: Path) -> None:
    stream = Stream(tmp_path, small_pipeline())
    stream.send(*"abcde")
    understanding, share = (Share(role, EVERYTHING) for role in (stream.understand, stream.apply()))
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    share.close()
    folder, pipeline = stream.home.incarnation("ada"), stream.pipeline
    zombie = Writer.open(folder, pipeline.fingerprint, pipeline.embedder.embed)
    share = Share(stream.apply(), EVERYTHING)
    stream.send("f")
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    assert "f" in stream.ids()
    share.close()
    zombie.release()

    with Renewal(stream.home, "ada", small_pipeline(), batch=2) as renewal:
        share = Share(stream.apply(), EVERYTHING)
        applier = applier_of(share)
        stream.send("g", "a")
        stream.send("x", namespace="bob")
        drain(understanding, stream.documents)
        fetch(share, stream.understood)
        for _ in range(3):
            applier.step()
            share.settle()
        assert isinstance(applier.troubles.of("ada"), WriterBusy) and share.work.is_held_up
        assert stream.ids("bob") == {"x"} and "g" not in stream.ids()
        while renewal.replay.step(partial(_commit, stream, renewal.opened.writer)):
            pass
        renewal.finish()
    drain(share, stream.understood)
    share.close()
    understanding.close()
    assert stream.home.incarnation("ada") != folder
    assert stream.ids() == set("abcdefg") and not applier.troubles
    assert not list(verify(stream.home, "ada", stream.pipeline))


def test_what_was_written_past_a_rebuild_is_not_lost(tmp_path: Path) -> None:
    """A worker that passed by the lock of a hanging one holds none for a moment, so a rebuild may begin beside it."""
    stream = Stream(tmp_path, small_pipeline())
    stream.send("a")
    understanding, share = (Share(role, EVERYTHING) for role in (stream.understand, stream.apply()))
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    share.close()
    folder, pipeline = stream.home.incarnation("ada"), stream.pipeline
    hanging = Writer.open(folder, pipeline.fingerprint, pipeline.embedder.embed)
    share = Share(stream.apply(), EVERYTHING)
    stream.send("b")
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    hanging.release()
    with Renewal(stream.home, "ada", small_pipeline()) as renewal:
        assert isinstance(share.work, Applier)
        [writer] = share.work.writers()
        with pytest.raises(WriterBusy):
            writer.hold()
        writer.commit(Changes(), {}, 0)
        successor = renewal.opened.writer
        while renewal.replay.step(partial(_commit, stream, successor)):
            pass
        with pytest.raises(StoreError, match="was written while it was made anew"):
            renewal.finish()
    stream.send("c")
    drain(understanding, stream.documents)
    drain(share, stream.understood)
    assert stream.home.incarnation("ada") == folder and stream.ids() == {*"abc"}
    with pytest.raises(WriterBusy):
        rebuild(stream.home, "ada", small_pipeline())
    share.close()
    understanding.close()
    rebuild(stream.home, "ada", small_pipeline())
    assert stream.home.incarnation("ada") != folder and stream.ids() == {*"abc"}


def _commit(stream: Stream, writer: Writer, batch: Sequence[Accepted]) -> None:
    apply(writer, "ada", batch, stream.pipeline.chunker, stream.pipeline.extractor.extract)


def test_reading_from_the_beginning_again_skips_what_is_held(tmp_path: Path) -> None:
    stream = Stream(tmp_path, small_pipeline())
    stream.send(*"abc")
    understanding = Share(stream.understand, EVERYTHING)
    drain(understanding, stream.documents)
    understanding.close()
    share = Share(stream.apply(), EVERYTHING)
    drain(share, stream.understood)
    share.close()
    before = Reader(stream.home.incarnation("ada")).snapshot.manifest.number
    start_over(stream.home, APPLY, REGISTER)
    share = Share(stream.apply(), EVERYTHING)
    assert {ledger.position for ledger in share.ledgers.values()} == {NOTHING}
    assert fetch(share, stream.understood) == 3
    drain(share, stream.understood)
    share.close()
    after = Reader(stream.home.incarnation("ada")).snapshot.manifest
    assert after.number == before + 1, "it was opened, and that is all"


def test_another_topic_of_understood_events_is_told_everything_anew(tmp_path: Path) -> None:
    home = Home(tmp_path)
    again = Register(REGISTER.documents, REGISTER.understood.model_copy(update={"number": 2}))
    assert ledgers(home, UNDERSTAND, REGISTER) != ledgers(home, UNDERSTAND, again)
    assert ledgers(home, APPLY, REGISTER) == ledgers(home, APPLY, again)
    assert REGISTER.understood.source(0) != again.understood.source(0)


def test_each_role_has_its_own_work(tmp_path: Path) -> None:
    stream = Stream(tmp_path, small_pipeline())
    understanding, applying = (Share(role, [0]) for role in (stream.understand, stream.apply()))
    assert isinstance(understanding.work, Preparer) and isinstance(applying.work, Applier)
    assert understanding.work.durable is None and applying.work.durable == {}
    understanding.close()
    applying.close()
