# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes of several kinds are tuned to, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.gpu_node import Gpu, GpuNode, Nic, Port
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.tuning import (
    Arguments,
    Limits,
    Line,
    Logind,
    Subnet,
    Switch,
    Tuned,
    TunedNode,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.decide import (
    FILE,
    Left,
    Setting,
    decide,
    overriding,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.tables import load
from hypothesis import given
from hypothesis import strategies as st

KERNEL = {
    "vm.swappiness": "60", "vm.zone_reclaim_mode": "0", "vm.min_free_kbytes": "22528", "kernel.numa_balancing": "1",
    "net.core.rmem_max": "212992", "net.core.wmem_max": "212992",
    "net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304",
    **{f"net.ipv4.conf.{where}.{key}": "0" for where in ("all", "default") for key in ("arp_ignore", "arp_announce", "rp_filter")},
    **{f"net.ipv4.neigh.default.gc_thresh{n}": value for n, value in ((1, "128"), (2, "512"), (3, "1024"))},
}  # fmt: skip
SERVER = TunedNode(
    sysctl={key: Switch(value, value) for key, value in KERNEL.items()},
    switches={"governor": Switch("schedutil", "schedutil"), "idle_latency": Switch("0", "0")},
    logind=Logind("no"),
    arguments=Arguments("update-grub", ("ro",), ("ro",)),
    numa_nodes=2,
    memory_kib=1024 * 1024 * 1024,
    huge_page_kib=2048,
)
TCP = {
    "vm.swappiness": "10", "vm.min_free_kbytes": "65536", "net.core.rmem_max": "134217728", "net.core.wmem_max": "134217728",
    "net.ipv4.tcp_rmem": "4096 131072 134217728", "net.ipv4.tcp_wmem": "4096 16384 134217728",
}  # fmt: skip
MEMORY = {"vm.swappiness": "10", "vm.min_free_kbytes": "65536"}
RDMA = GpuNode(nics=(Nic("mlx5_0", 0, (Port("ACTIVE", "InfiniBand", 400.0),)),))
RAILS = {
    f"net.ipv4.conf.{where}.{key}": value
    for where in ("all", "default")
    for key, value in (("arp_ignore", "1"), ("arp_announce", "2"), ("rp_filter", "2"))
}
MANY = {f"net.ipv4.neigh.default.gc_thresh{n}": value for n, value in ((1, "4096"), (2, "8192"), (3, "16384"))}


def decided(node=SERVER, gpu_node=GpuNode(), **variables):  # noqa: B008 (a frozen value)
    return decide(request({"tuning_state": "present", **variables}), node, gpu_node, load())


def with_value(key, running, original=None):
    return replace(SERVER, sysctl={**SERVER.sysctl, key: Switch(running, original or running)})


@pytest.mark.parametrize(
    ("node", "gpu_node", "variables", "expected"),
    [
        (SERVER, GpuNode(), {}, TCP),
        (SERVER, RDMA, {}, MEMORY),
        (SERVER, RDMA, {"tuning_transport": "tcp"}, TCP),
        (SERVER, GpuNode(), {"tuning_transport": "rdma"}, MEMORY),
        (SERVER, GpuNode(nics=(Nic("mlx5_0", 0, (Port("DOWN"),)),)), {}, TCP),
        (replace(SERVER, shared_subnets=(Subnet("a", ("x", "y")),)), RDMA, {}, MEMORY | RAILS),
        (SERVER, RDMA, {"tuning_neighbours": 501}, MEMORY | MANY),
        (SERVER, RDMA, {"tuning_neighbours": 500}, MEMORY),
        (replace(SERVER, neighbours=900), RDMA, {}, MEMORY | MANY),
        (SERVER, RDMA, {"groups": {"gpu_nodes": range(600)}}, MEMORY | MANY),
        (SERVER, RDMA, {"tuning_ranks_bound": True}, MEMORY | {"kernel.numa_balancing": "0"}),
        (replace(SERVER, numa_nodes=1), RDMA, {"tuning_ranks_bound": True}, MEMORY),
        (SERVER, replace(RDMA, gpus=(Gpu(name="NVIDIA GH200 480GB"),)), {}, MEMORY | {"kernel.numa_balancing": "0"}),
        (SERVER, replace(RDMA, gpus=(Gpu(name="NVIDIA B200"),)), {}, MEMORY),
    ],
    ids=[
        "tcp", "rdma", "tcp_declared", "rdma_declared", "port_down", "rails", "many", "not_many", "arp", "group", "bound",
        "one_numa_node", "grace", "b200",
    ],
)  # fmt: skip
def test_the_table_where_its_conditions_hold(node, gpu_node, variables, expected):
    assert decided(node, gpu_node, **variables).of("sysctl") == expected


def test_every_line_has_a_reason_and_a_source():
    settings = decided(replace(SERVER, shared_subnets=(Subnet("a", ("x", "y")),)), tuning_ranks_bound=True).settings
    assert len(settings) > 12 and all(one.reason and one.source for one in settings)


def test_the_kernels_own_higher_value_is_never_lowered():
    assert "vm.min_free_kbytes" not in decided(with_value("vm.min_free_kbytes", "90112")).of("sysctl")
    assert "net.core.rmem_max" not in decided(with_value("net.core.rmem_max", "536870912")).of("sysctl")
    # Lowered by somebody since: the value before the first change counts.
    lowered = with_value("vm.min_free_kbytes", "1000", "90112")
    assert decided(lowered).of("sysctl")["vm.min_free_kbytes"] == "90112"


def test_what_is_set_stays_set_the_second_time():
    """The value that runs is then the wanted one; what was before the first change says that the line is needed."""
    assert decided(with_value("vm.swappiness", "10", "60")).of("sysctl")["vm.swappiness"] == "10"


def test_what_is_as_it_should_be_gets_nothing():
    decision = decided(with_value("vm.swappiness", "10"))
    assert "vm.swappiness" not in decision.of("sysctl")
    assert [one.why for one in decision.left if one.setting.subject == "vm.swappiness"] == ["as_is"]
    lines = (Line("/usr/lib/sysctl.d/10-x.conf", 1, "kernel.pid_max", "30"), Line(FILE, 1, "vm.swappiness", "20"))
    assert "vm.swappiness" not in decided(replace(with_value("vm.swappiness", "10"), sysctl_lines=lines)).of("sysctl")
    lines = (Line("/usr/lib/sysctl.d/10-x.conf", 1, "vm.swappiness", "30"),)
    assert "vm.swappiness" in decided(replace(with_value("vm.swappiness", "10"), sysctl_lines=lines)).of("sysctl")


def test_the_inventory_has_the_last_word():
    own = {"net.ipv4.tcp_rmem": "4096 87380 134217728", "vm.swappiness": None, "vm.max_map_count": 262144}
    node = replace(SERVER, sysctl={**SERVER.sysctl, "vm.max_map_count": Switch("65530", "65530")})
    decision = decided(node, tuning_sysctl=own)
    found = decision.of("sysctl")
    assert (found["net.ipv4.tcp_rmem"], found["vm.max_map_count"]) == ("4096 87380 134217728", "262144")
    assert "vm.swappiness" not in found
    assert {one.reason for one in decision.settings if one.subject == "vm.max_map_count"} == {
        "declared in the inventory"
    }


@pytest.mark.parametrize(
    ("variables", "switches"),
    [
        ({}, {"governor": "performance", "idle_latency": "99"}),
        ({"tuning_governor": ""}, {"idle_latency": "99"}),
        ({"tuning_idle_latency": 0}, {"governor": "performance"}),
        ({"tuning_transparent_hugepage": "always"}, {"governor": "performance", "idle_latency": "99"}),
    ],
)
def test_switches(variables, switches):
    """This machine's kernel is built without transparent huge pages."""
    assert decided(**variables).of("switch") == switches


def test_a_machine_without_a_scaling_driver_is_told_and_left_alone():
    decision = decided(replace(SERVER, switches={}))
    assert decision.of("switch") == {} and decision.problems == ()
    assert {one.setting.subject for one in decision.left if one.why == "absent"} == {"governor", "idle_latency"}


def test_a_container_keeps_what_belongs_to_its_host():
    node = replace(SERVER, container=True, arguments=Arguments())
    variables = {"tuning_kernel_arguments": ["iommu=pt"], "tuning_limits": {"memlock": "unlimited"}}
    decision = decided(node, tuning_keep_ipc=False, **variables)
    assert set(decision.of("sysctl")) == {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
    assert (decision.of("switch"), decision.of("argument"), decision.problems) == ({}, {}, ())
    assert decision.of("limit") == {"memlock": "unlimited"}
    assert {one.why for one in decision.left} == {"container"}


@pytest.mark.parametrize(
    ("gpu_node", "variables", "limits"),
    [
        (GpuNode(), {}, {}),
        (RDMA, {}, {"memlock": "unlimited"}),
        (RDMA, {"tuning_limits": {"memlock": 8388608}}, {"memlock": "8388608"}),
        (RDMA, {"tuning_limits": {"nofile": 65536}}, {"memlock": "unlimited", "nofile": "65536"}),
    ],
)
def test_limits(gpu_node, variables, limits):
    assert decided(SERVER, gpu_node, **variables).of("limit") == limits


@pytest.mark.parametrize(
    ("container", "variables", "nofile", "kept"),
    [
        (False, {}, "1048576", ["ceiling"]),
        (False, {"tuning_limits": {"nofile": 1048576}}, "1048576", []),
        (False, {"tuning_sysctl": {"fs.nr_open": 4194304}}, "2097152", []),
        # There it belongs to the container's host.
        (True, {"tuning_sysctl": {"fs.nr_open": 4194304}}, "1048576", ["ceiling"]),
    ],
    ids=["above", "at", "raised", "container"],
)
def test_nobody_gets_a_limit_that_cannot_be_set(container, variables, nofile, kept):
    node = replace(SERVER, container=container, limits=Limits({"memlock": "unlimited", "nofile": 1048576}))
    decision = decided(node, RDMA, **{"tuning_limits": {"nofile": 2097152}, **variables})
    assert decision.of("limit") == {"memlock": "unlimited", "nofile": nofile}
    assert [one.why for one in decision.left if one.setting.kind == "limit"] == kept


def test_unlimited_ends_at_the_ceiling():
    node = replace(SERVER, limits=Limits({"memlock": 8388608}))
    assert decided(node, RDMA).of("limit") == {"memlock": "8388608"}


@pytest.mark.parametrize(
    ("logind", "variables", "expected", "codes"),
    [
        (Logind("yes"), {}, {"RemoveIPC": "no"}, []),
        (Logind("yes"), {"tuning_keep_ipc": False}, {}, []),
        # The distribution's own default.
        (Logind("no"), {}, {}, []),
        # What made it so is ours, and stays.
        (Logind("no", True), {}, {"RemoveIPC": "no"}, []),
        (Logind(None), {}, {}, []),
        (Logind("yes", True, Line("/x", 3, "RemoveIPC", "yes")), {}, {"RemoveIPC": "no"}, ["tuning_logind_overridden"]),
        (Logind("no", True, Line("/x", 3, "RemoveIPC", "off")), {}, {"RemoveIPC": "no"}, []),
    ],
    ids=["removes", "left", "default", "ours", "absent", "overridden", "same"],
)
@pytest.mark.parametrize("container", [False, True])
def test_shared_memory_outlives_a_login(container, logind, variables, expected, codes):
    decision = decided(replace(SERVER, logind=logind, container=container), **variables)
    assert decision.of("logind") == expected
    assert [one.code for one in decision.problems] == codes
    assert all(one.reason and one.source for one in decision.settings if one.kind == "logind")


def lines(*given, tuned=False):
    found = tuple(Line(path, 3, "vm.swappiness", value) for path, value in given)
    return replace(SERVER, sysctl_lines=found, tuned=Tuned(in_charge=tuned))


@pytest.mark.parametrize(
    ("node", "file"),
    [
        (lines((FILE, "10")), None),
        (lines((FILE, "30")), None),  # of an earlier run
        (lines(("/usr/lib/sysctl.d/50-x.conf", "30"), (FILE, "10")), None),
        (lines((FILE, "10"), ("/etc/sysctl.d/99-site.conf", "30")), "/etc/sysctl.d/99-site.conf"),
        (lines(("/etc/sysctl.conf", "30")), "/etc/sysctl.conf"),
        (lines(("/etc/sysctl.d/91-a.conf", "30"), ("/etc/sysctl.d/99-z.conf", "10")), None),
        (lines(("/etc/sysctl.d/99-z.conf", "10")), None),
        # tuned sets what is in /etc again after its profile, whatever the name; what packages bring it does not.
        (lines(("/etc/sysctl.d/10-a.conf", "30"), tuned=True), "/etc/sysctl.d/10-a.conf"),
        (lines(("/usr/lib/sysctl.d/99-x.conf", "30"), tuned=True), None),
    ],
)
def test_what_another_file_overrides_is_refused_with_that_file(node, file):
    found = overriding("vm.swappiness", "10", node)
    assert (found.file if found else None) == file
    assert [one.code for one in decided(node).problems] == (["tuning_overridden"] if file else [])


def test_the_sentence_names_file_and_line():
    (found,) = decided(lines(("/etc/sysctl.d/99-site.conf", "30"))).problems
    assert describe(found) == (
        "vm.swappiness would not stay '10': line 3 of /etc/sysctl.d/99-site.conf sets it to '30' after us; remove that line, or "
        "leave the key alone with tuning_sysctl: {vm.swappiness: null}."
    )


@pytest.mark.parametrize(("pages", "codes"), [(52428, []), (52429, ["tuning_huge_pages"])])
def test_huge_pages_leave_nine_tenths_of_memory(pages, codes):
    node = replace(SERVER, sysctl={**SERVER.sysctl, "vm.nr_hugepages": Switch("0", "0")})
    assert [one.code for one in decided(node, tuning_sysctl={"vm.nr_hugepages": pages}).problems] == codes


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (Arguments("grubby", ("ro",), ("ro",)), []),
        (Arguments("grubby", ("ro",), ("ro", "iommu=pt")), []),
        (Arguments("grubby", ("ro",), ("ro", "iommu=on")), ["tuning_argument_conflict"]),
        (Arguments(None, ("ro",), None), ["tuning_no_boot_loader"]),
        (Arguments("update-grub", ("ro",), None), ["tuning_no_boot_loader"]),
        (Arguments("update-grub", ("ro",), ("ro",), "/etc/default/grub.d/99-x.cfg"), ["tuning_argument_overridden"]),
        (Arguments("grubby", ("ro",), ("ro",), "/etc/default/grub.d/99-x.cfg"), []),
    ],
)
def test_arguments_of_the_kernel(arguments, codes):
    decision = decided(replace(SERVER, arguments=arguments), tuning_kernel_arguments=["iommu=pt"])
    assert [one.code for one in decision.problems] == codes
    assert list(decision.of("argument")) == ["iommu=pt"]


KEYS = sorted(KERNEL)


@given(
    st.dictionaries(st.sampled_from(KEYS), st.integers(0, 10**6)),
    st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, 10**6), max_size=4),
    st.booleans(), st.booleans(), st.booleans(), st.integers(1, 1000),
)  # fmt: skip
def test_a_node_that_was_tuned_is_decided_as_before(values, own, rdma, rails, container, neighbours):
    """Setting what was decided changes no decision, whatever ran before."""
    node = replace(
        SERVER,
        sysctl={**SERVER.sysctl, **{key: Switch(str(value), str(value)) for key, value in values.items()}},
        shared_subnets=(Subnet("a", ("x", "y")),) if rails else (),
        container=container,
    )
    variables = {"tuning_sysctl": own, "tuning_neighbours": neighbours, "tuning_transport": "rdma" if rdma else "tcp"}
    first = decided(node, **variables)
    chosen = first.of("sysctl")
    tuned = {key: replace(one, running=chosen.get(key, one.running)) for key, one in node.sysctl.items()}
    written = tuple(Line(FILE, 1, key, value) for key, value in chosen.items())
    assert decided(replace(node, sysctl=tuned, sysctl_lines=written), **variables) == first
    assert set(chosen) <= set(node.sysctl)
    for key, value in own.items():
        assert value is not None or key not in chosen
        assert value is None or chosen.get(key, KERNEL[key]) == str(value) or container or values.get(key) == value


