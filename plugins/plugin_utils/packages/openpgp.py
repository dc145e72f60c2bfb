# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of OpenPGP keys, without a gpg program. RFC 4880 sections 4.2, 6 and 12.2. Pure functions."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

BLOCK = re.compile(r"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(?:[^\n]+:[^\n]*\n)*\s*\n(.*?)-----END", re.S)
SIGNATURE, PUBLIC_KEY = 2, 6
CERTIFICATIONS = (0x10, 0x11, 0x12, 0x13)
SHA1 = 2


def fingerprints(text: str) -> list[str]:
    """Fingerprints (40 hexadecimal digits) of the primary keys in an ASCII-armored key file; ValueError for anything else."""
    blocks = BLOCK.findall(text.replace("\r\n", "\n"))
    if not blocks:
        raise ValueError("it holds no ASCII-armored public key: export it with `gpg --armor --export`")
    return [_fingerprint(body) for block in blocks for tag, body in packets(_decode(block)) if tag == PUBLIC_KEY]


def sha1_bound(text: str) -> bool:
    """Whether nothing but SHA-1 binds a key of the file to its names, which newer policies refuse. ValueError as above.

    Only certifications by version 4 signatures count; whose they are is not looked at: other people's only add to the
    key's own.
    """
    hashes: dict[int, set[int]] = {}
    for number, block in enumerate(BLOCK.findall(text.replace("\r\n", "\n"))):
        for tag, body in packets(_decode(block)):
            if tag == SIGNATURE and body[0] == 4 and body[1] in CERTIFICATIONS:
                hashes.setdefault(number, set()).add(body[3])
    return any(found == {SHA1} for found in hashes.values())


def _decode(block: str) -> bytes:
    lines = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith("=")]
    try:
        return base64.b64decode("".join(lines), validate=True)
    except binascii.Error as error:
        raise ValueError(f"its armor is damaged ({error}): fetch it again") from error


def packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, body) of every packet."""
    at = 0
    while at < len(data):
        header, at = data[at], at + 1
        if not header & 0x80:
            raise ValueError("it is no sequence of OpenPGP packets: fetch it again")
        tag, size, at = (
            (header & 0x3F, *_new_length(data, at))
            if header & 0x40
            else (header >> 2 & 0xF, *_old_length(data, at, header & 3))
        )
        if at + size > len(data):
            raise ValueError("it ends in the middle of a key: fetch it again")
        yield tag, data[at : at + size]
        at += size


def _new_length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return (first - 192 << 8) + data[at + 1] + 192, at + 2
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def _old_length(data: bytes, at: int, kind: int) -> tuple[int, int]:
    size = {0: 1, 1: 2, 2: 4}.get(kind, 0)
    return (int.from_bytes(data[at : at + size], "big") if size else len(data) - at), at + size


def _fingerprint(body: bytes) -> str:
    if body[:1] != b"\x04":
        raise ValueError(f"its key is of version {body[:1].hex()}, only version 4 is known: use another key")
    # SHA-1 is how the standard names a version 4 key; nothing is protected by it here.
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()
