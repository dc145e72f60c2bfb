# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes in Slurm's words, derived from every simulated machine."""

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import misfits
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import lines
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.decide import model_of
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.nvml import machines
from tests.support.slurm import Gres, expected, measured

NAMES = [make().name for make in machines.MACHINES]
each_machine = pytest.mark.parametrize("name", NAMES)
both = pytest.mark.parametrize("by_numa_node", [False, True], ids=["packages", "NUMA nodes"])


def model(name, facts=None, **variables):
    return model_of("gpu-1", {"ansible_facts": facts or measured(name), **variables})


def changed(machine, **what):
    """Facts of a machine with other values in gpu_slurm."""
    facts = measured(machine)
    return {**facts, "gpu_slurm": {**facts["gpu_slurm"], **what}}


def refused(name, facts=None, **variables):
    with pytest.raises(ProblemError) as caught:
        model(name, facts, **variables)
    return " ".join(describe(one) for one in caught.value.problems)


PLACE = {"package": 0, "node": 0, "cores": 8, "threads": 2, "cpus": "0-15"}
LIES = {
    "negative_cores": {"places": [{**PLACE, "cores": -8}]},
    "too_many_cores": {"places": [{**PLACE, "cores": 10**9}]},
    "negative_threads": {"places": [{**PLACE, "threads": -2}]},
    "endless_cpus": {"places": [{**PLACE, "cpus": "0-99999999999"}]},
    "cpus_again_and_again": {"places": [{**PLACE, "cpus": "0-65535," * 99_999 + "0"}]},
    "cpus_that_are_no_digits": {"places": [{**PLACE, "cpus": "\N{SUPERSCRIPT TWO}"}]},
    "cpus_of_5000_digits": {"places": [{**PLACE, "cpus": "9" * 5000}]},
    "backwards": {"places": [{**PLACE, "cpus": "9-0"}]},
    "negative_memory": {"memory_kib": -(2**30)},
    "endless_memory": {"memory_kib": 2**62},
    "negative_file": {"capabilities": {"gpu0/gi1/access": -1}},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_node_that_cannot_be_is_left_out_at_once(lie):
    facts = changed("a40-pcie", **lie)
    with pytest.raises(DocumentError):
        model("a40-pcie", facts)
    (problem,) = misfits("gpu-1", {"ansible_facts": facts}, ["ansible_facts.gpu_slurm"])
    assert problem.subject == "gpu-1"


@pytest.mark.parametrize(
    "cpus", ["0-99999999999", "0-65535 " * 9999, "0-8:0", "0-8:2/0", "\N{SUPERSCRIPT TWO}", "9" * 5000, "x"]
)
def test_a_gpu_near_processors_that_cannot_be_is_refused_at_once(cpus):
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_node"]["gpus"][0]["cpu_affinity"] = cpus
    (problem,) = misfits("gpu-1", {"ansible_facts": facts}, ["ansible_facts.gpu_node"])
    assert problem.subject == "gpu-1"


@pytest.mark.parametrize("kib", [None, 0, 1, 4096])
def test_a_node_with_less_than_a_mebibyte_for_a_processor_is_refused(kib):
    """DefMemPerCPU would be 0, which is no limit, for all nodes."""
    assert "does not show how much memory there is" in refused("a40-pcie", changed("a40-pcie", memory_kib=kib))


@each_machine
def test_gpus_are_what_slurms_own_plugin_makes_of_them(name):
    found = [Gres(one.type, ",".join(one.files), one.links or "(null)") for one in model(name).devices]
    assert found == expected(machines.named(name))


@each_machine
@both
def test_cores_are_those_of_one_socket(name, by_numa_node):
    """Numbers of cores, not of processors: as many as there are, each socket's together, and those of the GPU's NUMA node."""
    node, machine = model(name, slurm_numa_node_as_socket=by_numa_node), machines.named(name)
    owners = {}
    for device in node.devices:
        gpu = next(gpu for gpu in machine.gpus if f"/dev/nvidia{gpu.minor}" == device.files[0])
        if node.sockets == 1:
            assert device.cores == ""
            continue
        first, last = map(int, device.cores.split("-"))
        assert first % node.cores == 0 and last - first == node.cores - 1 and last < node.sockets * node.cores
        per_socket = len(machine.numa) // node.sockets
        assert first // node.cores == gpu.numa // per_socket
        owners.setdefault(gpu.numa // per_socket, set()).add(device.cores)
    assert all(len(cores) == 1 for cores in owners.values())


@each_machine
@both
def test_a_node_has_all_processors(name, by_numa_node):
    node = model(name, slurm_numa_node_as_socket=by_numa_node)
    ends = [part.split("-") for cpus in machines.named(name).numa.values() for part in cpus.split(",")]
    assert node.sockets * node.cores * node.threads == sum(int(last) - int(first) + 1 for first, last in ends)


@pytest.mark.parametrize(
    ("name", "by_numa_node", "line"),
    [
        (
            "dgx-a100",
            False,
            "Boards=1 SocketsPerBoard=2 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=978944 Gres=gpu:nvidia_a100-sxm4-80gb:8 "
            "Feature=nvidia_a100-sxm4-80gb,nvswitch,driver_535",
        ),
        (
            "dgx-a100",
            True,
            "Boards=1 SocketsPerBoard=8 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=978944 Gres=gpu:nvidia_a100-sxm4-80gb:8 "
            "Feature=nvidia_a100-sxm4-80gb,nvswitch,driver_535",
        ),
        (
            "rtx-3090-3080",
            False,
            "Boards=1 SocketsPerBoard=1 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=978944 "
            "Gres=gpu:nvidia_geforce_rtx_3090:1,gpu:nvidia_geforce_rtx_3080:1 "
            "Feature=nvidia_geforce_rtx_3090,nvidia_geforce_rtx_3080,pcie,driver_535",
        ),
        (
            "a100-mig",
            False,
            "Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=978944 Gres=gpu:nvidia_a100_3g.20gb:2 "
            "Feature=nvidia_a100-sxm4-40gb,pcie,driver_535",
        ),
        ("no-gpu", False, "Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=978944"),
    ],
)
def test_the_line_of_a_node(name, by_numa_node, line):
    assert lines.node_texts(model(name, slurm_numa_node_as_socket=by_numa_node)) == [line]


@pytest.mark.parametrize(
    ("kib", "margin", "mib"),
    [(1056270116, 5, 978944), (1056270116, 0, 1031168), (1056200000, 5, 978944), (900 * 1024, 10, 810)],
)
def test_memory_has_a_margin(kib, margin, mib):
    """Of nodes that differ by what their kernels keep it is the same."""
    assert model("no-gpu", changed("no-gpu", memory_kib=kib), slurm_memory_margin=margin).memory == mib


def test_a_gpu_without_a_numa_node_is_near_its_processors():
    facts = copy.deepcopy(measured("a40-pcie"))
    for gpu in facts["gpu_node"]["gpus"]:
        gpu["numa_node"] = None
    assert model("", facts).devices == model("a40-pcie").devices


def test_a_gpu_that_is_near_all_processors_has_no_cores_of_its_own():
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_node"]["gpus"][0].update(numa_node=None, cpu_affinity="0-127")
    facts["gpu_node"]["gpus"][1].update(numa_node=None, cpu_affinity=None)
    assert [one.cores for one in model("", facts).devices] == [""] * 4  # all have them, or none


def test_a_gpu_that_is_cut_up_without_instances_is_left_out():
    facts = copy.deepcopy(measured("a100-mig"))
    facts["gpu_node"]["gpus"][0]["mig"]["instances"] = []
    assert model("", facts).devices == ()


def test_short_types_and_further_features():
    node = model("hgx-h100", slurm_gpu_types={"NVIDIA H100 80GB HBM3": "h100"}, slurm_features=["rack_7", "nvswitch"])
    assert {one.type for one in node.devices} == {"h100"}
    assert node.features == ("h100", "nvswitch", "driver_580", "rack_7")


UNEVEN = [{"package": 0, "node": 0, "cores": 4, "threads": 2}, {"package": 1, "node": 1, "cores": 3, "threads": 2}]
MIXED = [{"package": 0, "node": 0, "cores": 4, "threads": None}]


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"places": UNEVEN}, "The sockets of gpu-1 do not have equally many cores and threads"),
        ({"places": MIXED}, "The sockets of gpu-1 do not have equally many cores and threads"),
        ({"places": []}, "The kernel of gpu-1 does not show the topology of its processors"),
        ({"memory_kib": None}, "The kernel of gpu-1 does not show how much memory there is"),
        *(
            ({"name": name}, f"gpu-1 is called '{name}', which Slurm does not take for a node")
            for name in ("", "DEFAULT", "gpu[1-9]", "a b", "gpu-1\nNodeName=x", "gpu_1", "a" * 64)
        ),
    ],
)
def test_nodes_that_slurm_would_take_for_something_else(what, sentence):
    assert sentence in refused("a40-pcie", changed("a40-pcie", **what))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"minor_number": None}, "GPU0 of gpu-1 has no device file"),
        ({"name": None}, "GPU0 of gpu-1 has no device file"),
        ({"name": "NVIDIA A40 Gres=gpu:x\n"}, "A GPU of gpu-1 is called"),
        ({"name": "NVIDIA,A40"}, "A GPU of gpu-1 is called nvidia,a40"),
        ({"name": "NVIDIA A40:8"}, "A GPU of gpu-1 is called nvidia_a40:8"),
    ],
)
def test_gpus_that_cannot_be_given_to_jobs(what, sentence):
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_node"]["gpus"][0].update(what)
    assert sentence in refused("", facts)


