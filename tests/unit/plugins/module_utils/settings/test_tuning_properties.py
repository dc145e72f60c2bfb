# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of tuning: keys and entries of the boot loader, and that everything is put back whatever was changed."""

import json
import tempfile
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernel_arguments as arguments
from ansible_collections.allreduce.gpu.plugins.module_utils.host import sysctl
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import tuning, tuning_plan
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning_facts import read_tuning
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.tuning import TunedNode
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import server, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

WORD = st.text("abcdefgh_019", min_size=1, max_size=5)


@given(st.lists(WORD, min_size=2, max_size=5))
def test_a_normalised_key_stays(words):
    dotted = sysctl.normalise("/".join(words))
    assert dotted == ".".join(words)
    assert sysctl.normalise(dotted) == dotted
    assert sysctl.path_of(dotted) == "/proc/sys/" + "/".join(words)


WORDS = st.lists(st.text("abc=,.-01", min_size=1, max_size=6), max_size=6)


@given(WORDS, st.lists(st.sampled_from(["iommu=pt", "init_on_alloc=0", "pci=realloc=off"]), unique=True), st.booleans())
def test_what_was_added_can_be_taken_away_byte_for_byte(words, added, entry):
    line = " ".join(words)
    text = f"title x\nlinux /vmlinuz-1\noptions {line or 'ro'}\ninitrd /i\n" if entry else f"{line}\n"
    path = "/boot/loader/entries/1.conf" if entry else "/etc/kernel/cmdline"
    with_them = arguments.with_arguments(path, text, added, [])
    assert all(one in arguments.words(with_them) for one in added)
    assert arguments.with_arguments(path, with_them, [], added) == text


PATHS = ["/etc/sysctl.d/90-allreduce.conf", "/etc/new/deep/x.conf", "/etc/security/limits.conf", "/etc/link"]
FILES = st.lists(
    st.builds(
        lambda path, text: {"path": path, "content": text, "mode": "0644"}, st.sampled_from(PATHS), st.text(max_size=5)
    ),
    unique_by=lambda one: one["path"],
)
VALUES = st.lists(
    st.builds(
        lambda path, value: {"path": path, "value": value},
        st.sampled_from(
            ["/proc/sys/vm/swappiness", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "/proc/sys/none"]
        ),
        st.sampled_from(["10", "20", "performance"]),
    ),
    unique_by=lambda one: one["path"],
)
WANTED = st.builds(
    lambda files, values, words, interfaces: dict(
        tuning_plan.NOTHING, files=files, values=values, arguments=words, interfaces=interfaces
    ),
    FILES,
    VALUES,
    st.lists(st.sampled_from(["iommu=pt", "init_on_alloc=0", "quiet"]), unique=True),
    st.sampled_from([[], ["ens1"]]),
)
ENTRIES = {
    "/boot/loader/entries/1.conf": "title a\nlinux /1/linux\noptions ro quiet\n",
    "/boot/loader/entries/2.conf": "title b\nlinux /2/linux\noptions ro  quiet init_on_alloc=0 \n",
    "/etc/link": ("link", "security/limits.conf"),
}


@settings(max_examples=25, deadline=None)  # each one makes a machine of fifty files
@given(st.lists(WANTED, min_size=1, max_size=3))
def test_whatever_is_declared_in_turn_is_idempotent_and_put_back(declarations):
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        machine = tuning.Machine(tree(root, {**server(), **ENTRIES}), lambda path, text: Path(path).write_bytes(text))
        (root / "etc/security/limits.conf").chmod(0o640)
        before = values_of(snapshot(root))
        for wanted in declarations:
            predicted = tuning.settle(machine, wanted, check=True)
            assert tuning.settle(machine, wanted) == predicted
            again = tuning.settle(machine, wanted)
            assert (again["changed"], again["changes"], again["diff"]) == (False, [], [])
        tuning.settle(machine, tuning_plan.NOTHING)
        assert values_of(snapshot(root)) == before
        assert (root / "etc/security/limits.conf").stat().st_mode & 0o777 == 0o640


def values_of(found):
    """Files below /proc and /sys by their values: a kernel makes their text, a recorded tree keeps what was written."""
    return {
        path: sysctl.selected(content.decode())
        if path.startswith(("proc", "sys")) and isinstance(content, bytes)
        else content
        for path, content in found.items()
    }


def test_the_fact_is_a_document(tmp_path):
    fact = read_tuning(tree(tmp_path, server()), ["vm.swappiness", "a.b"], ["slurmd"], ["ens1", "ens9"])
    node = parse(TunedNode, json.loads(json.dumps(fact)), "gpu_tuning")
    assert set(node.sysctl) == {"vm.swappiness", "a.b"} and set(node.interfaces) == {"ens1", "ens9"}
    assert (node.memory_kib, node.limits.ceiling["memlock"]) == (1056000000, "unlimited")
