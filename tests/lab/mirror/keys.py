# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys made for this lab, and what is signed with them.

``lab`` signs. ``sha1`` is the same key with its old self-signature, which uses SHA-1, as NVIDIA's 3bf863cc has it.
``unknown`` is a key that no host was told about. ``archive`` signs the stand-ins for the distributions' archives.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMES = ("lab", "unknown", "archive")


def ensure(place: Path) -> None:
    """Make the keys in PLACE when they are missing: NAME.pub, NAME.sec, NAME.fingerprint."""
    if (place / "complete").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        with _home() as gpg:
            gpg(
                "--cert-digest-algo",
                "SHA1",
                "--quick-gen-key",
                f"allreduce lab {name} <{name}@lab.invalid>",
                "rsa3072",
                "sign",
                "never",
            )
            listing = gpg("--list-keys", "--with-colons")
            fingerprint = next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:"))
            if name == "lab":
                (place / "sha1.pub").write_text(gpg("--armor", "--export"), encoding="utf-8")
            # A new self-signature: the same key, bound with SHA-512.
            gpg("--cert-digest-algo", "SHA512", "--quick-set-expire", fingerprint, "20y")
            public = gpg("--armor", "--export-options", "export-minimal", "--export")
            (place / f"{name}.pub").write_text(public, encoding="utf-8")
            (place / f"{name}.sec").write_text(gpg("--armor", "--export-secret-keys"), encoding="utf-8")
            (place / f"{name}.fingerprint").write_text(fingerprint, encoding="utf-8")
    (place / "complete").touch()


def fingerprint(place: Path, name: str = "lab") -> str:
    return (place / f"{name}.fingerprint").read_text(encoding="utf-8")


@contextmanager
def signer(place: Path, name: str) -> Iterator[Signer]:
    """Return a Signer with one secret key."""
    with _home() as gpg:
        gpg("--import", str(place / f"{name}.sec"))
        yield Signer(gpg)


class Signer:
    def __init__(self, gpg):
        self.gpg = gpg
        self.home = gpg.home

    def inline(self, text: str) -> str:
        """Return an InRelease."""
        return self.gpg("--armor", "--digest-algo", "SHA512", "--clearsign", input=text)

    def detached(self, text: str) -> str:
        """Return a Release.gpg or repomd.xml.asc."""
        return self.gpg("--armor", "--digest-algo", "SHA512", "--detach-sign", input=text)


class _Gpg:
    def __init__(self, home: str):
        self.home = home

    def __call__(self, *args: str, input: str | None = None, check: bool = True) -> str:
        argv = [
            "gpg",
            "--homedir",
            self.home,
            "--batch",
            "--quiet",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]
        argv += ["--allow-weak-digest-algos"]
        return subprocess.run([*argv, *args], input=input, capture_output=True, text=True, check=check).stdout


@contextmanager
def _home() -> Iterator[_Gpg]:
    """Return a key ring of its own, with a short path: gpg-agent's socket has room for a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="lab", ignore_cleanup_errors=True) as home:
        try:
            yield _Gpg(home)
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], check=False)
