# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user with a directory of their own: nobody where the tests run as root, else oneself."""

import grp
import os
import pwd
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Account(NamedTuple):
    """The user and their directory."""

    name: str
    group: str
    home: Path


@contextmanager
def account():
    """Yield the user, and remove the directory in the end."""
    entry = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    home = Path(tempfile.mkdtemp(prefix="allreduce-home-"))
    try:
        os.chown(home, entry.pw_uid, entry.pw_gid)
        yield Account(entry.pw_name, grp.getgrgid(entry.pw_gid).gr_name, home)
    finally:
        shutil.rmtree(home)