def test_a_mig_instance_without_its_device_files():
    found = refused("a100-mig", changed("a100-mig", capabilities={"gpu0/gi1/access": 3, "gpu0/gi1/ci0/access": 4}))
    assert found == "gpu0/gi2 on GPU0 of gpu-1 has no device files of its own; create the MIG instance again."


def test_a_mig_instance_whose_name_does_not_tell():
    facts = copy.deepcopy(measured("a100-mig"))
    facts["gpu_node"]["gpus"][0]["mig"]["instances"][0]["name"] = "NVIDIA A100-SXM4-40GB"
    assert refused("", facts) == "The driver does not name the profile of gpu0/gi1 on GPU0 of gpu-1; update the driver."


def test_a_plugin_that_does_not_find_instances():
    assert "AutoDetect=nvidia does not find" in refused("a100-mig", slurm_autodetect="nvidia")
    assert model("a40-pcie", slurm_autodetect="nvidia").devices


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=()), max_size=20)


@pytest.mark.parametrize(
    ("name", "variables", "accepted"),
    [
        ("gpu-1", {}, True),
        ("GPU-1", {}, True),
        ("gpu-2", {}, False),
        ("rack7", {}, False),
        ("rack7", {"slurm_node_name": "rack7"}, True),
        ("gpu-2", {"slurm_node_name": "rack7"}, False),
    ],
)
def test_a_node_has_the_name_of_the_inventory(name, variables, accepted):
    """One that says another would get the jobs of that node, or keep the others without Slurm, as two have one name then."""
    facts = changed("a100-nvlink", name=name)
    if accepted:
        assert model("", facts, **variables).name == name
    else:
        expected = variables.get("slurm_node_name", "gpu-1")
        assert f"gpu-1 calls itself '{name}', and Slurm would have to know it as '{expected}'" in refused(
            "", facts, **variables
        )


