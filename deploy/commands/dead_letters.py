"""`gistream dead-letters`: what could not be indexed, why, and a second try or none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import show
from ..exits import Exit
from ..options import Data, Json, NoWait, configured

if TYPE_CHECKING:
    from index.types import DocumentEvent
    from streams.letter import DeadLetter

    from ..settings import Settings

app = typer.Typer(no_args_is_help=True, help="See what could not be indexed and why, try it again, or drop it.")

Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The number of a letter.")]

_REASON_SHOWN = 100


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many.")] = 100,
    after: Annotated[int, typer.Option(min=0, help="Only letters with a greater number.")] = 0,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the letters that wait, oldest first.

    Example: gistream dead-letters list --limit 20
    """
    from ..letters import open_letters

    with open_letters(configured(data=data)) as letters:
        count, waiting = letters.count(), letters.waiting(limit=limit, after=after)
    if json:
        show.as_json({"dead_letters": count, "letters": [_described(letter) for letter in waiting]})
        return
    columns = ["number", "at", "source", "namespace", "id", "step", "reason"]
    rows = [
        [*(_described(letter)[column] for column in columns[:-1]), show.short(letter.reason, _REASON_SHOWN)]
        for letter in waiting
    ]
    show.as_table(columns, rows, empty="no dead letter waits")
    if count > len(waiting):
        print(f"{len(waiting)} of {count}")


@app.command("show")
def show_(
    number: Number,
    payload: Annotated[bool, typer.Option("--payload", help="Write only what arrived, byte for byte.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show one letter and what arrived.

    Example: gistream dead-letters show 3 --payload > repaired.json
    """
    from ..letters import open_letters

    with open_letters(configured(data=data)) as letters:
        letter = letters.show(number)
    if payload:
        sys.stdout.buffer.write(letter.payload)
        return
    described = _described(letter) | {"payload": letter.payload.decode(errors="backslashreplace")}
    if json:
        show.as_json(described)
    else:
        show.pairs(described)


@app.command("replay")
def replay(
    number: Number,
    repaired: Annotated[
        str | None,
        typer.Option("--with", metavar="FILE|-", help="Send this event, the repaired payload, in its place."),
    ] = None,
    no_wait: NoWait = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Send the event of a letter again, repaired or as it came, and wait until it is in the index.

    A letter that is still no valid event keeps waiting. Example: gistream dead-letters replay 3 --with repaired.json
    """
    from index.home import Home

    from ..awaited import Awaited
    from ..letters import refused
    from ..sending import sending

    settings = configured(data=data)
    awaited = Awaited(Home(settings.data))
    with sending(settings) as line:
        event = _event(line.letters.show(number), None if repaired is None else _read(repaired), settings)
        awaited.add([event], [line.letters.replay(number, event)])
        for _ in () if no_wait else line.until_visible(awaited):
            pass
        again = [] if no_wait else refused(line.letters, awaited)
    done = {"number": number, "namespace": event.namespace, "id": event.id, "token": awaited.last}
    if json:
        show.as_json(done)
    else:
        show.pairs(done)
    if again:
        show.message(f"it could not be indexed again; it is dead letter {again[0].number} now")
        raise typer.Exit(Exit.REFUSED)


@app.command("drop")
def drop(
    numbers: Annotated[list[int], typer.Argument(metavar="NUMBER...", min=1, help="Numbers of letters.")],
    data: Data = None,
    json: Json = False,
) -> None:
    """Forget letters that nobody needs, with what arrived.

    Example: gistream dead-letters drop 3 4
    """
    from ..letters import open_letters

    with open_letters(configured(data=data)) as letters:
        for number in dict.fromkeys(numbers):
            letters.remove(number)
        left = letters.count()
    done = {"dropped": len(set(numbers)), "dead_letters": left}
    if json:
        show.as_json(done)
    else:
        show.pairs(done)


def _event(letter: DeadLetter, repaired: bytes | None, settings: Settings) -> DocumentEvent:
    """What to send. Raises InvalidEvent, and BadRequest where nothing whole is there to send."""
    from index.errors import BadRequest
    from streams.events import decode
    from streams.wire import document_event

    from ..assembly import limits

    if repaired is not None:
        return decode(repaired, limits(settings), letter.namespace)
    if letter.cut_from is not None:
        has = f"of dead letter {letter.number} only the first {len(letter.payload)} of {letter.cut_from} bytes are kept"
        raise BadRequest(has, hint=f"the whole is at {letter.source}:{letter.position}; repair it, and send it --with")
    if letter.is_tombstone:
        return document_event(letter.key, None, limits(settings))
    return decode(letter.payload, limits(settings), letter.namespace)


def _read(path: str) -> bytes:
    from ..intake import standard_input

    return standard_input().read() if path == "-" else Path(path).read_bytes()


def _described(letter: DeadLetter) -> dict[str, Any]:
    """A letter without its payload."""
    return {
        "number": letter.number,
        "at": show.when(letter.at),
        "source": letter.source,
        "position": letter.position,
        "namespace": letter.namespace,
        "id": letter.id,
        "step": letter.step,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "bytes": len(letter.payload) if letter.cut_from is None else letter.cut_from,
        "replayed": letter.replayed,
    } | ({} if letter.key is None else {"key": letter.key.decode(errors="backslashreplace")})
