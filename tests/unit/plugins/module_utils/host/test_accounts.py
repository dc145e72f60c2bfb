# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import grp
import os
import pwd

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import accounts

ME = pwd.getpwuid(os.geteuid())
WANTED = {"uid": None, "group": grp.getgrgid(ME.pw_gid).gr_name, "home": ME.pw_dir, "shell": ME.pw_shell}
OTHER = next(group.gr_name for group in grp.getgrall() if group.gr_gid != ME.pw_gid)


@pytest.mark.parametrize(
    ("user", "changes", "fits"),
    [
        (ME.pw_name, {}, True),
        (ME.pw_name, {"uid": ME.pw_uid}, ME.pw_uid == ME.pw_gid),
        (ME.pw_name, {"uid": ME.pw_uid + 1}, False),
        (ME.pw_name, {"group": "no-such-group"}, False),
        (ME.pw_name, {"group": OTHER}, False),
        (ME.pw_name, {"home": "/nonexistent"}, False),
        (ME.pw_name, {"shell": "/bin/no-shell"}, False),
        ("no-such-user", {}, False),
    ],
)
def test_accounts(user, changes, fits):
    assert accounts.fits(user, {**WANTED, **changes}) is fits


def test_a_home_that_is_gone(monkeypatch, tmp_path):
    home = str(tmp_path / "gone")
    gone = type("Entry", (), {"pw_uid": 7, "pw_gid": ME.pw_gid, "pw_dir": home, "pw_shell": ME.pw_shell})
    monkeypatch.setattr(accounts.pwd, "getpwnam", lambda _name: gone)
    assert not accounts.fits("user", {**WANTED, "home": home})
    (tmp_path / "gone").mkdir()
    assert accounts.fits("user", {**WANTED, "home": home})
