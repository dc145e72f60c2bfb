# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role slurm writes on a controller, what it refuses, and what verify compares on a node."""

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.slurm import checks as slurm_checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import installed, lines, versions
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.answer import SUBJECT, concerned
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.request import problems
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node

from tests.support.slurm import cluster_hosts, cluster_node, measured
from tests.support.subjects import compare_node, decide_node

GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2"], "controllers": ["ctl"]}
CONTROLLER = {
    "name": "ctl",
    "version": "24.11.5",
    "configured": True,
    "included": {
        "/etc/slurm/allreduce_gres.conf": ["/etc/slurm/gres.conf:1"],
        "/etc/slurm/allreduce_nodes.conf": ["/etc/slurm/slurm.conf:9"],
    },
    "lines": {lines.GRES: None, lines.NODES: None},
}
EXTERNAL = {"slurm_state": "external"}
WATCHED = {"health_state": "present"}


def changed(machine, **what):
    """Facts of a machine with other values in gpu_slurm."""
    facts = measured(machine)
    return {**facts, "gpu_slurm": {**facts["gpu_slurm"], **what}}


def cluster(**variables):
    """Two equal nodes and a controller."""
    found = {"ctl": {**EXTERNAL, **variables}}
    for name in GROUPS["gpu_nodes"]:
        facts = copy.deepcopy(measured("a40-pcie"))
        facts["gpu_slurm"]["name"] = name
        found[name] = {**EXTERNAL, **variables, "ansible_facts": facts}
    return found


def decide(hostvars, groups=None, **controller):
    return decide_node(SUBJECT, "ctl", hostvars, groups or GROUPS, {"gpu_slurm": {**CONTROLLER, **controller}})


def test_the_files_of_a_controller():
    found = decide(cluster())
    gres, nodes = found["plan"]["files"]
    assert [one["path"] for one in (gres, nodes)] == [
        "/etc/slurm/allreduce_gres.conf",
        "/etc/slurm/allreduce_nodes.conf",
    ]
    assert gres["content"].count("NodeName=gpu-[1-2] AutoDetect=off ") == 4
    assert nodes["content"].count("\n") == 2
    assert (found["problems"], found["notes"], found["applies"]) == ([], [], True)


def test_a_node_gets_no_files():
    hostvars = cluster()
    found = decide_node(SUBJECT, "gpu-1", hostvars, GROUPS, hostvars["gpu-1"]["ansible_facts"])
    assert (found["plan"], found["problems"], found["applies"]) == (None, [], False)


def test_each_node_has_variables_of_its_own():
    hostvars = cluster()
    hostvars["gpu-2"].update(slurm_features=["scratch"], slurm_autodetect="nvml")
    gres, nodes = decide(hostvars)["plan"]["files"]
    assert "NodeName=gpu-2 AutoDetect=nvml\n" in gres["content"]
    assert "NodeName=gpu-1 AutoDetect=off Name=gpu" in gres["content"]
    assert [line.endswith(",scratch") for line in nodes["content"].splitlines()[1:]] == [False, True]


def test_a_node_that_is_left_to_somebody_is_not_named():
    hostvars = cluster()
    hostvars["gpu-2"] = {"slurm_state": "absent"}
    assert "NodeName=gpu-1 " in decide(hostvars)["plan"]["files"][1]["content"]


def without(hostvars, name, *facts):
    for fact in facts:
        del hostvars[name]["ansible_facts"][fact]
    return hostvars


def left_out(hostvars, name):
    return {host: variables for host, variables in hostvars.items() if host != name}


@pytest.mark.parametrize(
    "hostvars",
    [
        without(cluster(), "gpu-2", "gpu_slurm"),
        without(cluster(), "gpu-2", "gpu_node"),
        left_out(cluster(), "gpu-2"),
    ],
    ids=["not measured", "GPUs not measured", "says what cannot be"],
)
def test_a_node_that_is_not_known_stops_the_role(hostvars):
    found = decide(hostvars)
    assert found["plan"] is None
    assert len(found["problems"]) == 1 and found["problems"][0].startswith("gpu-2: not measured in this run")


