"""`gistream rebuild`: make a namespace anew from its documents, with the settings of now."""

from __future__ import annotations

from functools import partial

from .. import show
from ..options import Data, Json, Namespace, configured


def rebuild(namespace: Namespace, data: Data = None, json: Json = False) -> None:
    """Make a namespace anew from its documents, with the settings of now; it answers from the former index until then.

    Nothing that a model said before about an unchanged text is bought again. Example: gistream rebuild notes
    """
    from index.errors import WriterBusy
    from index.home import Home
    from streams.rebuild import rebuild as run

    from ..assembly import build_pipeline

    settings = configured(data=data)
    try:
        with show.stages() as progress:
            manifest = run(Home(settings.data), namespace, build_pipeline(settings), partial(progress, "rebuilding"))
    except WriterBusy as error:
        if settings.kafka_bootstrap is None:
            raise
        hint = "workers with other settings make it anew by themselves; else stop `gistream worker --role apply` first"
        raise WriterBusy(error.message, hint=hint) from error
    done = {"namespace": namespace, "snapshot": manifest.number, **manifest.counts.model_dump()}
    if json:
        show.as_json(done)
    else:
        show.pairs(done)
