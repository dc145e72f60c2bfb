# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No distribution is claimed to be tested further than a scenario goes."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools import supported

CHECKOUT = Path(__file__).resolve().parents[3]
ROWS = load().rows("distros")
KNOWN = supported.scenarios(CHECKOUT)
MADE_UP = {"id": "ubuntu", "version": "18.04", "proof": "none", "scenario": None}
WHOLE = supported.WHOLE
DEBIAN_12 = next(row for row in ROWS if row["scenario"] == "debian12")


def test_the_table_claims_what_the_scenarios_show():
    assert supported.problems(ROWS, KNOWN) == []


def test_a_row_that_claims_nothing_needs_no_scenario():
    assert supported.problems([*ROWS, MADE_UP], KNOWN) == []


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"proof": "real"}, "ubuntu 18.04: proof real without a scenario"),
        ({"proof": "real", "scenario": "ubuntu1804"}, "ubuntu 18.04: there is no scenario ubuntu1804"),
        ({"proof": "real", "scenario": "debian12"}, "ubuntu 18.04: the host of debian12 is a debian 12"),
        ({"proof": "real", "scenario": "debian12"}, "scenario debian12 has more than one row"),
    ],
)
def test_a_made_up_claim_is_a_problem(claim, problem):
    assert problem in supported.problems([*ROWS, {**MADE_UP, **claim}], KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_a_scenario_without_a_row_is_a_problem(name):
    rows = [row for row in ROWS if row["scenario"] != name]
    assert supported.problems(rows, KNOWN) == [f"scenario {name} has no row"]


@pytest.mark.parametrize(
    ("row", "scenario", "problem"),
    [
        ({"proof": "replica"}, {}, "debian 12: proof is replica, debian12 shows real"),
        ({}, {"replica": True}, "debian 12: proof is real, debian12 shows replica"),
        ({}, {"converges": "part of site"}, "debian 12: proof is real, debian12 shows none"),
        ({"proof": "none"}, {"converges": "part of site"}, "debian 12: debian12 converges part of site"),
        ({}, {"hosts": 1}, "debian 12: debian12 trains on 1 host"),
        *[
            ({}, {"sequence": tuple(one for one in WHOLE if one != step)}, f"debian 12: debian12 leaves out {step}")
            for step in WHOLE
        ],
        # What is verified after the training, or idempotent only after it, is another job.
        (
            {},
            {"sequence": (*WHOLE[:1], *WHOLE[2:], WHOLE[1])},
            "debian 12: debian12 leaves out side_effect molecule/shared/check.yml",
        ),
    ],
)
def test_a_claim_beyond_its_scenario_is_a_problem(row, scenario, problem):
    rows = [{**one, **row} if one is DEBIAN_12 else one for one in ROWS]
    known = {**KNOWN, "debian12": replace(KNOWN["debian12"], **scenario)}
    assert problem in supported.problems(rows, known)


class Checkout:
    """A copy of what `scenarios` reads, with one scenario that can be changed."""

    def __init__(self, place):
        self.place = place
        for name in (
            ".config/molecule/config.yml", "tests/lab/replicas/distributions.yml", "playbooks/site.yml",
            "molecule/debian12/molecule.yml",
        ):  # fmt: skip
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text((CHECKOUT / name).read_text(encoding="utf-8"), encoding="utf-8")

    def change(self, name, **more):
        path = self.place / name
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), **more}), encoding="utf-8")

    @property
    def scenario(self):
        return supported.scenarios(self.place)["debian12"]


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_importing_site_converges_site(checkout):
    assert (checkout.scenario.converges, checkout.scenario.proof) == ("site", "real")


@pytest.mark.parametrize(
    "provisioner",
    [
        {"playbooks": {"converge": "../../tests/scenarios/stack.yml"}},
        {"ansible_args": ["--skip-tags=frameworks"]},
        {"ansible_args": ["--limit", "localhost"]},
        {"options": {"tags": "base"}},
    ],
    ids=lambda one: next(iter(one)),
)
def test_a_part_of_site_is_no_proof(checkout, provisioner):
    checkout.change("molecule/debian12/molecule.yml", provisioner=provisioner)
    assert (checkout.scenario.converges == "site", checkout.scenario.proof) == (False, "none")


@pytest.mark.parametrize("playbook", ["../../playbooks/plan.yml", "../shared/site.yml"])
def test_another_playbook_is_no_proof(checkout, playbook):
    checkout.change("molecule/debian12/molecule.yml", provisioner={"playbooks": {"converge": playbook}})
    assert (checkout.scenario.converges == "site", checkout.scenario.proof) == (False, "none")


