# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first plan of README prints what README shows, and asks for a stack that nothing warns about."""

import re

import pytest
import yaml

from tests.support.command import CHECKOUT, play, write_inventory

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
INVENTORY = re.search(r"^```yaml\n(gpu_nodes:.*?)^```", README, re.MULTILINE | re.DOTALL)[1]
SHOWN = re.findall(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# What README tells to change for its second plan.
IMPOSSIBLE = (('driver: "580"', 'driver: "570"'), ('pytorch: "2.14"', 'pytorch: "2.15"'))


def without_kind(text):
    return re.sub(r"kind [0-9a-f]{8}:", "kind …:", text)


@pytest.mark.parametrize(
    ("changes", "shown", "status"), [((), SHOWN[0], 0), (IMPOSSIBLE, SHOWN[1], 2)], ids=["fits", "does not"]
)
def test_it_prints_what_is_shown(tmp_path, changes, shown, status):
    inventory = INVENTORY
    for old, new in changes:
        assert old in inventory
        assert f"`{new}`" in README
        inventory = inventory.replace(old, new)
    write_inventory(tmp_path, yaml.safe_load(inventory))
    planned = play(tmp_path, "plan")
    assert planned.status == status, planned.output
    # The kind is another one with each version of the tables.
    then = "error: No stack for gpu-1, gpu-2" if status else "ok: [gpu-1]"
    assert f"*\n{without_kind(shown)}{then}" in without_kind(planned.output)
    assert not re.search("(?im)^(warning|.*WARN)", planned.output)