def test_a_cluster_without_nodes():
    """What the files named before would be gone."""
    hostvars = {**cluster(), "gpu-1": {"slurm_state": "absent"}, "gpu-2": {}}
    assert decide(hostvars)["problems"] == [
        "No host of group gpu_nodes has slurm_state: external, so the files of ctl would name none; set it for the nodes, too."
    ]


def test_what_is_wrong_with_any_node_stops_the_role():
    hostvars = cluster()
    hostvars["gpu-1"]["ansible_facts"]["gpu_slurm"]["places"] = []
    hostvars["gpu-2"]["slurm_memory_margin"] = 51
    found = decide(hostvars)
    assert found["plan"] is None
    assert [sentence[:40] for sentence in found["problems"]] == [
        "The kernel of gpu-1 does not show the to", "slurm_memory_margin is 51; set it to at ",
    ]  # fmt: skip


def test_nodes_of_one_name():
    hostvars = cluster()
    hostvars["gpu-2"]["ansible_facts"]["gpu_slurm"]["name"] = "gpu-1"
    hostvars["gpu-2"]["slurm_node_name"] = "gpu-1"
    assert decide(hostvars)["problems"] == [
        "gpu-1, gpu-2 are all called gpu-1 by Slurm; give them other host names, or, with slurm_state: external, set slurm_node_name for them."
    ]


@pytest.mark.parametrize(
    ("controller", "variables", "sentence"),
    [
        ({"version": None}, {}, "It is not known which Slurm ctl runs, since scontrol is not there; set slurm_version"),
        ({"configured": False}, {}, "ctl has no /etc/slurm/slurm.conf; set slurm_directory"),
        ({}, {"slurm_directory": "etc/slurm"}, "slurm_directory is 'etc/slurm'; write it like /etc/slurm."),
    ],
)
def test_a_controller_that_is_none(controller, variables, sentence):
    found = decide(cluster(**variables), **controller)
    assert found["plan"] is None and found["problems"][0].startswith(sentence)


def test_a_version_may_be_declared():
    assert decide(cluster(slurm_version="24.11"), version=None)["problems"] == []


# One row for each ability: what asks for it.
ASKED = {
    "explicit_gpus": ("a40-pcie", {}),
    "numa_node_as_socket": ("dgx-a100", {"slurm_numa_node_as_socket": True}),
    "detected_instances": ("a100-mig", {"slurm_autodetect": "nvml"}),
    "detection_without_nvml": ("a40-pcie", {"slurm_autodetect": "nvidia"}),
}


def before(since):
    year, month = since.split(".")
    return f"{year}.{int(month) - 1:02}.9"


@pytest.mark.parametrize("ability", ASKED)
def test_what_a_version_cannot_do_is_refused(ability):
    """The release before the one that brought it refuses, that one does not, and nobody refuses what was not asked for."""
    machine, variables = ASKED[ability]
    row = versions.load()[ability]
    hostvars = left_out(cluster(**variables), "gpu-2")
    hostvars["gpu-1"]["ansible_facts"] = measured(machine)
    groups = {**GROUPS, "gpu_nodes": ["gpu-1"]}
    assert decide(hostvars, groups, version=f"{row.since}.0")["problems"] == []
    old = before(row.since)
    expected = (
        f"Slurm {old} does not have {row.meaning}, which came with {row.since}; update Slurm, or do not ask for it."
    )
    assert expected in decide(hostvars, groups, version=old)["problems"]
    if ability != "explicit_gpus":
        plain = {name: {**one, **dict.fromkeys(variables)} for name, one in hostvars.items()}
        assert decide(plain, groups, version=old)["problems"] == []


def test_every_ability_is_asked_for():
    assert {*ASKED, "no_cgroups", "sent_includes", "whole_sockets"} == set(versions.load())


