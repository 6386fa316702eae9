"""One case of the worked example of CogitoRAG, taken through writer, reader and mode."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import BadRequest
from index.graph.segment import Relation, read_segment, total
from index.models.recorded import RecordedEmbedder, Recording
from index.snapshot import EdgeWeights, Snapshot
from index.types import Passage, Question
from query.modes.cogito import CogitoMode, Reading
from query.modes.walk import Walk
from tests.support_index import SmallIndex, a_passage

DEFAULTS: Mapping[str, Any] = {
    "fact_k": 5,
    "alpha": 2.0,
    "beta": 1.0,
    "gamma": 0.5,
    "epsilon": 0.95,
    "delta": 1e-12,
    "candidate_k": 200,
    "passage_k": 5,
    "max_splits": 2,
    "diffusion": "walk",
    "passage_seed_weight": 0.05,
    "passage_seed_top": 200,
    "fact_weight": 2.0,
    "mention_weight": 1.0,
    "alias_weight": 2.0,
    "alias_threshold": 0.8,
    "alias_same_digits": True,
    "mention_nodes": False,
}
FIXED = ("mention_nodes",)
"""What the index does not let one choose."""


def run(case: Mapping[str, Any]) -> dict[str, Any]:
    """Every stage of the case under the names of the worked example, and `after` its edits where it has any.

    Raises BadRequest for parameters that gistream does not have, and for one text with two vectors.
    """
    params = _params(case.get("params", {}))
    edits = case.get("edits", [])
    threshold = params["alias_threshold"]
    with (
        tempfile.TemporaryDirectory() as folder,
        SmallIndex(
            Path(folder),
            _embedder(case),
            alias_threshold=threshold,
            alias_same_digits=params["alias_same_digits"],
            weights=EdgeWeights(params["mention_weight"], params["fact_weight"], params["alias_weight"]),
            sentences=False,
        ) as index,
    ):
        result = _Stages(index.change([_passage(row) for row in case["passages"]]), params, case["query"]).all()
        for edit in edits:
            put, gone = ([], [edit["id"]]) if edit["op"] == "delete" else ([_passage(edit["passage"])], [])
            index.change(put, gone)
        if edits:
            result["after"] = _Stages(index.snapshot, params, case["query"]).all()
    return result


def _params(given: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := sorted(given.keys() - DEFAULTS.keys()):
        raise BadRequest(f"cogito has no parameter {unknown[0]!r}", hint=f"It has {', '.join(DEFAULTS)}")
    for name in FIXED:
        if given.get(name, DEFAULTS[name]) != DEFAULTS[name]:
            raise BadRequest(f"{name} {given[name]} is not supported", hint=f"An index has {name} {DEFAULTS[name]}")
    return {**DEFAULTS, **given}


def _passage(row: Mapping[str, Any]) -> Passage:
    return a_passage(row["id"], row["text"], row["triples"], memory=row["memory"])


def _embedder(case: Mapping[str, Any]) -> RecordedEmbedder:
    changed = [edit["passage"] for edit in case.get("edits", []) if edit["op"] == "upsert"]
    texts = [(row["text"], row["embedding"]) for row in [*case["passages"], *changed]]
    vectors: dict[str, Sequence[float]] = {}
    for text, vector in [*case["fact_embeddings"].items(), *case.get("entity_embeddings", {}).items(), *texts]:
        if vectors.setdefault(text, vector) != vector:
            raise BadRequest(f"{text!r} has two vectors", hint="Give a text that is passage, fact or name one vector")
    return RecordedEmbedder([Recording.of(vectors)], model="case")


def _unit(vector: Sequence[float]) -> NDArray[np.float64]:
    wide = np.array(vector, np.float64)
    length = float(np.linalg.norm(wide))
    return wide / length if length else wide


class _Stages:
    """Reads one snapshot and says what it saw in the words of the example: norms, surfaces and passage ids."""

    def __init__(self, snapshot: Snapshot, params: Mapping[str, Any], query: Mapping[str, Any]) -> None:
        self.snapshot, self.params, self.query = snapshot, params, query
        self.mode = CogitoMode(
            fact_k=params["fact_k"],
            alpha=params["alpha"],
            beta=params["beta"],
            walk=Walk(gamma=params["gamma"], orientation=params["diffusion"], solver="exact"),
            epsilon=params["epsilon"],
            delta=params["delta"],
            candidate_k=params["candidate_k"],
            passage_seed_weight=params["passage_seed_weight"],
            passage_seed_top=params["passage_seed_top"],
        )
        self.rows = snapshot.passage_rows(snapshot.live_passages.tolist())
        rows = sorted(self.rows.items(), key=lambda pair: pair[1].document)
        self.ids = {number: row.document for number, row in rows}
        entities = snapshot.entity_rows(range(len(snapshot.kinds.entities)))
        self.entities = {number: row.norm for number, row in sorted(entities.items(), key=lambda pair: pair[1].norm)}
        self.facts = snapshot.fact_rows(np.flatnonzero(snapshot.supports.totals).tolist())
        self.nodes = {2 * number: norm for number, norm in self.entities.items()}
        self.nodes |= {2 * number + 1: id for number, id in self.ids.items()}

    def all(self) -> dict[str, Any]:
        parts = [
            Question(part["text"], _unit(part["embedding_fact"]), _unit(part["embedding_passage"]))
            for part in self.query["sub_queries"]
        ]
        ranking = self.mode.rank_split(self.snapshot, parts, self.params["passage_k"])
        evidence = [self.rows[scored.passage] for scored in ranking.found]
        return {
            "params": dict(self.params),
            **self._index(),
            "sub_queries": [
                self._reading(part, reading) for part, reading in zip(parts, ranking.trace.readings, strict=True)
            ],
            "final": [
                [self.ids[c.passage], c.score, "complement" if c.complement else f"q{c.ranking + 1}"]
                for c in ranking.trace.chosen
            ],
            "evidence": [[row.document, row.text, row.extraction.memory] for row in evidence],
        }

    def _index(self) -> dict[str, Any]:
        supports = self.snapshot.supports
        facts = [[*fact.norms, supports.total(number), fact.surface] for number, fact in self.facts.items()]
        return {
            "entities": list(self.entities.values()),
            "n_v": {norm: len(self.snapshot.mentioning(number)) for number, norm in self.entities.items()},
            "facts": sorted(facts),
            "aliases": self._aliases(),
            "edges": self._edges(),
            "degree": {name: self.snapshot.graph.total(node) / 10_000 for node, name in self.nodes.items()},
        }

    def _aliases(self) -> list[list[Any]]:
        folder = self.snapshot.folder / "segments"
        summed = total(read_segment(folder, file) for file in self.snapshot.manifest.segments)[Relation.ALIASES]
        numbers = self.snapshot.kinds.entities
        ends = zip(numbers.of(summed.rows()).tolist(), numbers.of(summed.cols()).tolist(), strict=True)
        pairs = [(self.entities[u], self.entities[v]) for u, v in ends]
        return sorted([u, v, w / 10_000] for (u, v), w in zip(pairs, summed.weight.tolist(), strict=True) if u < v)

    def _edges(self) -> list[list[Any]]:
        order = {node: place for place, node in enumerate(self.nodes)}
        found = []
        for node in self.nodes:
            for other, weight in zip(*self.snapshot.graph.row(node), strict=True):
                if order[node] < order[int(other)]:
                    found.append((order[node], order[int(other)], int(weight) / 10_000))
        names = list(self.nodes.values())
        return [[names[u], names[v], weight] for u, v, weight in sorted(found)]

    def _reading(self, part: Question, reading: Reading) -> dict[str, Any]:
        ranked, spread = reading.ranked, reading.spread
        numbers = np.array(list(self.ids), np.int64)
        pi = dict(zip(self.nodes.values(), spread.of(np.array(list(self.nodes), np.int64)).tolist(), strict=True))
        cosines = self.snapshot.passages.scores(numbers, part.to_passages).tolist()

        def by_id(values: NDArray[np.float64]) -> dict[str, float]:
            return dict(zip((self.ids[number] for number in ranked.passages.tolist()), values.tolist(), strict=True))

        return {
            "text": reading.question,
            "top_facts": [[self.facts[number].surface, similarity] for number, similarity in reading.facts],
            "seeds": {
                self.entities[seed.entity]: {
                    "hits": seed.hits,
                    "fact": seed.fact,
                    "reward": seed.reward,
                    "n_v": seed.n_v,
                    "pi0_raw": seed.weight,
                }
                for seed in reading.seeds
            },
            "passage_seeds": {self.ids[passage]: weight for passage, weight in reading.passage_seeds},
            "fallback": reading.fallback,
            "pi0": {self.nodes[node]: w for node, w in zip(spread.seeds.tolist(), spread.start.tolist(), strict=True)},
            "pi": pi,
            "s_diff": {id: pi[id] for id in self.ids.values()},
            "sigma_passage": dict(zip(self.ids.values(), cosines, strict=True)),
            "candidates": [self.ids[number] for number in reading.candidates.tolist()],
            "norm_diff": by_id(ranked.norm_diff),
            "norm_sim": by_id(ranked.norm_similarity),
            "score": by_id(ranked.score),
            "ranking": [[self.ids[passage], score] for passage, score in ranked.scored()],
            "ties": [[self.ids[number] for number in run] for run in ranked.ties()],
        }
