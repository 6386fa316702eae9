"""A certificate authority for one test, and a server's certificate of it, as PEM files that openssl makes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_ASKED = """\
[req]
distinguished_name = nobody
prompt = no
[nobody]
CN = gistream test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = IP:{host}
"""


class Certificates(NamedTuple):
    """`authority`: whom a client has to trust; `server`: the server's key, its certificate and the authority's."""

    authority: Path
    server: Path


def certificates(folder: Path, *, host: str) -> Certificates:
    """Make both in `folder`, for the server at the address `host`; they hold for two days.

    Raises:
        RuntimeError: openssl refused, with its words.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "asked.cnf").write_text(_ASKED.format(host=host))
    _make(folder, "authority")
    _make(folder, "server", "-CA", "authority.pem", "-CAkey", "authority.key")
    chain = folder / "chain.pem"
    chain.write_text("".join((folder / name).read_text() for name in ("server.key", "server.pem", "authority.pem")))
    chain.chmod(0o600)
    return Certificates(folder / "authority.pem", chain)


def _make(folder: Path, name: str, *signer: str) -> None:
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]
    told = ["-config", "asked.cnf", "-extensions", name, "-days", "2", "-out", f"{name}.pem"]
    made = subprocess.run(
        ["openssl", "req", "-x509", *new, *told, *signer], cwd=folder, capture_output=True, text=True, timeout=60
    )
    if made.returncode != 0:
        raise RuntimeError(f"openssl made no certificate:\n{made.stderr}")