ROWS = {row.subject: (row.reason, row.source) for row in load().settings}
DECLARED = ("declared in the inventory", "")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("sysctl", "vm.swappiness", "10", *ROWS["vm.swappiness"])),
        ({"tuning_sysctl": {"vm.swappiness": 1}}, ("sysctl", "vm.swappiness", "1", *DECLARED)),
        ({"tuning_sysctl": {"vm.swappiness": 10}}, ("sysctl", "vm.swappiness", "10", *ROWS["vm.swappiness"])),
        ({}, ("switch", "governor", "performance", *ROWS["governor"])),
        ({"tuning_governor": "powersave"}, ("switch", "governor", "powersave", *DECLARED)),
        ({}, ("logind", "RemoveIPC", "no", *ROWS["RemoveIPC"])),
        ({}, ("limit", "memlock", "unlimited", *ROWS["memlock"])),
        ({"tuning_limits": {"memlock": 8388608}}, ("limit", "memlock", "8388608", *DECLARED)),
        ({"tuning_limits": {"memlock": "infinity"}}, ("limit", "memlock", "unlimited", *ROWS["memlock"])),
        ({"tuning_kernel_arguments": ["iommu=pt"]}, (
            "argument", "iommu=pt", "iommu=pt", "devices reach memory by the addresses they know, without a translation",
            "Linux, Documentation/admin-guide/kernel-parameters.txt; NVIDIA/skyhook-packages, h100 and gb200",
        )),
        # The request is refused; what is decided is complete all the same.
        ({"tuning_kernel_arguments": ["mitigations=off"]}, ("argument", "mitigations=off", "mitigations=off", *DECLARED)),
    ],
)  # fmt: skip
def test_a_setting_has_the_reason_and_the_source_of_whoever_wants_it(variables, expected):
    node = replace(SERVER, logind=Logind("yes"))
    assert Setting(*expected) in decided(node, RDMA, **variables).settings


