# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.allreduce.gpu.plugins.filter.sbom import FilterModule
from ansible_collections.allreduce.gpu.plugins.plugin_utils.sbom import bill

STACK = {
    "os": {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"},
    "nccl": {"version": "2.18.3", "packages": [{"name": "libnccl2", "version": "2.18.3-1"}]},
}
SBOM = FilterModule().filters()["sbom"]


@pytest.mark.parametrize(
    "arguments, version, name",
    [
        ((), "2.18.3-1", "node"),
        (({"packages": {"libnccl2": "2.17.1-1"}}, "gpu-01"), "2.17.1-1", "gpu-01"),
    ],
)
def test_the_text_is_the_document(arguments, version, name):
    document = json.loads(SBOM(STACK, *arguments))

    assert [one["version"] for one in document["components"] if one["name"] == "libnccl2"] == [version]
    assert document["metadata"]["component"]["name"] == name


def test_a_controller_without_the_library(monkeypatch):
    monkeypatch.setattr(bill, "_CYCLONEDX", False)

    with pytest.raises(AnsibleFilterError, match="lacks the Python package cyclonedx-python-lib"):
        SBOM(STACK)
