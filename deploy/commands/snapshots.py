"""`gistream snapshots`: the snapshots of a namespace that can still be read."""

from __future__ import annotations

from typing import Any

from .. import show
from ..options import Data, Json, Namespace, configured


def snapshots(namespace: Namespace, data: Data = None, json: Json = False) -> None:
    """List the snapshots of a namespace, newest first.

    Example: gistream snapshots notes
    """
    from index.home import Home
    from index.manifest import Manifests
    from streams.apply import SOURCE

    manifests = Manifests(Home(configured(data=data).data).incarnation(namespace) / "manifests")
    found: list[dict[str, Any]] = []
    for number in reversed(manifests.numbers()):
        manifest = manifests.read(number)
        found.append(
            {
                "snapshot": number,
                "time": manifest.time.isoformat(timespec="milliseconds"),
                "cause": manifest.cause,
                **manifest.counts.model_dump(),
                "position": manifest.positions.get(SOURCE, 0),
                "watermark": show.when(manifest.watermark or None),
            }
        )
    if json:
        show.as_json({"namespace": namespace, "snapshots": found})
    else:
        show.as_table(list(found[0]) if found else [], [list(row.values()) for row in found], empty="no snapshots")