@pytest.mark.parametrize(
    ("machine", "version", "variables", "is_refused"),
    [
        ("dgx-a100", "24.11.0", {"slurm_autodetect": "nvml"}, True),
        ("dgx-a100", "24.05.8", {"slurm_autodetect": "nvml"}, False),
        ("dgx-a100", "24.11.0", {"slurm_autodetect": "nvml", "slurm_numa_node_as_socket": True}, False),
        ("dgx-a100", "24.11.0", {}, False),
        ("a40-pcie", "24.11.0", {"slurm_autodetect": "nvml"}, False),
    ],
)
def test_gpus_that_are_near_a_part_of_a_socket(machine, version, variables, is_refused):
    """Slurm detects the cores of a NUMA node, and since 24.11 refuses them; the role writes those of the socket."""
    hostvars = left_out(cluster(**variables), "gpu-2")
    hostvars["gpu-1"]["ansible_facts"] = measured(machine)
    found = decide(hostvars, {**GROUPS, "gpu_nodes": ["gpu-1"]}, version=version)["problems"]
    assert [one.startswith("The GPUs of gpu-1 are near a part of a socket") for one in found] == [True] * is_refused


@pytest.mark.parametrize(("version", "told"), [("21.08.8", True), ("22.05.0", False)])
def test_included_files_are_not_sent_by_every_version(version, told):
    found = " ".join(decide(cluster(), version=version)["notes"])
    assert (f"Slurm {version} does not send included files" in found) is told


def test_what_does_not_include_the_files_yet_is_told():
    found = decide(cluster(), included={f"/etc/slurm/{lines.NODES}": ["/etc/slurm/slurm.conf:9"]})
    assert found["notes"] == [
        "ctl does not use allreduce_gres.conf yet: add the line 'Include allreduce_gres.conf' to /etc/slurm/gres.conf."
    ]
    assert found["plan"] is not None


@pytest.mark.parametrize(
    ("health", "named", "is_told"),
    [({}, {}, False), (WATCHED, {}, True), (WATCHED, {"Prolog": "/etc/slurm/slurm.conf:3"}, False)],
)
def test_where_health_programs_are_not_named_yet_is_told(health, named, is_told):
    hostvars = cluster()
    hostvars["gpu-2"].update(health)
    assert (
        decide(hostvars, named=named)["notes"]
        == [
            "Slurm of ctl does not start the programs of the role for the health of gpu-2 yet: docs/slurm.md has the lines for "
            "/etc/slurm/slurm.conf."
        ]
        * is_told
    )


def test_files_in_use_do_not_go_with_another_directory():
    found = decide(cluster(slurm_directory="/opt/slurm"))
    assert (found["plan"], found["problems"]) == (None, [
        "slurmctld and slurmd of ctl do not start again without the files of the role that are to go: Include allreduce_gres.conf in "
        "/etc/slurm/gres.conf:1, Include allreduce_nodes.conf in /etc/slurm/slurm.conf:9; put node lines of your own in the place of these, as "
        "docs/slurm.md says, and run this again."
    ])  # fmt: skip


