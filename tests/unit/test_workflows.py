# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CI runs what contributors run, with pinned actions and a token that can only read, but for a release."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# What a release writes with its token: the attestation of its files, and the page of its tag.
PUBLISHES = {"attestations": "write", "contents": "write", "id-token": "write"}

each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def read(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def commands(job):
    return [step.get("run") for step in job["steps"]]


def test_one_job_runs_make_test():
    assert ".ci/run" in commands(read("test.yml")["jobs"]["test"])
    assert re.search(r"^make test\b", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


def test_one_job_is_quick():
    quick = read("test.yml")["jobs"]["quick"]
    assert "make quick" in commands(quick)
    assert quick["timeout-minutes"] <= 20
    assert re.search(r"^quick:", MAKEFILE, re.MULTILINE)


def test_unit_tests_run_on_each_supported_ansible_core():
    job = read("test.yml")["jobs"]["cores"]
    ran = {one["core"]: one["session"] for one in job["strategy"]["matrix"]["include"]}
    assert ran == {"2.16": "unit_216", "2.19": "unit", "2.21": "unit_221"}
    sessions = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert all(f"\ndef {name}(session):" in sessions for name in ran.values())
    assert "ansible-core==2.19." in (ROOT / "requirements.in").read_text(encoding="utf-8")


def test_a_tag_is_released_as_it_is_by_hand():
    release = read("release.yml")
    assert release["on"] == {"push": {"tags": ["[0-9]+.[0-9]+.[0-9]+"]}}
    assert any(command and command.startswith("make release ") for command in commands(release["jobs"]["build"]))
    publish = release["jobs"]["publish"]
    assert (publish["needs"], publish["environment"]) == ("build", "galaxy")
    assert any("secrets.GALAXY_TOKEN" in str(step.get("env")) for step in publish["steps"])


@each
def test_actions_are_pinned_to_a_commit_and_name_their_release(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@each
def test_the_token_can_only_read_but_where_a_release_is_published(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    found = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert found == ({"publish": PUBLISHES} if path.name == "release.yml" else {})
