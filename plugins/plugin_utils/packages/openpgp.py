# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public keys of an ASCII-armored file, as gpg lists them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass, field

ARMOR = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
LIST = ["gpg", "--batch", "--no-autostart", "--show-keys", "--with-colons", "--with-sig-list"]
# Signature classes by which a key certifies its own names, and the number of SHA-1, both from RFC 4880.
CERTIFICATIONS = ("10", "11", "12", "13")
SHA1 = "2"


@dataclass
class Key:
    """A primary key: its fingerprint, and the numbers of the hashes by which it is bound to its names."""

    key_id: str
    fingerprint: str = ""
    hashes: set[str] = field(default_factory=set)

    @property
    def sha1_bound(self) -> bool:
        """Return True if nothing but SHA-1 binds the key to its names, which newer policies refuse."""
        return self.hashes == {SHA1}


def list_keys(text: str) -> str:
    """Return gpg's listing of the text of a key file, for parse_keys. ValueError says why it does not list it."""
    if ARMOR not in text:
        raise ValueError("it holds no ASCII-armored public key: export it with `gpg --armor --export`")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "GNUPGHOME": home, "LC_ALL": "C"}
        try:
            # errors: whatever the file holds, it is gpg's to judge.
            done = subprocess.run(
                LIST, input=text.encode(errors="replace"), capture_output=True, check=False, env=environment
            )
        except OSError as error:
            raise ValueError(
                f"gpg does not start on the controller ({error.strerror}): install its package gnupg there"
            ) from error
    # rpm looks for blocks where gpg sees none, as in a comment.
    if done.returncode == 0 and done.stdout.count(b"\npub:") + done.stdout.startswith(b"pub:") < text.count(
        "-----BEGIN PGP"
    ):
        raise ValueError("it holds a block that gpg does not read: export the key with `gpg --armor --export`")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(
            f"gpg cannot read it ({said[-1].removeprefix('gpg: ') if said else 'no output'}): fetch it again"
        )
    return done.stdout.decode(errors="replace")


def parse_keys(listing: str) -> list[Key]:
    """Return the primary keys of gpg's listing (GnuPG's doc/DETAILS). Only a key's own certifications count."""
    keys: list[Key] = []
    for line in listing.splitlines():
        kind, *fields = line.split(":")
        if kind == "pub":
            keys.append(Key(fields[3]))
        elif kind == "fpr" and keys and not keys[-1].fingerprint:
            keys[-1].fingerprint = fields[8]
        elif kind == "sig" and keys and fields[3] == keys[-1].key_id and fields[9][:2] in CERTIFICATIONS:
            keys[-1].hashes.add(fields[14])
    return keys
