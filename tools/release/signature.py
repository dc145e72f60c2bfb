# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sign with GnuPG: the only caller of gpg."""

from __future__ import annotations

import subprocess
from pathlib import Path


def refusal(key: str) -> str | None:
    """Return the reason why nothing can be signed with this key, or None."""
    if not key:
        return None
    try:
        found = subprocess.run(["gpg", "--batch", "--list-secret-keys", "--", key], capture_output=True, check=False)
    except FileNotFoundError:
        return "There is no gpg on this machine to sign with; install GnuPG, or leave KEY out."
    return (
        f"GnuPG has no secret key {key}; import it, or set KEY to one of gpg --list-secret-keys."
        if found.returncode
        else None
    )


def sign(content: bytes, key: str, path: Path) -> None:
    """Write a detached signature of content."""
    command = ["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key, "--output", str(path)]
    subprocess.run(command, check=True, input=content)