@given(name=TEXT, kind=TEXT, profile=TEXT, driver=TEXT)
def test_no_text_of_a_node_makes_another_line(name, kind, profile, driver):
    """Whatever a node says it is called, and its GPUs, instances and driver: it is refused, or it is one word of a line."""
    facts = copy.deepcopy(measured("a100-mig"))
    facts["gpu_slurm"]["name"] = name
    facts["gpu_node"]["gpus"][0]["name"] = kind
    facts["gpu_node"]["driver"]["loaded_version"] = driver
    for one in facts["gpu_node"]["gpus"][0]["mig"]["instances"]:
        one["name"] = f"x MIG {profile}"
    try:
        node = model("", facts)
    except ProblemError:
        return
    for file, content in lines.files([(node, "none")]).items():
        rows = content.splitlines()[1:]
        assert len(rows) == (2 if file == lines.GRES else 1)
        assert all(row.isascii() and row.isprintable() for row in rows)
        words = [word.partition("=")[0] for word in rows[0].split(" ")]
        assert words[0] == "NodeName" and len(words) == len(set(words)) == (5 if file == lines.GRES else 8)


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"name": ""}, (
            "gpu-1 is called '', which Slurm does not take for a node; give it another host name, or, with slurm_state: external, "
            "set slurm_node_name."
        )),
        ({"name": "n7"}, (
            "gpu-1 calls itself 'n7', and Slurm would have to know it as 'gpu-1'; give it that host name, or, with slurm_state: external, "
            "set slurm_node_name to the one that it has."
        )),
        ({"places": []}, "The kernel of gpu-1 does not show the topology of its processors; set slurm_state: absent for it."),
        ({"memory_kib": 0}, "The kernel of gpu-1 does not show how much memory there is; set slurm_state: absent for it."),
        ({"places": UNEVEN}, (
            "The sockets of gpu-1 do not have equally many cores and threads, which Slurm requires; switch all processors on, or set "
            "slurm_numa_node_as_socket to the other value."
        )),
        ({"places": [{**UNEVEN[0], "threads": 1}, {**UNEVEN[1], "cores": 4}]}, (
            "The sockets of gpu-1 do not have equally many cores and threads, which Slurm requires; switch all processors on, or set "
            "slurm_numa_node_as_socket to the other value."
        )),
        ({"places": [{**UNEVEN[0], "cores": 0}]}, (
            "The sockets of gpu-1 do not have equally many cores and threads, which Slurm requires; switch all processors on, or set "
            "slurm_numa_node_as_socket to the other value."
        )),
    ],
)  # fmt: skip
def test_each_reason_is_one_sentence(what, sentence):
    assert refused("a40-pcie", changed("a40-pcie", **what)) == sentence


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"minor_number": None}, "GPU0 of gpu-1 has no device file, since no driver has it; repair that, or set slurm_state: absent for the node."),
        ({"name": "NVIDIA,A40"}, (
            "A GPU of gpu-1 is called nvidia,a40, which Slurm cannot take for a type; name a part of it in slurm_gpu_types."
        )),
    ],
)  # fmt: skip
def test_each_reason_of_a_gpu_is_one_sentence(what, sentence):
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_node"]["gpus"][0].update(what)
    assert refused("", facts) == sentence