@pytest.mark.parametrize(
    ("changed", "variables", "setting", "why"),
    [
        ({"switches": {}}, {}, ("switch", "governor", "performance", *ROWS["governor"]), "absent"),
        ({"sysctl": {}}, {}, ("sysctl", "vm.swappiness", "10", *ROWS["vm.swappiness"]), "absent"),
        ({"logind": Logind(None)}, {}, ("logind", "RemoveIPC", "no", *ROWS["RemoveIPC"]), "absent"),
        ({"logind": Logind("no")}, {}, ("logind", "RemoveIPC", "no", *ROWS["RemoveIPC"]), "as_is"),
        ({"container": True}, {}, ("switch", "governor", "performance", *ROWS["governor"]), "container"),
        ({"container": True}, {}, ("sysctl", "vm.swappiness", "10", *ROWS["vm.swappiness"]), "container"),
        ({"limits": Limits({"nproc": 2048})}, {"tuning_limits": {"nproc": "unlimited"}}, ("limit", "nproc", "2048", *DECLARED), "ceiling"),
    ],
)  # fmt: skip
def test_what_a_node_does_not_get_is_told_whole(changed, variables, setting, why):
    assert Left(Setting(*setting), why) in decided(replace(SERVER, **changed), RDMA, **variables).left


def test_what_the_user_declares_is_set_also_where_it_is_so_already():
    """Else another file could change it at the next boot, unseen."""
    node = with_value("vm.swappiness", "1")
    assert decided(node, tuning_sysctl={"vm.swappiness": 1}).of("sysctl")["vm.swappiness"] == "1"


