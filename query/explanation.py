"""The words of an explanation: what led a mode to its passages, in names, facts and terms."""

from __future__ import annotations

from pydantic import BaseModel


class MatchingTerm(BaseModel):
    """A word of the question that the passage holds, and what it adds to the score."""

    term: str
    weight: float


class NearFact(BaseModel):
    """A fact near the question; `via` are the names that it shares with the passage it explains."""

    fact: str
    similarity: float
    via: list[str] = []


class ActiveEntity(BaseModel):
    """An entity and the mass that the walk left on it."""

    entity: str
    mass: float


class SeedEntity(BaseModel):
    """An entity where the walk started."""

    entity: str
    start: float
    """Its share of the start; the shares of all seeds, passages among them, sum to 1."""
    hits: int
    """Near facts that name it."""
    similarity: float
    """Mean cosine of these facts."""
    passages: int
    """Passages that mention it: the more, the weaker it shines."""


class QuestionRead(BaseModel):
    """How one (sub-)question lit up the graph."""

    question: str
    fallback: str | None
    """`dense` where no fact was near: the order is then that of cosine alone."""
    facts: list[NearFact]
    seeds: list[SeedEntity]
    entities: list[ActiveEntity]
    error: float
    """Masses are at most this far below the true ones, times the weight of a node's edges where that is above 1."""


class NamedTitle(BaseModel):
    """A title that the question may mean, in normal form, and how surely: 1 where it stands there outright."""

    title: str
    sure: float


class Parts(BaseModel):
    """What a passage scores by itself, as a sum."""

    passage: float
    """Half the cosine of the passage."""
    sentence: float
    """Half the cosine of its best sentence."""
    words: float
    """For the question's words."""
    title: float
    """For a title that the question names."""
    context: float
    """From a better turn beside it."""


class Leapt(BaseModel):
    """Which passage led to this one."""

    document: str
    name: str
    """The name that both have."""
    sentence: str
    """Where the other has it."""
    gain: float


class Why(BaseModel):
    """What led to one passage; only what its mode looks at is there."""

    cosine: float | None = None
    ranks: dict[str, int] = {}
    """Mode -> rank from 1, where ranks were joined."""
    terms: list[MatchingTerm] = []
    mass: float | None = None
    facts: list[NearFact] = []
    entities: list[ActiveEntity] = []
    """The entities it mentions that hold the most mass."""
    question: int | None = None
    """Which of the questions read brought it, from 1."""
    parts: Parts | None = None
    sentence: str | None = None
    """Its sentence nearest to what was asked of it."""
    leapt: Leapt | None = None
    complement: bool = False
    """It fills the room that the best of each question left."""


class Explanation(BaseModel):
    """What a mode saw of the question as a whole."""

    questions: list[QuestionRead] = []
    titles: list[NamedTitle] = []
    anchor: str | None = None
    """The document that the question names or comes nearest to."""
    rest: str | None = None
    """What was asked of all others; null where the whole question was."""
