# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of gres.conf and slurm.conf for several nodes."""

from dataclasses import replace

from ansible_collections.allreduce.gpu.plugins.module_utils.host import hostlist
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import lines
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.decide import model_of
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm import measured, unfolded

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True)
NUMBERED = st.builds(
    lambda prefix, number, width: f"{prefix}{str(number).zfill(width)}",
    st.sampled_from(["gpu", "gpu-", "n0", "a9-b"]), st.integers(0, 120), st.integers(1, 4),
)  # fmt: skip


@given(st.sets(LABELS | NUMBERED, max_size=30))
def test_a_folded_list_has_its_names_once_and_no_others(names):
    folded = hostlist.fold(names)
    assert sorted(unfolded(folded)) == sorted(names)
    assert all(hostlist.has(folded, name) for name in names)


@given(st.sets(NUMBERED, min_size=1, max_size=30), NUMBERED)
def test_a_list_has_no_name_that_was_not_folded(names, other):
    assert hostlist.has(hostlist.fold(names), other) is (other in names)


def nodes(**machines):
    """Nodes by their names: simulated machines."""
    found = {name: model_of("gpu-1", {"ansible_facts": measured(machine)}) for name, machine in machines.items()}
    return [(replace(node, name=name.replace("_", "-")), "none") for name, node in found.items()]


def test_equal_nodes_share_their_lines():
    found = lines.files(nodes(gpu_2="rtx-3090", gpu_1="rtx-3090", gpu_3="a100-mig", gpu_10="rtx-3090", cpu="no-gpu"))
    assert found[lines.GRES] == (
        f"{lines.HEAD}\n"
        "NodeName=gpu-[1-2,10] AutoDetect=off Name=gpu Type=nvidia_geforce_rtx_3090 File=/dev/nvidia0 Links=-1,4\n"
        "NodeName=gpu-[1-2,10] AutoDetect=off Name=gpu Type=nvidia_geforce_rtx_3090 File=/dev/nvidia1 Links=4,-1\n"
        "NodeName=gpu-3 AutoDetect=off Name=gpu Type=nvidia_a100_3g.20gb "
        "MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap3,/dev/nvidia-caps/nvidia-cap4\n"
        "NodeName=gpu-3 AutoDetect=off Name=gpu Type=nvidia_a100_3g.20gb "
        "MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap5,/dev/nvidia-caps/nvidia-cap6\n"
    )
    hosts = [line.split(" ")[0] for line in found[lines.NODES].splitlines()[1:]]
    assert hosts == ["NodeName=cpu", "NodeName=gpu-[1-2,10]", "NodeName=gpu-3"]


def test_what_slurms_plugins_detect_is_left_to_them():
    found = [(node, "nvml") for node, _autodetect in nodes(gpu_1="a100-mig", gpu_2="a40-pcie", cpu="no-gpu")]
    assert lines.files(found)[lines.GRES] == f"{lines.HEAD}\nNodeName=gpu-[1-2] AutoDetect=nvml\n"


MACHINES = ["a40-pcie", "a100-mig", "dgx-a100", "no-gpu", "rtx-3090-3080"]


@given(st.dictionaries(st.integers(0, 40).map(lambda number: f"gpu-{number}"), st.sampled_from(MACHINES), max_size=12))
def test_every_gpu_of_every_node_appears_once(cluster):
    made = nodes(**{name.replace("-", "_"): machine for name, machine in cluster.items()})
    found = lines.files(made)
    rows = [line.partition(" ") for line in found[lines.GRES].splitlines()[1:]]
    said = sorted((name, rest) for hosts, _space, rest in rows for name in unfolded(hosts.partition("=")[2]))
    assert said == sorted((node.name, text) for node, _none in made for text in lines.gres_texts(node, "none"))
    named = [
        name for line in found[lines.NODES].splitlines()[1:] for name in unfolded(line.split(" ")[0].partition("=")[2])
    ]
    assert sorted(named) == sorted(cluster)