@pytest.mark.parametrize(("records", "included", "count"), [
    (["slurm"], CONTROLLER["included"], 1), (["slurm"], {}, 0), (["slurm_installed"], CONTROLLER["included"], 0),
])  # fmt: skip
def test_files_in_use_are_not_removed_but_with_a_cluster_of_ours(records, included, count):
    facts = {"gpu_slurm": {"included": included}, "gpu_node_state": {"records": records}}
    found = installed.removed(Node("ctl", {"slurm_state": "absent"}, facts, groups=GROUPS))
    assert [one.code for one in found["problems"]] == ["slurm_in_use"] * count


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"slurm_version": "latest"}, "slurm_version is 'latest'; write it like 24.11."),
        ({"slurm_directory": "/etc/slurm/"}, "slurm_directory is '/etc/slurm/'; write it like /etc/slurm."),
        ({"slurm_cluster_name": "North"}, "slurm_cluster_name is 'North'; write it like cluster."),
        ({"slurm_partition": "ALL"}, "slurm_partition is 'ALL'; write it like gpu."),
        ({"slurm_memory_margin": 51}, "slurm_memory_margin is 51; set it to at most 50 percent."),
        ({"slurm_memory_margin": "many"}, "slurm_memory_margin is 'many'; write it like 5."),
        (
            {"slurm_extra_lines": "Include x"},
            ("slurm_extra_lines has 'Include x'; write each as Key=Value, without comments and continuations."),
        ),
        ({"slurm_node_name": "default"}, "slurm_node_name is 'default'; write it like gpu-1."),
        ({"slurm_memory_margin": -1}, "slurm_memory_margin is -1; write it like 5."),
        ({"slurm_memory_margin": 60}, "slurm_memory_margin is 60; set it to at most 50 percent."),
        ({"slurm_features": ["a b"]}, "slurm_features has 'a b'; a feature is one word"),
        ({"slurm_features": ["a&b"]}, "slurm_features has 'a&b'; a feature is one word"),
        (
            {"slurm_gpu_types": {"NVIDIA A40": "a100"}},
            "slurm_gpu_types has a100 for NVIDIA A40; write a part of nvidia_a40",
        ),
        (
            {"slurm_gpu_types": {"NVIDIA GeForce RTX 3090": "3090"}},
            "slurm_gpu_types has 3090 for NVIDIA GeForce RTX 3090;",
        ),
    ],
)
def test_values_that_cannot_be_meant(variables, sentence):
    assert [describe(one)[: len(sentence)] for one in problems(variables)] == [sentence]


@pytest.mark.parametrize(
    "variables",
    [
        {}, {"slurm_version": 24.11}, {"slurm_memory_margin": "5"}, {"slurm_memory_margin": 50}, {"slurm_features": "a,b"},
        {"slurm_gpu_types": {"NVIDIA A40": "a40"}}, {"slurm_gpu_types": None}, {"slurm_directory": "/opt/slurm/etc"},
    ],
)  # fmt: skip
def test_values_that_can_be_meant(variables):
    assert list(problems(variables)) == []


@pytest.mark.parametrize(("groups", "codes"), [(GROUPS, []), ({"gpu_nodes": ["gpu-1"]}, ["slurm_no_controller"])])
def test_a_cluster_without_a_controller(groups, codes):
    assert [one.code for one in SUBJECT.misfits(Node("gpu-1", EXTERNAL, groups=groups))] == codes
    assert list(SUBJECT.misfits(Node("gpu-1", {"slurm_state": "absent"}, groups=groups))) == []


def told(**files):
    """A cluster whose first node reads these lines."""
    hostvars = cluster()
    hostvars["gpu-1"]["ansible_facts"]["gpu_slurm"]["lines"] = files
    return compare_node(SUBJECT, "gpu-1", hostvars, GROUPS, hostvars["gpu-1"]["ansible_facts"])


def own_lines():
    """The lines about a node as its module reads them of the files that a controller gets."""
    contents = {one["path"].rpartition("/")[2]: one["content"] for one in decide(cluster())["plan"]["files"]}
    return {file: [line.partition(" ")[2] for line in text.splitlines()[1:]] for file, text in contents.items()}


