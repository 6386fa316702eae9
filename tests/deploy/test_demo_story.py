"""The demo's story holds together: its script names what its documents say, once and nowhere else."""

from __future__ import annotations

from itertools import pairwise

import pytest

from deploy.demo.story import Story, load
from index.errors import InvalidEvent, NotFound
from index.text import names, norm, sentences


@pytest.fixture(scope="module")
def story() -> Story:
    return load("demo")


def test_about_fifty_short_documents_and_one_long(story: Story) -> None:
    lengths = {event.id: len(sentences(event.text)) for event in story.events}
    assert len(lengths) == len(story.events), "ids are unique"
    assert 45 <= len(lengths) <= 55
    assert lengths.pop(story.edit.document) >= 120
    assert {name: n for name, n in lengths.items() if not 2 <= n <= 8} == {}


def test_documents_come_in_the_order_of_one_year(story: Story) -> None:
    times = [event.event_time for event in story.events if event.event_time is not None]
    assert len(times) == len(story.events)
    assert {time.year for time in times} == {2031}
    assert all(earlier <= later for earlier, later in pairwise(times))


def test_every_document_says_what_it_is(story: Story) -> None:
    for event in story.events:
        assert event.title
        assert event.op == "upsert"
        assert event.namespace == "demo"
        assert event.metadata["kind"] in {"log", "letter", "notice", "report", "chat"}
        assert event.metadata["source"]


def test_corrections_follow_what_they_correct(story: Story) -> None:
    seen: set[str] = set()
    corrected: set[str] = set()
    for event in story.events:
        if earlier := event.metadata.get("corrects"):
            assert earlier in seen, f"{event.id} corrects {earlier}, which does not stand before it"
            corrected.add(earlier)
        seen.add(event.id)
    assert len(corrected) >= 5


def test_questions_need_several_documents_that_exist(story: Story) -> None:
    known = {event.id for event in story.events}
    assert len(story.questions) == 5
    for question in story.questions:
        assert len(set(question.gold)) >= 2
        assert set(question.gold) <= known
        assert question.answer
        assert question.hops
        assert story.deletion.document not in question.gold, "its answer must outlive the deletion"


def test_the_first_gold_document_does_not_hold_the_last_hop(story: Story) -> None:
    for question in story.questions:
        last = norm(question.hops.rsplit(" -> ", 1)[-1].split(";")[0])
        assert last not in norm(story.document(question.gold[0]).text)


def test_the_edit_replaces_one_whole_sentence_that_stands_once(story: Story) -> None:
    assert sum(event.text.count(story.edit.before) for event in story.events) == 1
    assert not any(story.edit.after in event.text for event in story.events)
    old = sentences(story.document(story.edit.document).text)
    new = sentences(story.edited().text)
    changed = [(before, after) for before, after in zip(old, new, strict=True) if before != after]
    assert changed == [(story.edit.before, story.edit.after)]


def test_the_edit_makes_a_name_go_and_a_name_come(story: Story) -> None:
    before = {name.text for name in names(story.edit.before)}
    after = {name.text for name in names(story.edit.after)}
    elsewhere = " ".join(event.text for event in story.events).replace(story.edit.before, "")
    assert any(name not in elsewhere for name in before - after)
    assert any(name not in elsewhere for name in after - before)
    assert any(name in elsewhere for name in after - before), "one name of the new sentence is known already"


def test_the_canary_stands_in_the_deleted_document_alone(story: Story) -> None:
    canary = norm(story.deletion.canary)
    holders = [event.id for event in story.events if canary in norm(f"{event.title} {event.text} {event.metadata}")]
    assert holders == [story.deletion.document]
    assert canary not in norm(story.deletion.question)


def test_the_deletion_is_a_delete_of_that_document(story: Story) -> None:
    event = story.deleted()
    assert (event.op, event.namespace, event.id) == ("delete", "demo", story.deletion.document)
    assert not event.text


def test_a_bad_namespace_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="namespace"):
        load("No Namespace")


def test_an_unknown_document_is_refused(story: Story) -> None:
    with pytest.raises(NotFound, match="nobody"):
        story.document("nobody")
