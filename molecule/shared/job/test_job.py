# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the full run leaves: environments and keys on the hosts; a verdict, a training and a report on the controller."""

import json

import pytest

# A container has the clock of the machine it runs on; nobody says how fast an all_reduce should be there; pairs are
# measured on request (scenario test_74_network_check).
MAY_BE_SKIPPED = {"clock_synchronised", "selinux_mode", "all_reduce_bandwidth", "pair_bandwidth", "pair_latency"}
PROGRAM = (
    "import sys, torch;"
    " print(*sys.version_info[:2], sys.base_prefix, torch.__version__, (torch.ones(3) @ torch.ones(3)).item())"
)
# Where the interpreter of an environment lies, by its source in the plan.
INTERPRETERS = {"distribution": "/usr", "standalone": "/opt/allreduce/python/"}


@pytest.fixture(scope="module")
def verification(reports):
    return json.loads((reports / "verify.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def training(reports):
    (path,) = (reports / "training").glob("*/result.json")
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_planned_environment_computes(host, stack):
    assert stack["environments"]
    for environment in stack["environments"]:
        said = host.check_output(f"/opt/allreduce/envs/{environment['name']}/bin/python -c '{PROGRAM}'")
        major, minor, base, torch, result = said.split()
        assert f"{major}.{minor}" == environment["python"]
        assert base.startswith(INTERPRETERS[environment["interpreter"]["source"]])
        assert torch.partition("+")[0] == environment["frameworks"]["pytorch"]
        assert torch.partition("+")[2] == environment["index"]["name"]
        assert result == "3.0"


def test_no_environment_shares_a_file(host, stack):
    for environment in stack["environments"]:
        # With a cache, damage would outlive a reinstallation.
        assert host.check_output(f"find /opt/allreduce/envs/{environment['name']}/ -type f -links +1") == ""


def test_the_files_that_roles_keep_whole_are_noted_and_there(host):
    """Where all are as declared, the next run of site sends no module for them."""
    noted = json.loads(host.check_output("sudo cat /var/lib/allreduce/notes/files.json"))
    assert {"/etc/allreduce", "/var/lib/allreduce"} <= set(noted)
    there = host.check_output(f"sudo ls -d {' '.join(noted)} 2>/dev/null; true").split()
    assert {"/etc/allreduce", "/var/lib/allreduce"} <= set(there)


def test_every_node_reaches_every_other_one(host, names):
    own = host.check_output("hostname")
    reached = [
        host.check_output(f"sudo -H -u trainer ssh -o BatchMode=yes -o StrictHostKeyChecking=yes {name} hostname")
        for name in names
        if name != own
    ]
    assert reached == [name for name in names if name != own]
    assert reached


def test_all_was_verified_and_found_right(verification, names):
    assert set(verification["nodes"]) == set(names)
    checks = [check for node in verification["nodes"].values() for check in node["checks"]]
    checks += verification["cluster_checks"]
    assert [check for check in checks if check["status"] not in ("passed", "skipped")] == []
    assert {check["name"] for check in checks if check["status"] == "skipped"} == MAY_BE_SKIPPED
    assert {check["category"] for check in checks if check["status"] == "passed"} >= {
        "coherence", "health", "environment", "network", "collectives",
    }  # fmt: skip


def test_all_hosts_trained_together(training, names):
    assert training["status"] == "succeeded"
    assert training["failure"] is None
    assert training["nodes"] == names
    assert training["world_size"] == len(names)
    assert training["metrics"]["backend"] == "gloo"
    assert training["metrics"]["loss_last"] < training["metrics"]["loss_first"]
    assert training["metrics"]["samples_per_second"] > 0


def test_the_report_tells_of_all(reports, training, names):
    report = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    assert report["verdict"]["sentences"]
    page = (reports / "report.html").read_text(encoding="utf-8")
    assert [name for name in [*names, training["run_id"]] if name not in page] == []
    assert (reports / "junit.xml").exists()