def test_a_node_of_which_slurm_is_told_what_was_measured():
    found = told(**own_lines())
    assert [one.status for one in found] == [Status.AS_PLANNED] * 2
    assert [one.subject for one in found] == [lines.GRES, lines.NODES]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda gres: gres[:3], Status.DIFFERS),
        (lambda gres: [*gres, "Name=gpu File=/dev/nvidia9"], Status.DIFFERS),
        (lambda gres: [gres[0].replace("Cores=0-31", "Cores=0-63"), *gres[1:]], Status.DIFFERS),
        (lambda gres: [], Status.DIFFERS),
        (lambda gres: None, Status.MISSING),
        (lambda gres: gres[::-1], Status.AS_PLANNED),
    ],
    ids=["a GPU less", "a GPU more", "other cores", "not named", "no file", "another order"],
)
def test_what_slurm_is_told_and_is_not_so(change, status):
    known = own_lines()
    found = told(**{lines.GRES: change(known[lines.GRES]), lines.NODES: known[lines.NODES]})
    assert [one.status for one in found] == [status, Status.AS_PLANNED]
    assert (found[0].remedy is Remedy.RECONFIGURE) is (status is not Status.AS_PLANNED)


def test_a_node_that_cannot_be_described_differs():
    facts = copy.deepcopy(measured("a40-pcie"))
    facts["gpu_slurm"]["places"] = []
    found = compare_node(SUBJECT, "gpu-1", {"gpu-1": EXTERNAL}, GROUPS, facts)
    assert [(one.status, one.observed[:39]) for one in found] == [
        (Status.DIFFERS, "The kernel of gpu-1 does not show the t")
    ]


@pytest.mark.parametrize(
    ("variables", "facts", "statuses"),
    [
        (EXTERNAL, {}, [Status.UNKNOWN]),
        (EXTERNAL, {"gpu_slurm": measured("no-gpu")["gpu_slurm"]}, [Status.UNKNOWN]),
        ({**EXTERNAL, "slurm_memory_margin": 99}, measured("no-gpu"), [Status.UNKNOWN]),
        ({}, {}, []),
        ({"slurm_state": "absent"}, {"gpu_node_state": {"records": ["slurm"]}}, [Status.UNWANTED]),
    ],
)
def test_nodes_that_were_not_measured_or_are_not_slurms(variables, facts, statuses):
    found = SUBJECT.compare(Node("gpu-1", variables, facts, groups=GROUPS))
    assert [one.status for one in found] == statuses


@pytest.mark.parametrize(
    ("known", "hosts"),
    [
        ({"ctl": {}, "gpu-1": {}}, []),
        ({"ctl": EXTERNAL, "gpu-1": {}}, ["ctl"]),
        ({"ctl": {"slurm_state": "absent"}, "gpu-1": EXTERNAL}, ["gpu-1", "ctl"]),
        ({"other": EXTERNAL}, []),
    ],
)
def test_hosts_of_an_inventory_that_says_nothing_take_no_part(known, hosts):
    assert concerned(known, GROUPS) == hosts


def test_comparisons_of_lines_are_told_whole():
    known = own_lines()
    gres, node = told(**{lines.GRES: [], lines.NODES: None})
    assert gres == Comparison(
        "slurm",
        "allreduce_gres.conf",
        "; ".join(known[lines.GRES]),
        "no line",
        Status.DIFFERS,
        Remedy.RECONFIGURE,
        "gpus",
    )
    assert node == Comparison(
        "slurm", "allreduce_nodes.conf", "; ".join(known[lines.NODES]), "", Status.MISSING, Remedy.RECONFIGURE, "node"
    )


@pytest.mark.parametrize(
    ("node", "whole"),
    [
        (Node("gpu-1", EXTERNAL, groups=GROUPS), ("as measured", "", Status.UNKNOWN, Remedy.MEASURE)),
        (
            Node("gpu-1", {}, {"gpu_node_state": {"records": ["slurm"]}}, groups=GROUPS),
            ("as it was", "ours", Status.UNWANTED, Remedy.APPLY),
        ),
        (
            Node("gpu-1", EXTERNAL, changed("a40-pcie", memory_kib=None), groups=GROUPS),
            ("as measured", "The kernel of gpu-1 does not show how much memory there is; set slurm_state: absent for it", Status.DIFFERS, Remedy.DECLARE),
        ),
    ],
)  # fmt: skip
def test_nodes_without_lines_are_told_whole(node, whole):
    assert SUBJECT.compare(node) == [Comparison("slurm", "allreduce_gres.conf", *whole, "gpus")]


