# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take single OpenPGP keys out of the keyrings that apt trusts for every repository. RFC 4880 sections 4.2, 6, 12.2."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import base64
import binascii
import hashlib
import re

ARMOR = re.compile(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(?:[^\n]+:[^\n]*\n)*\s*\n(.*?)-----END[^\n]*\n?", re.S)
PUBLIC_KEY = 6


def without(data, fingerprints):
    """The keyring without these keys (40 hexadecimal digits each). ValueError where it is no keyring."""
    if b"-----BEGIN PGP" not in data:
        return _strip(data, fingerprints)
    # A block that loses a key loses all; the keys that are trusted with a retired one in one block came with it.
    return ARMOR.sub(lambda block: b"" if _names(_decode(block.group(1)), fingerprints) else block.group(0), data)


def _decode(text):
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(b"=")]
    try:
        return base64.b64decode(b"".join(lines))
    except binascii.Error as error:
        raise ValueError("its armor is damaged (%s)" % error)


def _names(data, fingerprints):
    return _strip(data, fingerprints) != data


def _strip(data, fingerprints):
    kept, dropping = [], False
    for start, end, tag, body in _packets(data):
        if tag == PUBLIC_KEY:
            dropping = _fingerprint(data[body:end]) in fingerprints
        if not dropping:
            kept.append(data[start:end])
    return b"".join(kept)


def _packets(data):
    """(start, end, tag, start of the body) of every packet."""
    at = 0
    while at < len(data):
        start, header = at, data[at]
        if not header & 0x80:
            raise ValueError("it is no sequence of OpenPGP packets")
        tag = header & 0x3F if header & 0x40 else header >> 2 & 0xF
        size, body = _new_length(data, at + 1) if header & 0x40 else _old_length(data, at + 1, header & 3)
        at = body + size
        if at > len(data):
            raise ValueError("it ends in the middle of a key")
        yield start, at, tag, body


def _new_length(data, at):
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return (first - 192 << 8) + data[at + 1] + 192, at + 2
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def _old_length(data, at, kind):
    size = {0: 1, 1: 2, 2: 4}.get(kind, 0)
    return (int.from_bytes(data[at : at + size], "big") if size else len(data) - at), at + size


def _fingerprint(body):
    # SHA-1 is how the standard names a version 4 key; nothing is protected by it here.
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # noqa: S324