def test_instances_that_a_plugin_does_not_find_are_one_sentence():
    assert refused("a100-mig", slurm_autodetect="nvidia") == (
        "gpu-1 has MIG instances, which AutoDetect=nvidia does not find; set slurm_autodetect to none or nvml."
    )


@pytest.mark.parametrize(("name", "splits"), [("dgx-a100", True), ("a40-pcie", False), ("no-gpu", False)])
def test_gpus_near_a_part_of_a_socket(name, splits):
    assert model(name).splits is splits
    assert model(name, slurm_numa_node_as_socket=True).splits is False


def places(*cores, threads=2):
    """Packages with their cores, one NUMA node each."""
    first, found = 0, []
    for number, count in enumerate(cores):
        last = first + count * threads - 1
        found.append({"package": number, "node": number, "cores": count, "threads": threads, "cpus": f"{first}-{last}"})
        first = last + 1
    return found


@pytest.mark.parametrize(
    ("sockets", "numa_nodes", "cores"),
    [
        (places(4, 4), (0, 1, 1, None), ["0-3", "4-7", "4-7", "0-3"]),
        (places(1, 1, 1, 1), (0, 1, 2, 3), ["0", "1", "2", "3"]),
        (places(2, 2), (0, 1, 1, 0), ["0-1", "2-3", "2-3", "0-1"]),
        (places(8), (0, 0, 0, 0), ["", "", "", ""]),
        # One is near none of them, and Slurm wants cores for all or for none.
        (places(4, 4), (0, 1, 1, 7), ["", "", "", ""]),
    ],
)
def test_cores_of_the_socket_that_a_gpu_is_at(sockets, numa_nodes, cores):
    facts = copy.deepcopy(changed("a40-pcie", places=sockets))
    for gpu, numa in zip(facts["gpu_node"]["gpus"], numa_nodes, strict=True):
        gpu.update(numa_node=numa, cpu_affinity="0-1")
    assert [one.cores for one in model("", facts).devices] == cores