@pytest.mark.parametrize("record", ["slurm", "slurm_programs", "slurm_installed"])
def test_whatever_is_left_of_slurm_differs(record):
    node = Node("gpu-1", {"slurm_state": "absent"}, {"gpu_node_state": {"records": [record]}}, groups=GROUPS)
    assert [one.status for one in SUBJECT.compare(node)] == [Status.UNWANTED]
    other = Node("gpu-1", {"slurm_state": "absent"}, {"gpu_node_state": {"records": ["tuning"]}}, groups=GROUPS)
    assert SUBJECT.compare(other) == []


def test_a_controller_has_no_lines_of_its_own():
    facts = {"gpu_slurm": CONTROLLER, "gpu_node": {}}
    assert SUBJECT.compare(Node("ctl", EXTERNAL, facts, cluster(), GROUPS)) == []


def asked_of(state, wants_job=True, **answer):
    """What is compared on a node of a cluster of ours, or of somebody's, whose controller was asked; answer: what it says otherwise."""
    known = cluster_hosts(slurm_state=state, verify_slurm_job=wants_job)
    facts = known["gpu-1"]["ansible_facts"]
    facts["gpu_node_state"]["services"] = {"munge": {"enabled": True, "active": True}}
    facts["gpu_slurm"]["asked"] = {
        "controller": "10.0.0.1",
        "reachable": True,
        "accounting": True,
        "answers": True,
        "state": "idle",
        **answer,
    }
    return SUBJECT.compare(cluster_node(known, "gpu-1"))


def test_a_cluster_of_ours_is_asked_and_its_services_are_looked_at():
    found = [(one.subject, one.status) for one in asked_of("present")]
    assert found[2:] == [
        ("munge", Status.AS_PLANNED), ("slurmd", Status.UNKNOWN), ("slurmctld", Status.AS_PLANNED), ("slurmdbd", Status.AS_PLANNED),
        ("slurmctld", Status.AS_PLANNED), ("node", Status.AS_PLANNED), ("job", Status.UNKNOWN),
    ]  # fmt: skip
    assert asked_of("present")[-1].desired == "a job that sees 4 GPUs"


def test_of_a_cluster_of_others_only_what_its_controller_says_of_the_node_is_compared():
    found = asked_of("external")[2:]
    assert [(one.subject, one.kind) for one in found] == [
        ("slurmctld", "controller"), ("slurmctld", "trust"), ("node", "state"), ("job", "job"),
    ]  # fmt: skip
    (lost,) = asked_of("external", reachable=False, answers=False)[2:]
    assert (lost.kind, lost.status, lost.remedy) == ("controller", Status.DIFFERS, Remedy.OTHERS)
    kinds = {one.kind: one.remedy for one in asked_of("external", answers=False)[2:] if one.differs}
    assert kinds == {"trust": Remedy.OTHERS, "job": Remedy.MEASURE}
    refused = asked_of("external", job={"seen": 1, "reason": ""})[-1]
    assert (refused.status, refused.remedy) == (Status.DIFFERS, Remedy.RECONFIGURE)
    refused = asked_of("external", job={"seen": None, "reason": "Invalid account"})[-1]
    assert (refused.status, refused.remedy) == (Status.DIFFERS, Remedy.OTHERS)