@pytest.mark.parametrize("place", [".config/molecule/config.yml", "molecule/debian12/molecule.yml"])
def test_a_scenario_that_does_not_train_is_no_proof(checkout, place):
    steps = ["converge", "idempotence", "check", "side_effect ../../playbooks/verify.yml", "verify"]
    checkout.change(place, scenario={"test_sequence": steps})
    assert (checkout.scenario.converges, checkout.scenario.proof) == ("site", "none")


@pytest.mark.parametrize(
    ("host", "system"),
    [
        ({"os_release": {"ID": "ol", "VERSION_ID": "9.6"}}, "oraclelinux 9"),
        ({"os_release": {"ID": "ubuntu", "VERSION_ID": "24.04"}}, "ubuntu 24.04"),
        ({"published": "docker.io/library/debian:13"}, "debian 13"),
    ],
)
def test_a_lab_host_goes_by_the_name_of_the_table(host, system):
    assert supported._system(host) == system


def test_one_host_is_no_proof(checkout):
    checkout.change("molecule/debian12/molecule.yml", platforms=[{"name": "one"}])
    assert (checkout.scenario.hosts, checkout.scenario.proof) == (1, "none")


def test_a_replica_is_no_real_host(checkout):
    checkout.change("molecule/debian12/molecule.yml", driver={"distribution": "rocky8"})
    assert (checkout.scenario.system, checkout.scenario.proof) == ("rocky 8", "replica")


def test_the_play_of_the_branches_is_read_from_site():
    (play,) = yaml.safe_load((CHECKOUT / "tests/scenarios/stack.yml").read_text(encoding="utf-8"))
    command = [
        sys.executable,
        "-m",
        "ansible",
        "adhoc",
        "localhost",
        "-c",
        "local",
        "-m",
        "debug",
        "-a",
        "var=converge_roles",
    ]
    command += ["-e", json.dumps(play["vars"]), "--playbook-dir", str(CHECKOUT / "tests/scenarios")]
    environment = {
        "PATH": "/usr/bin:/bin",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
    }
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    chosen = json.loads(said[said.index("{") :])["converge_roles"]
    left = play["vars"]["converge_without"]
    roles = supported.site_roles(CHECKOUT)
    assert set(left) < set(roles)
    assert [name.removeprefix("allreduce.gpu.") for name in chosen] == [name for name in roles if name not in left]


def test_the_play_of_the_faults_follows_site():
    (play,) = yaml.safe_load((CHECKOUT / "tests/scenarios/faults/stack.yml").read_text(encoding="utf-8"))
    roles = [role["role"].removeprefix("allreduce.gpu.") for role in play["roles"]]
    assert roles[0] == "stack"
    assert roles[1:] == [name for name in supported.site_roles(CHECKOUT) if name in roles]


def test_make_test_converges_every_way_to_install_a_driver():
    """noxfile.MOLECULE; nox itself is not at hand under every ansible-core."""
    tree = ast.parse((CHECKOUT / "noxfile.py").read_text(encoding="utf-8"))
    values = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    chosen = ast.literal_eval(values["MOLECULE"])
    rows = {row["scenario"]: row for row in ROWS if row["scenario"]}
    assert set(chosen) <= set(rows)
    assert {rows[name]["package_manager"] for name in chosen} == {"apt", "dnf"}
    assert any(rows[name]["proof"] == "real" for name in chosen)
    assert any(rows[name]["drivers"][0] == "distribution" for name in chosen)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']}-{row['version']}")
@pytest.mark.parametrize("role", sorted(supported.with_used(CHECKOUT, supported.site_roles(CHECKOUT))))
def test_every_role_has_variables_for_a_system_or_refuses_it(role, row):
    place = CHECKOUT / "roles" / role
    assert supported.knows(place, row) or supported.refuses(place)


@pytest.mark.parametrize("row", [row for row in ROWS if row["proof"] != "none"], ids=lambda row: row["scenario"])
@pytest.mark.parametrize("role", sorted(supported.with_used(CHECKOUT, supported.site_roles(CHECKOUT))))
def test_no_role_refuses_where_the_whole_job_is_proven(role, row):
    assert supported.knows(CHECKOUT / "roles" / role, row)


def test_a_role_without_variables_and_refusal_is_found(tmp_path):
    role = tmp_path / "half"
    for name in ("vars", "tasks"):
        (role / name).mkdir(parents=True)
    (role / "vars" / "main.yml").write_text("---\n__half_a: 1\n", encoding="utf-8")
    (role / "tasks" / "main.yml").write_text("---\n- ansible.builtin.ping:\n", encoding="utf-8")
    rocky = next(row for row in ROWS if row["scenario"] == "rocky9")
    assert supported.knows(role, rocky)
    (role / "vars" / "debian.yml").write_text("---\n__half_a: 2\n", encoding="utf-8")
    assert supported.knows(role, DEBIAN_12)
    assert not supported.knows(role, rocky)
    assert not supported.refuses(role)