def test_instances_have_the_cores_of_their_gpu():
    facts = copy.deepcopy(changed("a100-mig", places=places(4, 4)))
    facts["gpu_node"]["gpus"][0].update(numa_node=1, cpu_affinity="0-1")
    assert [one.cores for one in model("", facts).devices] == ["4-7", "4-7"]


def test_an_instance_whose_gpu_has_no_fit_name():
    facts = copy.deepcopy(measured("a100-mig"))
    facts["gpu_node"]["gpus"][0]["name"] = "NVIDIA,A100-SXM4-40GB"
    assert refused("", facts).startswith("A GPU of gpu-1 is called nvidia,a100_3g.20gb, which Slurm cannot take")


def test_packages_without_numa_nodes():
    """A kernel without NUMA: processors alone say what a GPU is near."""
    facts = copy.deepcopy(changed("a40-pcie", places=[{**one, "node": None} for one in places(4, 4)]))
    for gpu, cpus in zip(facts["gpu_node"]["gpus"], ("0-3", "8-15", "8", "7"), strict=True):
        gpu.update(numa_node=0, cpu_affinity=cpus)
    assert [one.cores for one in model("", facts).devices] == ["0-3", "4-7", "4-7", "0-3"]


def test_one_package_of_several_numa_nodes_is_several_sockets_where_that_is_asked_for():
    sockets = [{**one, "package": 0} for one in places(4, 4)]
    facts = changed("a40-pcie", places=sockets)
    found = [model("", facts, slurm_numa_node_as_socket=asked) for asked in (False, True)]
    assert [(one.sockets, one.cores, one.threads, one.processors) for one in found] == [(1, 8, 2, 16), (2, 4, 2, 16)]


@pytest.mark.parametrize(
    ("driver", "gpus", "features"),
    [
        ("535.104.05", True, ("nvidia_a40", "nvlink", "driver_535")),
        (None, True, ("nvidia_a40", "nvlink")),
        ("r535", True, ("nvidia_a40", "nvlink")),
        ("535.104.05", False, ()),
    ],
)
def test_what_jobs_may_ask_for(driver, gpus, features):
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_node"]["driver"]["loaded_version"] = driver
    if not gpus:
        facts["gpu_node"]["gpus"] = []
    assert model("", facts).features == features


def test_links_that_are_down_join_nothing():
    facts = copy.deepcopy(measured("a40-pcie"))
    for gpu in facts["gpu_node"]["gpus"]:
        for link in gpu["nvlinks"]:
            link["active"] = False
    node = model("", facts)
    assert node.features == ("nvidia_a40", "pcie", "driver_535")
    assert [one.links for one in node.devices] == ["-1,0,0,0", "0,-1,0,0", "0,0,-1,0", "0,0,0,-1"]


def test_a_host_that_is_named_with_its_domain():
    """Slurm has the first label, as slurmd does."""
    assert model_of("gpu-1.example.org", {"ansible_facts": measured("no-gpu")}).name == "gpu-1"