@pytest.mark.parametrize(
    ("answer", "kinds", "check"),
    [
        ({"controller": "", "reachable": False, "answers": False}, [], ("slurm_controller", "nor the options of slurmd on this node name one")),
        ({"answers": None}, ["controller"], ("slurm_state", "this node has no sinfo, or no slurm.conf for it, to ask")),
        ({}, ["controller", "trust", "state"], None),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_a_cluster_of_others_is_left_out_and_said(answer, kinds, check):
    assert [one.kind for one in asked_of("external", False, **answer)[2:]] == kinds
    known = {"controller": "10.0.0.1", "reachable": True, "answers": True, **answer}
    found = list(slurm_checks(EXTERNAL, {"asked": known}))
    assert [(one["name"], one["status"]) for one in found] == ([(check[0], "skipped")] if check else [])
    assert all(check[1] in one["reason"] for one in found)
    # Who asked for a job hears of it, too.
    more = list(slurm_checks({**EXTERNAL, "verify_slurm_job": "yes"}, {"asked": known}))
    assert [one["name"] for one in more] == ([check[0], "slurm_job"] if check else [])
    assert all(check[1] in one["reason"] for one in more)
    assert list(slurm_checks({"slurm_state": "present"}, {"asked": known})) == list(slurm_checks(EXTERNAL, {})) == []


def test_no_job_is_missed_where_none_was_asked_for():
    for wanted in (None, False, "no"):
        assert "job" not in [one.kind for one in asked_of("present", wanted)]


def test_the_line_has_the_address_where_the_cluster_is_ours():
    (desired,) = [one.desired for one in asked_of("present") if one.subject == lines.NODES]
    assert desired.startswith("NodeAddr=10.0.0.2 Boards=1 ")
    (desired,) = [one.desired for one in asked_of("external") if one.subject == lines.NODES]
    assert desired.startswith("Boards=1 ")


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({}, {"directory": "/etc/slurm", "name": ""}),
        ({"slurm_directory": "/opt/slurm/etc", "slurm_node_name": "n7"}, {"directory": "/opt/slurm/etc", "name": "n7"}),
        ({"slurm_directory": None}, {"directory": "/etc/slurm", "name": ""}),
    ],
)
def test_what_has_to_be_known(variables, options):
    assert SUBJECT.asked(variables, "apply") == options
    assert SUBJECT.asked(variables, "verify") == {**options, "probe": True}


@pytest.mark.parametrize(
    ("variables", "facts", "sentence"),
    [
        (EXTERNAL, {"version": None}, (
            "It is not known which Slurm ctl runs, since scontrol is not there; set slurm_version to that of slurmctld, such as '24.11'."
        )),
        ({**EXTERNAL, "slurm_directory": "/opt/slurm"}, {"configured": False}, (
            "ctl has no /opt/slurm/slurm.conf; set slurm_directory to where that file is, or take the host out of group controllers."
        )),
    ],
)  # fmt: skip
def test_what_a_controller_lacks_is_one_sentence(variables, facts, sentence):
    assert decide(cluster(**variables), **facts)["problems"] == [sentence]


def test_nodes_that_are_not_known_are_named_together():
    hostvars = without(without(cluster(), "gpu-1", "gpu_slurm"), "gpu-2", "gpu_node")
    assert decide(hostvars)["problems"] == [
        "gpu-1, gpu-2: not measured in this run, and Slurm would lose what the files no longer name; run without --limit, make them "
        "reachable, or set slurm_state: absent for them."
    ]


def test_a_node_of_another_kind_of_cluster_is_not_named():
    hostvars = cluster()
    hostvars["gpu-2"]["slurm_state"] = "present"
    assert "NodeName=gpu-1 " in decide(hostvars)["plan"]["files"][1]["content"]


def test_every_version_tells_what_is_left_to_do():
    found = decide(cluster(slurm_directory="/opt/slurm"), included={}, version="21.08.8")
    assert found["notes"] == [
        "ctl does not use allreduce_gres.conf yet: add the line 'Include allreduce_gres.conf' to /opt/slurm/gres.conf.",
        "ctl does not use allreduce_nodes.conf yet: add the line 'Include allreduce_nodes.conf' to /opt/slurm/slurm.conf.",
        "Slurm 21.08.8 does not send included files to nodes that have no slurm.conf of their own; give them allreduce_gres.conf and "
        "allreduce_nodes.conf as you give them slurm.conf.",
    ]
    assert [(one["path"], one["mode"]) for one in found["plan"]["files"]] == [
        ("/opt/slurm/allreduce_gres.conf", "0644"), ("/opt/slurm/allreduce_nodes.conf", "0644"),
    ]  # fmt: skip


