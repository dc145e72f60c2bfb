# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any declaration after any other leaves nothing to do, and what others made."""

from pathlib import Path
from unittest import mock

from ansible_collections.allreduce.gpu.plugins.module_utils.settings import slurm_accounting
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.sacctmgr_helper import ACCOUNT, QOS, Host
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = st.none() | st.integers(0, 9000)
NAMES = ["a", "b", "c", "d"]


@st.composite
def declarations(draw):
    """QoS and accounts that preflight lets through, among few names."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    qos = [
        {
            "name": name,
            **{key: draw(NUMBERS) for key in ("priority", "max_minutes", "gpus", "gpus_per_user", "jobs_per_user")},
            "preempts": draw(st.lists(st.sampled_from([one for one in names if one != name] or [""]), unique=True)),
        }
        for name in names
    ]
    for one in qos:
        one["preempts"] = [name for name in one["preempts"] if name]
    accounts = []
    for name in draw(st.permutations(NAMES))[: draw(st.integers(0, 4))]:
        allowed = draw(st.lists(st.sampled_from([*names, "normal"]), unique=True))
        accounts.append({
            "name": name,
            "parent": draw(st.sampled_from(["root", *(one["name"] for one in accounts)])),
            "shares": draw(st.none() | st.integers(1, 50)),
            "gpus": draw(NUMBERS),
            "gpus_per_job": draw(NUMBERS),
            "users": draw(st.lists(st.sampled_from(["u", "v", "w"]), unique=True)),
            "qos": allowed,
            "default_qos": draw(st.sampled_from(["", *allowed])),
        })  # fmt: skip
    return qos, draw(st.permutations(accounts))


# Without waiting for the disk.
@mock.patch.object(slurm_accounting, "replace", lambda path, content: Path(path).write_text(content, encoding="utf-8"))
@settings(max_examples=100, deadline=None)
@given(declared=st.lists(declarations(), min_size=1, max_size=3))
def test_any_declaration_after_any_other_leaves_nothing_to_do_and_what_others_made(tmp_path_factory, declared):
    host = Host(tmp_path_factory.mktemp("host"))
    host.accounting.qos["theirs"] = {**QOS, "Preempt": "normal"}
    host.accounting.accounts["chemistry"] = {**ACCOUNT, "ParentName": "root", "QOSLevel": "theirs"}
    host.accounting.users |= {("chemistry", "u", ""), ("chemistry", "v", "gpu")}
    host.accounting.defaults.update(u="chemistry", v="chemistry")
    others = host.accounting.everything()
    for qos, accounts in declared:
        predicted = host.settle(qos, accounts, check=True)
        assert host.settle(qos, accounts) == predicted
        done = host.settle(qos, accounts)
        assert (done["changed"], done["commands"]) == (False, [])
        assert {name for name, _one in host.accounting.accounts.items()} == {
            "root", "chemistry", *(one["name"] for one in accounts),
        }  # fmt: skip
    host.settle()
    assert host.accounting.everything() == others and host.record() is None
