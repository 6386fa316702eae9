"""What every extractor must do, and what the two without a model read."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import MissingRecording, ModelError
from index.text import norm
from index.types import Extraction, Triple
from streams.extract.base import Extractor, PaidExtractor
from streams.extract.openai import OpenAIExtractor
from streams.extract.recorded import RecordedExtractor
from streams.extract.rules import RulesExtractor
from streams.extract.spending import Spending
from streams.extract.unbought import Unbought

from .model_endpoint import disconnect, garbage, serving, status

KIT = Path(__file__).resolve().parents[2] / "../shared/evalkit/musique_train"

noise = random.Random(0)
HOSTILE = [
    ("", ""),
    (" ", "\n\t "),
    ("", "\x00\x01\x7f\ufffe\uffff"),
    (
        "",
        "".join(chr(noise.choice([noise.randrange(0xD800), noise.randrange(0xE000, 0x110000)])) for _ in range(9_000)),
    ),
    ("קובץ", "שלום עולם. \u202eהעיר תל אביב\u202c נוסדה ב-1909."),
    ("words", "word " * 100_000),
    ("Names", "Name " * 50_000),
    ("", '"' * 50_000 + ":" * 50_000),
    ("Long", "Ada Lovelace met Charles Babbage in London in 1833. " * 20_000),
    ("(only a bracket)", "It has a bracket."),
    ("…", "Dots."),
    ("北京", "北京是中国的首都。《红楼梦》很有名。"),
]

RECORDED: dict[tuple[str | None, str], Extraction] = {
    ("Ada", "Ada wrote."): Extraction(entities=("Ada",), triples=(Triple("Ada", "wrote", "notes"),)),
    (None, "No title here."): Extraction(memory="Nothing has a title."),
    **{(title, text): Extraction(entities=("x",)) for title, text in HOSTILE},
}

Maker = Callable[[], Extractor]
EXTRACTORS = ["rules", "recorded", "openai", "unbought"]


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Maker]:
    """Extractors that ask a model whose first answers are faults that pass."""
    faults = [garbage, status(500), status(429), disconnect]
    with serving() as endpoint:
        endpoint.faults += faults
        yield lambda: OpenAIExtractor("m", Spending(tmp_path / "spending.db"), base_url=endpoint.url)


@pytest.fixture(params=EXTRACTORS)
def make(request: pytest.FixtureRequest, asking: Maker) -> Maker:
    """Extractors of one kind, each new."""
    makers: dict[str, Maker] = {
        "rules": RulesExtractor,
        "recorded": lambda: RecordedExtractor(RECORDED),
        "openai": asking,
        "unbought": lambda: Unbought(cast(PaidExtractor, asking())),
    }
    return makers[request.param]


class TestEveryExtractor:
    def test_one_extraction_each_in_order(self, make: Maker) -> None:
        passages = [("Ada", "Ada wrote."), ("Any", "No title here."), *HOSTILE[:5]]
        together = make().extract(passages)
        assert together == [extraction for passage in passages for extraction in make().extract([passage])]
        assert make().extract(passages[::-1]) == together[::-1]
        assert make().extract([]) == []

    @pytest.mark.parametrize("passage", HOSTILE, ids=lambda passage: ascii(passage[0]))
    def test_hostile_text(self, make: Maker, passage: tuple[str, str]) -> None:
        (extraction,) = make().extract([passage])
        assert all(norm(triple.head) and triple.relation.strip() and norm(triple.tail) for triple in extraction.triples)
        assert all(norm(entity) for entity in extraction.entities)

    def test_the_fingerprint_names_it(self, make: Maker) -> None:
        assert make().fingerprint == make().fingerprint != ""


def read(title: str, text: str) -> Extraction:
    (extraction,) = RulesExtractor().extract([(title, text)])
    return extraction


class TestRules:
    def test_facts_about_the_title(self) -> None:
        extraction = read(
            "Demon Dice (game)", "Demon Dice was created by Lester Smith of Acme Corp in 1995. It sold well."
        )
        assert extraction.triples == (
            Triple("Demon Dice", "was created by", "Lester Smith of Acme Corp"),
            Triple("Demon Dice", "It sold well", "Demon Dice"),
        )
        assert extraction.entities == ("Demon Dice", "Lester Smith of Acme Corp", "1995")

    def test_a_list_shares_its_relation(self) -> None:
        extraction = read(
            "Variety", 'Variety is a sister of "Adweek", Billboard and Rolling Stone, sold by Ada\'s shop in Paris.'
        )
        assert extraction.triples == (
            Triple("Variety", "is a sister of", "Adweek"),
            Triple("Variety", "is a sister of", "Billboard"),
            Triple("Variety", "is a sister of", "Rolling Stone"),
            Triple("Variety", "sold by", "Ada"),
            Triple("Variety", "shop in", "Paris"),
        )

    def test_a_pair_is_linked_once_and_no_sentence_is_lost(self) -> None:
        extraction = read("Ada", "She met Bob in town. Later on Bob learnt to swim.")
        assert extraction.triples == (
            Triple("Ada", "She met", "Bob"),
            Triple("Ada", "Later on Bob learnt to swim", "Ada"),
        )

    def test_scripts_without_blanks_or_capitals_make_statements(self) -> None:
        assert read("北京", "北京是中国的首都。好。").triples == (Triple("北京", "北京是中国的首都。", "北京"),)
        assert read("नगर", "वह नगर बड़ा है।").triples == (Triple("नगर", "वह नगर बड़ा है।", "नगर"),)

    def test_speakers_are_subjects(self) -> None:
        extraction = read("", "LiHua: Hey! I bought a dog.\nuser: Great news from Paris. Bye now!")
        assert extraction.triples == (
            Triple("Li Hua", "I bought a dog", "Li Hua"),
            Triple("user", "Great news from", "Paris"),
            Triple("user", "Bye now", "user"),
        )

    def test_a_doubtful_name_counts_when_the_passage_is_sure_of_it(self) -> None:
        assert "Rex" in read("Dogs", "Rex barks. We like Rex.").entities
        assert "Barking" not in read("Dogs", "Barking is fun. We like Rex.").entities

    @pytest.mark.parametrize(
        "date", ["1995", "5 May 1995", "May 5, 1995", "May 1995", "1990s", "2024-05-31", "March 15"]
    )
    def test_dates_are_entities(self, date: str) -> None:
        assert date in read("Film", f"It was made there, {date}, and then sold.").entities

    WORDS = st.sampled_from(
        'The In of Ada Lovelace Paris met " : . , \n 1995 LiHua: user: Mr. 中国 é it and'.split(" ")
    )

    @given(st.sampled_from(["", "Ada", "A film (1995)"]), st.lists(WORDS, max_size=60).map(" ".join))
    def test_every_end_is_an_entity_and_every_name_an_end(self, title: str, text: str) -> None:
        extraction = read(title, text)
        entities = {norm(entity) for entity in extraction.entities}
        ends = {norm(end) for triple in extraction.triples for end in (triple.head, triple.tail)}
        assert ends <= entities
        assert len(set(extraction.triples)) == len(extraction.triples)
        if extraction.triples:
            said = {entity for entity in entities - ends if not entity[0].isdigit()}
            assert said <= {norm(title), "li hua", "user", norm("A film")}, "only a subject without a statement"


class TestRecorded:
    def test_title_and_text_come_before_text_alone(self) -> None:
        extractor = RecordedExtractor({("A", "x"): Extraction(memory="of A"), (None, "x"): Extraction(memory="of any")})
        assert [found.memory for found in extractor.extract([("A", "x"), ("B", "x")])] == ["of A", "of any"]

    def test_missing_texts_are_counted_and_one_is_named(self) -> None:
        with pytest.raises(MissingRecording, match=r"2 of 3 passages .* 'Gone': 'one'.*whole"):
            RecordedExtractor(RECORDED).extract([("Gone", "one"), ("Ada", "Ada wrote."), ("Gone", "two")])

    def test_another_recording_has_another_fingerprint(self) -> None:
        one = RecordedExtractor({("A", "x"): Extraction(memory="1")})
        assert one.fingerprint != RecordedExtractor({("A", "x"): Extraction(memory="2")}).fingerprint

    @pytest.mark.parametrize("name", ["said.jsonl", "said.jsonl.gz"])
    def test_loading_rows(self, tmp_path: Path, name: str) -> None:
        rows = [
            {"title": "A", "text": "x", "entities": ["E"], "triples": [["a", "b", "c"], ["odd", "pair"], [1, 2, 3, 4]]},
            {"title": "A", "text": "x", "memory": "a second time"},
            {"text": "y", "memory": "m"},
        ]
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        extractor = RecordedExtractor.load(tmp_path / name)
        assert extractor.extract([("A", "x"), ("?", "y")]) == [
            Extraction(entities=("E",), triples=(Triple("a", "b", "c"),)),
            Extraction(memory="m"),
        ]

    @pytest.mark.parametrize("line", ["{", "[]", '{"title": "no text"}', '{"text": "x", "triples": 5}', "\udcff"])
    def test_what_cannot_be_read_is_named_with_its_line(self, tmp_path: Path, line: str) -> None:
        path = tmp_path / "said.jsonl"
        path.write_bytes(b'{"text": "fine"}\n' + line.encode(errors="surrogateescape"))
        with pytest.raises(ModelError, match=r"said\.jsonl(:2| is)"):
            RecordedExtractor.load(path)

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"gone\.jsonl"):
            RecordedExtractor.load(tmp_path / "gone.jsonl")

    def test_a_kit_refers_by_id(self, tmp_path: Path) -> None:
        def write(name: str, *rows: object) -> None:
            (tmp_path / name).write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))

        twins = [{"id": name, "title": "A", "text": "x"} for name in ("p1", "p1b")]
        write("passages.jsonl.gz", *twins)
        write("extractions_llm.jsonl.gz", {"id": "p1", "triples": [["a", "b", "c"]]}, {"id": "p1b", "triples": []})
        assert RecordedExtractor.load_kit(tmp_path, "llm").extract([("A", "x")])[0].triples == (Triple("a", "b", "c"),)
        write("extractions_llm.jsonl.gz", {"id": "p2", "triples": []})
        with pytest.raises(ModelError, match=r"extractions_llm.*'p2'"):
            RecordedExtractor.load_kit(tmp_path, "llm")

    @pytest.mark.kit
    @pytest.mark.skipif(not KIT.exists(), reason="the evaluation kit is not here")
    def test_the_whole_kit_is_found(self) -> None:
        with gzip.open(KIT / "passages.jsonl.gz", "rt") as lines:
            passages = [(row["title"], row["text"]) for row in map(json.loads, lines)]
        extractions = RecordedExtractor.load_kit(KIT, "gpt35").extract(passages)
        assert sum(not extraction.triples for extraction in extractions) == 2, "the kit's own count"