def test_gpus_near_a_part_of_a_socket_are_one_sentence():
    hostvars = left_out(cluster(slurm_autodetect="nvml"), "gpu-2")
    hostvars["gpu-1"]["ansible_facts"] = measured("dgx-a100")
    assert decide(hostvars, {**GROUPS, "gpu_nodes": ["gpu-1"]})["problems"] == [
        "The GPUs of gpu-1 are near a part of a socket, and Slurm 24.11 and newer refuses a node of which it detects that; set "
        "slurm_autodetect: none, or slurm_numa_node_as_socket: true and SlurmdParameters=numa_node_as_socket in slurm.conf."
    ]


@pytest.mark.parametrize(
    ("groups", "state", "sentences"),
    [
        ({}, "external", [
            "slurm_state is external, but the inventory has no hosts in the group controllers; list those there on which slurmctld runs.",
        ]),
        ({"controllers": ["a", "b"]}, "external", []),
        ({"controllers": ["a", "b"]}, "present", [
            "slurm_state: present is for one controller, and group controllers has a, b; leave one, or set slurm_state: external for a cluster "
            "that you run yourself.",
        ]),
        ({"controllers": ["a"], "gpu_nodes": ["a", "b"]}, "present", [
            "a is in groups controllers and gpu_nodes, which slurm_state: present does not support; take another host as controller, or set "
            "slurm_state: external.",
        ]),
        ({"controllers": ["a"], "gpu_nodes": ["a", "b"]}, "external", []),
        ({}, "absent", []),
    ],
)  # fmt: skip
def test_what_the_inventory_lacks_is_one_sentence(groups, state, sentences):
    found = SUBJECT.misfits(Node("gpu-1", {"slurm_state": state}, groups=groups))
    assert [describe(one) for one in found] == sentences


@pytest.mark.parametrize(
    ("version", "expected"),
    [("24.11", True), ("24.11.5", True), ("24.05.9", False), ("23.11", False), ("25.05", True)],
)
def test_versions_are_compared_by_their_numbers(version, expected):
    assert versions.load()["whole_sockets"].since == "24.11"
    assert versions.can(version, "whole_sockets") is expected


ROW = 'rows:\n  - {name: a, since: "24.11", meaning: é, source: s}\n'


def test_rows_of_abilities_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "TABLE", tmp_path / "abilities.yml")
    versions.TABLE.write_text(ROW, "utf-8")
    assert versions.load.__wrapped__() == {"a": versions.Ability("a", "24.11", "é", "s")}
    versions.TABLE.write_text(ROW + ROW.partition("\n")[2].replace("meaning: é, ", ""), "utf-8")
    with pytest.raises(DocumentError, match=r"^abilities\[1\]\.meaning"):
        versions.load.__wrapped__()


def test_a_node_whose_variables_cannot_be_meant_is_refused():
    hostvars = cluster(slurm_features=["a b"])
    found = decide_node(SUBJECT, "gpu-1", hostvars, GROUPS, hostvars["gpu-1"]["ansible_facts"])
    assert (found["plan"], found["applies"], len(found["problems"])) == (None, True, 1)


def test_whole_gpus_are_detected_by_every_version():
    hostvars = left_out(cluster(slurm_autodetect="nvml"), "gpu-2")
    meaning = versions.load()["detected_instances"].meaning
    found = decide(
        hostvars, {**GROUPS, "gpu_nodes": ["gpu-1"]}, version=before(versions.load()["detected_instances"].since)
    )
    assert not [one for one in found["problems"] if meaning in one]


def test_facts_of_a_controller_of_the_wrong_shape():
    with pytest.raises(DocumentError, match=r"^gpu_slurm\.version"):
        decide(cluster(), version=24)
