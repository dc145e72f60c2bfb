# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the lab keeps its things. One checkout, one lab: the digest keeps two checkouts apart."""

import hashlib
import os
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
DIGEST = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:6]

CACHE = CHECKOUT / ".cache"
LAB = CACHE / "lab"  # goes with `purge`
DOWNLOADS = CACHE / "downloads"  # stays: images, packages, wheels
IMAGES = DOWNLOADS / "images"
APT_CACHE = DOWNLOADS / "apt"
WHEELS = DOWNLOADS / "wheels"

RUN = Path("/run") / f"allreduce-lab-{DIGEST}"
NAMESPACE = RUN / "mnt"
SSH_KEY = LAB / "id_ed25519"


def lab(name: str) -> Path:
    """Return the directory of one lab, away from those of podman and of others, whatever the lab is called."""
    return LAB / "labs" / name


def find_own_programs():
    """Let child processes find ansible-playbook and the like next to this Python, also where its environment is not activated."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
