"""`gistream eval`: measure retrieval on a question set."""

from __future__ import annotations

import json as jsonlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .. import show
from ..options import Json, configured


class Profile(StrEnum):
    """Whose parameters the modes have."""

    default = "default"
    paper = "paper"


def eval(
    kit: Annotated[Path, typer.Option(metavar="DIR", help="A question set: passages.jsonl.gz and questions.jsonl.gz.")],
    mode: Annotated[
        list[str] | None, typer.Option(show_default=False, help="How to read; may be given several times.")
    ] = None,
    extractor: Annotated[
        str, typer.Option(help="What reads the passages: rules, or recorded:NAME of the kit.")
    ] = "rules",
    embedder: Annotated[str, typer.Option(help="What makes the vectors: recorded, hashing or openai.")] = "recorded",
    profile: Annotated[
        Profile, typer.Option(help="Parameters of the modes: ours, or the papers' to the letter.")
    ] = Profile.default,
    limit: Annotated[int | None, typer.Option(min=1, show_default=False, help="Ask the first questions only.")] = None,
    ranks: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Write every ranking there, as JSON lines.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", show_default=False, help="Keep the index there for the next run.")
    ] = None,
    json: Json = False,
) -> None:
    """Index a question set, ask its questions, and score what comes back.

    Example: gistream eval --kit ./musique --mode cogito --mode dense
    """
    from index.errors import BadRequest
    from query.limits import DEFAULT_MODE
    from query.modes.cogito import PAPER
    from query.retrieve import MODES
    from streams.chunk import WHOLE
    from streams.pipeline import Pipeline

    from .. import evaluate
    from ..kit import Kit

    settings = configured()
    chosen = {**MODES, "cogito": PAPER} if profile is Profile.paper else MODES
    names = mode or [DEFAULT_MODE]
    if unknown := [name for name in names if name not in chosen]:
        raise BadRequest(f"there is no mode {unknown[0]!r}", hint=f"the modes are {', '.join(chosen)}")
    loaded = Kit.load(kit, limit)
    reader = evaluate.extractor(extractor, loaded)
    vectors = evaluate.embedder(embedder, loaded, settings, evaluate.written(loaded, reader))
    # Vectors of sentences are seldom recorded, and nothing else reads them.
    pipeline = Pipeline(WHOLE, reader, vectors, sentences="fused" in names)
    with show.stages() as progress:
        report = evaluate.run(loaded, {name: chosen[name] for name in names}, pipeline, data, progress)
    if ranks is not None:
        ranks.write_text("".join(f"{jsonlib.dumps(ranking, ensure_ascii=False)}\n" for ranking in report.ranks))
    if json:
        show.as_json(report.figures)
        return
    modes = report.figures["modes"]
    columns = ["mode", *modes[names[0]]]
    show.as_table(columns, [[name, *figures.values()] for name, figures in modes.items()], empty="no mode was asked")
