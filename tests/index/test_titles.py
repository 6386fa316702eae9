"""Tests of sentences, titles and sessions in a plan: the joins against what a naive look at all passages finds."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from index import records
from index.graph.segment import Relation, total
from index.naming import sentences_of, telling
from index.titles import Titles, votes
from index.turns import read
from index.types import Extraction, Passage

from . import naive, naive_spoken
from .naive import entries, moved
from .planned import Batch, Planned

TITLES = ("", "The Osprey", "osprey (ship)", "Pier 9", "It", "The Who", "Don't Look Back", "Bo's Pier", "LiHua", "C#")
TEXTS = (
    "Ada met Bo at Pier 9. Who is it?",
    "The OSPREY sank, and the Osprey's captain looked back. Don't look back, said Bo.",
    "LiHua: We met Li Hua on Bo's pier. It was the who of it.",
    "Osprey is written in C# by lihua.",
    "Nobody was there.",
    "",
)
METADATA = ("{}", '{"order":2,"session":"s"}', '{"order":1,"session":"s"}', '{"order":-1,"session":"t"}')

passages = st.builds(
    naive.passage,
    st.just(""),
    st.sampled_from(TEXTS),
    st.sampled_from(TITLES),
    st.sampled_from(METADATA),
    st.just(Extraction()),
)
batches = st.dictionaries(st.sampled_from("abcd"), st.none() | passages, max_size=4)


def says(text: str, title: str = "", metadata: str = "{}") -> Passage:
    return naive.passage("", text, title, metadata, Extraction())


@given(st.lists(batches, max_size=6))
@example([{"a": says(TEXTS[1])}, {"b": says(TEXTS[4], "The Osprey")}, {"b": None}])  # a title comes after its mention
@example([{"a": says(TEXTS[1], "The Osprey"), "b": says(TEXTS[4], "osprey")}, {"a": None}, {"b": says(TEXTS[1])}])
@example([{"a": says(TEXTS[1], "Pier 9")}, {"a": says(TEXTS[1], "The Osprey")}])  # the same text under another title
@example([{"a": says(TEXTS[2], "", METADATA[1])}, {"a": says(TEXTS[2], "", METADATA[2])}])  # a turn moves
def test_any_batches_give_the_joins_of_what_is_left(history: list[Batch]) -> None:
    planned = Planned()
    for batch in history:
        planned.apply(batch)
    state = total(planned.segments)
    left = list(planned.passages.values())
    for relation, expected in naive_spoken.relations(left).items():
        assert entries(state[relation]) == expected, relation.name

    said = {sentence.key for passage in left for sentence in sentences_of(passage)}
    assert planned.rows["sentences"].keys() == said

    turns = state[Relation.TURNS]
    found: dict[bytes, list[tuple[str, bytes]]] = {}
    for session, turn in zip(turns.rows(), read(turns.text.to_pylist()), strict=True):
        found.setdefault(session, []).append(turn)
    ordered = {session: [passage for _, passage in sorted(members)] for session, members in found.items()}
    assert ordered == naive_spoken.sessions(planned.documents.values())


def test_the_living_titles_are_those_of_the_sum() -> None:
    planned = Planned()
    for batch in ({"a": says(TEXTS[0], "Pier 9"), "b": says(TEXTS[1], "The Osprey")}, {"a": None}):
        planned.apply(batch)
    words = "at pier 9 the osprey sank".split()
    assert Titles.of(planned.segments).mentioned(words) == planned.titles.mentioned(words) == {"osprey"}
    assert votes(total(planned.segments)[Relation.TITLES]) == {"osprey": 1}


def test_a_title_without_a_telling_word_is_not_looked_for() -> None:
    assert not telling("it") and not telling("who") and telling("pier 9")
    assert Titles({"it": 1, "it works": 1}).mentioned("it works as it is".split()) == {"it works"}


def test_only_what_a_sentence_is_under_another_title_is_spoken_anew() -> None:
    planned = Planned()
    planned.apply({"a": says(TEXTS[1], "Pier 9")})
    before = dict(planned.rows["sentences"])
    planned.apply({"a": moved(says(TEXTS[1], "Pier 9", '{"shelf":1}'), "a")})
    assert planned.rows["sentences"] == before
    planned.apply({"a": says(TEXTS[1], "The Osprey")})
    assert not planned.rows["sentences"].keys() & before.keys()


def test_sentences_are_kept_in_half_precision() -> None:
    schema = records.schemas(4, entity_vectors=False)["sentences"]
    assert str(schema.field("vector").type.value_type) == "halffloat"
