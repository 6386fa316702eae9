"""`python -m tests.reference` as a program: a file in, every stage out as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reference import main

EXAMPLE = Path(__file__).parents[1] / "data/cogito_example.json"


def test_a_file_with_a_case_gives_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cogito", str(EXAMPLE)]) == 0
    stages = json.loads(capsys.readouterr().out)
    expected = json.loads(EXAMPLE.read_text())["expected"]
    assert stages.keys() == expected.keys()
    assert stages["sub_queries"][0].keys() == expected["sub_queries"][0].keys()
    assert [name for name, *_ in stages["final"]] == ["p2", "p5", "p3", "p4", "p1"]


@pytest.mark.parametrize(
    ("params", "says"), [({"mention_nodes": True}, "is not supported"), ({"alfa": 1}, "no parameter 'alfa'")]
)
def test_a_case_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], params: dict[str, object], says: str
) -> None:
    path = tmp_path / "case.json"
    path.write_text(json.dumps({"params": params, "passages": [], "fact_embeddings": {}, "query": {}}))
    assert main(["cogito", str(path)]) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.out == ""
