# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hash of a password, as Prometheus and its exporters read it (prometheus/exporter-toolkit, docs/web-configuration.md)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

try:
    import bcrypt

    _BCRYPT: Any = bcrypt
except ImportError:  # of requirements.txt; a controller without it may do everything else
    _BCRYPT = None

COST = 10
# The letters of a salt are those of base64 in another order (crypt(5)).
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LETTERS = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def is_possible() -> bool:
    """Return True if this controller can hash a password."""
    return _BCRYPT is not None


def password_hash(password: str, host: str) -> str:
    """Return the bcrypt hash of a password on a host.

    The salt follows from the host's name: it need not be secret, only be another one elsewhere, and so a second run finds the
    file as it is.
    """
    digest = hashlib.sha256(f"allreduce.gpu monitoring {host}".encode()).digest()[:16]
    salt = base64.b64encode(digest).rstrip(b"=").translate(bytes.maketrans(_BASE64, _LETTERS))
    hashed: bytes = _BCRYPT.hashpw(password.encode(), b"$2b$%02d$" % COST + salt)
    return hashed.decode()
