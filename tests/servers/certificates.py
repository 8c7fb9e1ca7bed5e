"""Certificates of our own making, for servers that speak TLS."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.servers.postgres import NoServer

HINT = "install it with: apt-get install --no-install-recommends openssl"


class Pair(NamedTuple):
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates. Everybody who knows `pair.cert` trusts them."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self.pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
        self._openssl(
            "req", "-x509", "-subj", f"/CN={name}", "-days", "2",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", self.pair.key, "-out", self.pair.cert, *_NEW_KEY,
        )  # fmt: skip

    def sign(self, name: str, *alternatives: str) -> Pair:
        """A certificate for a name; `alternatives` such as IP:127.0.0.1."""
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        named = f"subjectAltName={','.join(alternatives)}\n" if alternatives else ""
        extensions.write_text(_STRICT + named)
        self._openssl("req", "-subj", f"/CN={name}", "-keyout", pair.key, "-out", request, *_NEW_KEY)
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.pair.cert, "-CAkey", self.pair.key, "-CAcreateserial",
            "-days", "2", "-out", pair.cert, "-extfile", extensions,
        )  # fmt: skip
        pair.key.chmod(0o600)
        return pair

    def _openssl(self, *options: object) -> None:
        if shutil.which("openssl") is None:
            raise NoServer(f"openssl is not installed; {HINT}")
        subprocess.run(("openssl", *map(str, options)), check=True, capture_output=True)


_STRICT = (
    "basicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    "keyUsage=critical,digitalSignature\n"
)
"""What Python wants of a certificate since 3.13, which checks them strictly (`VERIFY_X509_STRICT`)."""
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
