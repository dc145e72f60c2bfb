# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the checkout, without what work in it has left there."""

import shutil
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def tracked():
    """Return the names of the files that git does not ignore."""
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name for name in listed if (CHECKOUT / name).is_file()}


def copy_checkout(place):
    """Copy them to PLACE."""
    for name in tracked():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, place / name)
