# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bill of materials as a document: valid CycloneDX, the same for equal nodes."""

from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.sbom import bill as module
from ansible_collections.allreduce.gpu.plugins.plugin_utils.sbom.bill import bill
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

SYSTEMS = ["ubuntu 22.04", "debian 12", "rocky 9"]
OBSERVED = {
    "measured": True,
    "packages": {},
    "environments": {"main": {"python": "3.11.2", "packages": {"torch": "2.5.1"}}},
}


def stack_of(system):
    question = {"os": system, "arch": "x86_64", "gpus": ["A100-SXM4-80GB"] * 8, "request": {}, "ansible_core": "2.19.0"}
    return decide(question)["stack"]


@pytest.fixture(params=SYSTEMS)
def stack(request):
    return stack_of(request.param)


def test_the_document_is_valid(stack):
    text = json.dumps(bill(stack, name="gpu-01"))

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_every_package_has_a_package_url(stack):
    urls = [one.get("purl") for one in bill(stack)["components"] if one["type"] == "library"]

    assert len(urls) >= 8
    kind = "rpm" if stack["os"]["family"] == "el" else "deb"
    assert {PackageURL.from_string(one).type for one in urls} == {kind, "generic", "pypi"}
    assert any(one.startswith(f"pkg:{kind}/{stack['os']['id']}/") for one in urls)


def test_a_package_of_two_environments_names_both():
    stack = {**stack_of("debian 12"), "environments": [
        {"name": name, "python": "3.11", "requirements": ["torch==2.5.1"]} for name in ("main", "other")
    ]}  # fmt: skip
    torch = [one for one in bill(stack)["components"] if one["name"] == "torch"]

    assert [[part["value"] for part in one["properties"]] for one in torch] == [["main", "other"]]


def test_equal_nodes_have_equal_documents():
    one, again, other = (bill(stack_of(name)) for name in ("debian 12", "debian 12", "rocky 9"))

    assert one == again
    assert one["serialNumber"] != other["serialNumber"]


def test_what_is_installed_is_listed():
    stack = {**stack_of("debian 12"), "environments": [{"name": "main", "python": "3.11"}]}
    found = {one["name"]: one.get("version") for one in bill(stack, OBSERVED)["components"]}

    assert found == {"debian": "12", "python": "3.11.2", "torch": "2.5.1"}


def test_without_the_library(monkeypatch):
    monkeypatch.setattr(module, "_CYCLONEDX", False)

    with pytest.raises(ProblemError) as caught:
        bill(stack_of("debian 12"))
    assert [one.code for one in caught.value.problems] == ["sbom_no_library"]
