# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab says of a host that does not boot, without hosts."""

import pytest

from tests.lab import services
from tests.lab.progress import LabError


@pytest.mark.parametrize(
    ("restarts", "said"),
    [
        ("0", r"gpu-1 did not boot within 0\.5 s \(systemd says starting\)"),
        (
            "218",
            r"ended 218 times; with many hosts 128 inotify instances are too few: raise fs\.inotify\.max_user_instances",
        ),
    ],
)
def test_a_host_that_does_not_boot_says_why(restarts, said, monkeypatch, tmp_path):
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n", encoding="utf-8")
    monkeypatch.setattr(services, "INOTIFY", limit)
    monkeypatch.setattr(
        services, "podman", lambda command, *args, **more: {"exec": "starting", "inspect": restarts}[command] + "\n"
    )
    monkeypatch.setattr(services.time, "monotonic", iter([0, 0, 1]).__next__)
    monkeypatch.setattr(services.time, "sleep", lambda seconds: None)
    with pytest.raises(LabError, match=said):
        services.wait_until_booted("gpu-1", seconds=0.5)
