"""Run one worked example through the real index and print every stage: python -m tests.reference METHOD CASE.json"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from index.errors import GistreamError
from tests.query import cogito_case

METHODS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"cogito": cogito_case.run}


def main(arguments: Sequence[str] | None = None) -> int:
    """CASE.json is a case, or a file that holds one under `input`. Prints JSON; 2 for a case that cannot be."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("case", type=Path)
    chosen = parser.parse_args(arguments)
    case = json.loads(chosen.case.read_text())
    try:
        stages = METHODS[chosen.method](case.get("input", case))
    except GistreamError as error:
        print(f"{chosen.case}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(stages, ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
