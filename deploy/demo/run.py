"""The demo: a story streams in, is asked, edited, partly deleted, and compared with a clean rebuild."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from index.compare import Difference, State, differences, newest_state
from index.home import Home
from index.models.hashing import HashingEmbedder
from index.reader import Reader
from index.token import Token
from index.types import DocumentEvent
from query.limits import DEFAULT_MODE
from query.retrieve import MODES, Answer, FoundPassage, retrieve
from streams.apply import Applied
from streams.chunk import CONTENT
from streams.extract.rules import RulesExtractor
from streams.local import Runner
from streams.log import Log
from streams.pipeline import Pipeline
from streams.rebuild import verify

from .story import Story, load

NAMESPACE = "merrow-haven"
TIMEOUT = 30.0
SHOWN = 6
"""Lines of a long list that are printed."""
SHOWN_WIDTH = 96


class Demo:
    """One data folder, with the embedded runner at work and a reader beside it."""

    def __init__(
        self, home: Home, log: Log, runner: Runner, pipeline: Pipeline, story: Story, console: Console
    ) -> None:
        self.home = home
        self.log = log
        self.runner = runner
        self.pipeline = pipeline
        self.story = story
        self.console = console
        self.applied: list[Applied] = []
        self._reader: Reader | None = None

    def stream_in(self) -> None:
        """Every document is one event; the index follows while they come."""
        self.console.rule("1. Fifty documents stream in")
        started = time.perf_counter()
        for event in track(self.story.events, "streaming", console=self.console):
            token = self.log.append([event])[0]
        self._visible(token)
        elapsed = time.perf_counter() - started
        counts = self.reader.snapshot.manifest.counts
        self.console.print(
            f"{counts.documents} documents are {counts.passages} passages, {counts.entities} entities and "
            f"{counts.facts} facts "
            f"in snapshot {self.reader.snapshot.manifest.number}, {elapsed:.1f} s after the first was sent."
        )

    def ask(self) -> None:
        """Questions that no single document answers."""
        self.console.rule("2. Questions over several documents")
        for asked in self.story.questions:
            answer = self._retrieve(asked.question)
            found = [passage.document for passage in answer.passages]
            self.console.print(f"[bold]{asked.question}[/]\n  known answer: {asked.answer}")
            for place, passage in enumerate(answer.passages[:5], 1):
                mark = "[green]*[/]" if passage.document in asked.gold else " "
                self.console.print(
                    f"  {place}. {mark} {passage.document}  [dim]{_led_here(passage)}[/]", highlight=False
                )
            self.console.print(
                f"  {len(set(asked.gold) & set(found))} of the {len(asked.gold)} documents of the chain are found\n"
            )

    def edit(self) -> None:
        """One sentence of the longest document changes: only what hangs on it moves."""
        edit = self.story.edit
        self.console.rule("3. One sentence of the long document is corrected")
        self.console.print(f"- {edit.before}\n+ {edit.after}", markup=False)
        before = self._state()
        seconds = self._send(self.story.edited())
        self._ripple(before, self._state())
        applied = self.applied[-1]
        self.console.print(
            f"{applied.extracted} of {applied.extracted + applied.reused} passages were read again; "
            f"visible after {1000 * seconds:.0f} ms."
        )

    def delete(self) -> None:
        """A document goes, and with it every word of it."""
        deletion = self.story.deletion
        self.console.rule("4. A document is deleted")
        self.console.print(f"before: its words are in {self._places(deletion.canary, deletion.question)}")
        before = self._state()
        seconds = self._send(self.story.deleted())
        self._ripple(before, self._state())
        self.console.print(
            f"after:  its words are in {self._places(deletion.canary, deletion.question)}, "
            f"visible after {1000 * seconds:.0f} ms."
        )

    def compare(self) -> int:
        """The promise: after all that, the index is what a clean rebuild of the documents gives.

        Returns the number of differences.
        """
        self.console.rule("5. Compared with a clean rebuild")
        found = list(verify(self.home, NAMESPACE, self.pipeline))
        for difference in found:
            self.console.print(str(difference), markup=False)
        rows = sum(map(len, self._state().values()))
        self.console.print(f"{len(found)} differences in {rows} rows, entries and sums.")
        return len(found)

    @property
    def reader(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(self.home.incarnation(NAMESPACE))
        return self._reader

    def _send(self, event: DocumentEvent) -> float:
        """Seconds from sending an event to its being visible."""
        started = time.perf_counter()
        self._visible(self.log.append([event])[0])
        return time.perf_counter() - started

    def _visible(self, token: str) -> None:
        while NAMESPACE not in self.home.names() and self.runner.error is None:
            time.sleep(0.01)
        if self.runner.error is not None:
            raise self.runner.error
        self.reader.wait_for(*Token.parse(token), TIMEOUT)

    def _retrieve(self, question: str, mode: str = DEFAULT_MODE) -> Answer:
        return retrieve(self.reader.refresh(), self.pipeline.embedder, question, mode=mode, k=10, with_explanation=True)

    def _places(self, canary: str, question: str) -> str:
        """In how many answers, and in how many rows of the index, some words are."""
        answers = sum(
            any(canary in passage.text for passage in self._retrieve(question, mode).passages) for mode in MODES
        )
        rows = sum(canary in repr(row) for table in self._state().values() for row in table.values())
        return f"the answers of {answers} of {len(MODES)} modes and in {rows} rows of the index"

    def _state(self) -> State:
        return newest_state(self.home.incarnation(NAMESPACE))

    def _ripple(self, before: State, after: State) -> None:
        """What went and what came, as a signed difference."""
        changed = [d for d in differences(before, after) if d.where in ("passages", "facts", "entities")]
        for where, column in (("passages", "text"), ("entities", "name"), ("facts", "surface")):
            lines = sorted(line for d in changed if d.where == where for line in _signed(d, column))
            self.console.print(
                f"[bold]{where}[/]: {sum(x[0] == '-' for x in lines)} went, {sum(x[0] == '+' for x in lines)} came"
            )
            for line in lines[:SHOWN]:
                self.console.print(
                    f"  {line}", style="green" if line[0] == "+" else "red", highlight=False, markup=False
                )
            if len(lines) > SHOWN:
                self.console.print(f"  … and {len(lines) - SHOWN} more")


def run(console: Console | None = None) -> int:
    """Tell the whole story in a temporary folder; returns the number of differences from a clean rebuild."""
    with _demo(console or Console()) as demo:
        demo.stream_in()
        demo.ask()
        demo.edit()
        demo.delete()
        return demo.compare()


@contextmanager
def _demo(console: Console) -> Iterator[Demo]:
    pipeline = Pipeline(CONTENT, RulesExtractor(), HashingEmbedder())
    with TemporaryDirectory(prefix="gistream-demo-") as folder, Log(Path(folder) / "log.db") as log:
        home = Home(Path(folder))
        applied: list[Applied] = []
        with Runner(home, log, pipeline, on_batch=lambda _, one: applied.append(one)) as runner:
            runner.start()
            demo = Demo(home, log, runner, pipeline, load(NAMESPACE), console)
            demo.applied = applied
            yield demo


def _led_here(passage: FoundPassage) -> str:
    """The name over which another document led to this one, or else its sentence nearest to the question."""
    why = passage.why
    if why is not None and why.leapt is not None:
        return f"over {why.leapt.name} from {why.leapt.document}"
    return _short(why.sentence if why is not None and why.sentence is not None else passage.text)


def _signed(difference: Difference, column: str) -> list[str]:
    sides = (("-", difference.left), ("+", difference.right))
    return [f"{sign} {_short(row[column])}" for sign, row in sides if row is not None]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_WIDTH else f"{line[:SHOWN_WIDTH]}…"
