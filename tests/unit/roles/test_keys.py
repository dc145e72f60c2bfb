# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rpm imports every key of a file, so that all of them are compared before; dnf is told no address."""

import re
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
IMPORTS = sorted(path for path in ROLES.glob("*/tasks/*.yml") if "rpm_key" in path.read_text(encoding="utf-8"))


def flat(tasks):
    """The tasks of a file in their order, those of blocks among them."""
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from flat(task.get(part) or [])


def test_roles_import_keys():
    assert [str(path.relative_to(ROLES)) for path in IMPORTS] == [
        "base/tasks/epel.yml",
        "monitoring/tasks/repository.yml",
    ]


@pytest.mark.parametrize("path", IMPORTS, ids=lambda path: path.parts[-3])
def test_all_keys_of_a_file_are_compared_before_rpm_gets_it(path):
    tasks = list(flat(yaml.safe_load(path.read_text(encoding="utf-8"))))
    (imports,) = (number for number, task in enumerate(tasks) if "ansible.builtin.rpm_key" in task)
    (compares,) = (number for number, task in enumerate(tasks) if "ansible.builtin.assert" in task)
    (read,) = (number for number, task in enumerate(tasks) if "allreduce.gpu.read_file" in task)
    assert read < compares < imports
    found, said = tasks[compares], tasks[compares]["ansible.builtin.assert"]["that"]
    name, wanted = re.fullmatch(r"(\w+) == \[(.+)\]", said).groups()  # the whole list
    assert found["vars"][name].endswith("allreduce.gpu._openpgp_keys | map(attribute='fingerprint') | list }}")
    assert tasks[read]["register"] in found["vars"][name]
    key = tasks[imports]["ansible.builtin.rpm_key"]
    assert re.search(r"\w*fingerprint", wanted)[0] == re.search(r"\w*fingerprint(?= }}|$)", key["fingerprint"])[0]


def test_no_repository_names_the_address_of_a_key():
    texts = {path: path.read_text(encoding="utf-8") for path in ROLES.glob("*/templates/*.repo.j2")}
    keys = {line for text in texts.values() for line in re.findall(r"(?m)^gpgkey=(.*)$", text)}
    # That of a distribution's own repository is the one it has.
    assert keys == {"file://{{ __cuda_repository_key_file }}", "{{ known.key }}"}
