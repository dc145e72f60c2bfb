# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that keep secrets, reboots and failures in bounds, which no run on simulated hosts would miss."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]


def tasks(path):
    """Return the tasks of a file by their names, those of blocks included."""
    found, rest = {}, list(yaml.safe_load((ROOT / path).read_text(encoding="utf-8")))
    while rest:
        one = rest.pop()
        found[one.get("name")] = one
        for part in ("block", "rescue", "always", "tasks"):
            rest += one.get(part) or []
    return found


def test_the_password_of_the_key_is_not_logged():
    hidden = [one for one in tasks("roles/nvidia_driver/tasks/secure_boot.yml").values() if "password" in str(one)]
    assert any(one.get("no_log") is True for one in hidden)


def test_a_reboot_needs_permission():
    conditions = tasks("roles/nvidia_driver/tasks/reboot.yml")["Reboot the node"]["when"]
    assert "nvidia_driver_reboot_allowed | bool" in conditions


def test_verify_fails_for_its_verdict():
    task = tasks("roles/verify/tasks/conclude.yml")["Fail if any check failed or could not be decided"]
    assert task["allreduce.gpu.show"]["errors"].startswith("{{ [{'what': __verify_verdict ")
    assert task["allreduce.gpu.show"]["errors"].rstrip().endswith("if __verify_verdict else [] }}")


@pytest.mark.parametrize("playbook", ["train", "benchmark"])
def test_a_run_ends_for_all_nodes_where_it_ends_for_one(playbook):
    plays = yaml.safe_load((ROOT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8"))
    assert all(play["any_errors_fatal"] for play in plays if "hosts" in play)
