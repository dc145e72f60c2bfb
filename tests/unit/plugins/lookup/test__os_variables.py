# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible import constants
from ansible.errors import AnsibleError
from ansible_collections.allreduce.gpu.plugins.lookup._os_variables import DOCUMENTATION, LookupModule

NAME = "allreduce.gpu._os_variables"


def run(facts, **options):
    """Run the lookup as Ansible's loader prepares it; the loader itself finds nothing after other tests' imports."""
    constants.config.initialize_plugin_configuration_definitions(
        "lookup", NAME, yaml.safe_load(DOCUMENTATION)["options"]
    )
    lookup = LookupModule()
    lookup._load_name = NAME
    return lookup.run([], facts, **options)


ROCKY = {"family": "el", "id": "rocky", "version": "8"}
UBUNTU = {"family": "debian", "id": "ubuntu", "version": "22.04"}


@pytest.fixture
def role(tmp_path):
    for name in ("main", "debian", "ubuntu", "ubuntu-22.04", "el", "el-8", "rhel", "centos-8"):
        path = tmp_path / "driver" / "vars" / f"{name}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("---\n")
    return tmp_path / "driver"


@pytest.mark.parametrize(
    ("system", "names"),
    [
        (UBUNTU, ["debian", "ubuntu", "ubuntu-22.04"]),
        ({**UBUNTU, "version": "24.04"}, ["debian", "ubuntu"]),
        ({"family": "debian", "id": "debian", "version": "12"}, ["debian"]),
        (ROCKY, ["el", "el-8"]),
        ({**ROCKY, "version": "9"}, ["el"]),
        ({**ROCKY, "id": "centos"}, ["el", "el-8", "centos-8"]),
    ],
)
def test_files_from_the_general_to_the_particular(role, system, names):
    facts = {"role_path": str(role), "ansible_facts": {"gpu_stack": {"os": system}}}
    assert [Path(path).stem for path in run(facts)] == names


@pytest.mark.parametrize(
    ("options", "advice"),
    [({}, "use one that the documentation of the stack lists"), ({"advice": "set x"}, "set x")],
)
def test_an_unknown_operating_system_is_refused(role, options, advice):
    facts = {"role_path": str(role), "ansible_facts": {"gpu_stack": {"os": {**ROCKY, "family": "suse", "id": "sles"}}}}
    with pytest.raises(AnsibleError, match=f"Role driver does not know the operating system sles 8: {advice}."):
        run(facts, **options)