LATER = Line("/etc/systemd/logind.conf.d/99-x.conf", 3, "RemoveIPC", "yes")
PAGES = {"sysctl": {"vm.nr_hugepages": Switch("0", "0")}}


@pytest.mark.parametrize(
    ("changed", "variables", "sentence"),
    [
        ({"logind": Logind("yes", True, LATER)}, {}, (
            "RemoveIPC would not stay 'no': line 3 of /etc/systemd/logind.conf.d/99-x.conf sets it to 'yes' after us; remove that line, or "
            "leave it alone with tuning_keep_ipc: false."
        )),
        (PAGES, {"tuning_sysctl": {"vm.nr_hugepages": 262144}}, (
            "vm.nr_hugepages '262144' permanently takes 50 % of memory; set it to at most 52428, a tenth of it."
        )),
        ({"arguments": Arguments(None, ("ro",), None)}, {"tuning_kernel_arguments": ["iommu=pt"]}, (
            "There is no known way to set iommu=pt: this node has neither grubby nor update-grub nor boot loader entries; take it out of "
            "tuning_kernel_arguments."
        )),
        ({"arguments": Arguments("update-grub", (), (), "/etc/default/grub.d/99-x.cfg")}, {"tuning_kernel_arguments": ["iommu=pt"]}, (
            "iommu=pt would not reach the kernel: /etc/default/grub.d/99-x.cfg overwrites GRUB_CMDLINE_LINUX after us; make its value begin "
            "with $GRUB_CMDLINE_LINUX, or rename it to sort before 90-allreduce.cfg."
        )),
        # Of an argument that has '=' in its value, all before the last one is its name; others are not in the way.
        ({"arguments": Arguments("grubby", (), ("pci=realloc=on", "pci=realloc=auto", "pci=noaer", "ro"))},
         {"tuning_kernel_arguments": ["pci=realloc=off"]},
         "tuning_kernel_arguments has pci=realloc=off, and pci=realloc=on, pci=realloc=auto is set elsewhere; take one of them out."),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(changed, variables, sentence):
    assert [describe(one) for one in decided(replace(SERVER, **changed), **variables).problems] == [sentence]


def test_every_argument_that_cannot_be_set_is_named():
    node = replace(SERVER, arguments=Arguments())
    found = decided(node, tuning_kernel_arguments=["iommu=pt", "init_on_alloc=0"]).problems
    assert [one.subject for one in found] == ["iommu=pt", "init_on_alloc=0"]


@pytest.mark.parametrize(
    ("memory", "page", "pages", "codes"),
    [
        (20480, 2048, 1, []),
        (20480, 2048, 2, ["tuning_huge_pages"]),
        # Not known, so nothing can be said.
        (None, 2048, 10**9, []),
        (20480, None, 10**9, []),
    ],
)
def test_huge_pages_take_a_tenth_at_most(memory, page, pages, codes):
    node = replace(SERVER, **PAGES, memory_kib=memory, huge_page_kib=page)
    assert [one.code for one in decided(node, tuning_sysctl={"vm.nr_hugepages": pages}).problems] == codes


@pytest.mark.parametrize(
    ("state", "transport"),
    [("ACTIVE", "rdma"), ("4: ACTIVE", "rdma"), ("active", "rdma"), ("DOWN", "tcp"), ("INIT", "tcp"), (None, "tcp")],
)
def test_an_active_port_makes_training_use_rdma(state, transport):
    gpu_node = GpuNode(nics=(Nic("mlx5_0", 0, (Port("DOWN"), Port(state))),))
    assert ("memlock" in decided(gpu_node=gpu_node).of("limit")) is (transport == "rdma")


@pytest.mark.parametrize(
    ("running", "floor", "expected"),
    [
        ("65535", None, "65536"),
        ("65536", None, None),
        ("65537", None, None),
        ("many", None, "65536"),
        ("1", "70000", "70000"),
    ],
)
def test_a_floor_raises_and_never_lowers(running, floor, expected):
    assert decided(with_value("vm.min_free_kbytes", running, floor)).of("sysctl").get("vm.min_free_kbytes") == expected
