# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm starts for the health of a node: where they are, what slurm.conf says of them, and when they go."""

import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.slurm import PROGRAMS, SCRIPTS, read_slurm
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.slurm import SlurmNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import health, installed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.answer import SUBJECT

from tests.support.slurm import cluster_hosts
from tests.support.slurm import cluster_node as node

WATCHED = {"health_state": "present"}


def hosts(state="present", watched=("gpu-1", "gpu-2"), **variables):
    found = cluster_hosts(slurm_state=state, **variables)
    for name in watched:
        found[name] = {**WATCHED, **found[name]}
    return found


def conf(known):
    answer = installed.answer(node(known, "ctl"), installed.shared(node(known, "ctl")))
    (text,) = [one["content"] for one in answer["files"] if one["path"] == "/etc/slurm/slurm.conf"]
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and " " not in line.split("=", 1)[0])


def programs(known, name="gpu-1"):
    cluster = installed.shared(node(known, "ctl")) if known["ctl"]["slurm_state"] == "present" else {}
    return installed.programs(node(known, name), cluster)


def paths(found):
    return [one["path"] for one in found["files"]]


def test_slurm_conf_names_them():
    assert health.KEYS.items() <= conf(hosts()).items()
    assert conf(hosts())["Prolog"] == f"{PROGRAMS}/prolog"


@pytest.mark.parametrize(
    "known", [hosts(watched=()), hosts(slurm_health=False), hosts(slurm_health="no")], ids=["unwatched", "off", "no"]
)
def test_where_nobody_asks_there_are_none(known):
    assert not health.KEYS.keys() & conf(known).keys()
    assert programs(known) == {"files": [], "goes": False, "problems": []}


def test_a_line_of_the_user_s_takes_the_place_of_ours():
    assert conf(hosts(slurm_extra_lines=["Prolog=/usr/local/sbin/prolog"]))["Prolog"] == "/usr/local/sbin/prolog"


def test_all_nodes_have_them_where_one_asks():
    """slurm.conf is one for all, and a prolog that is not there drains the node."""
    known = hosts(watched=("gpu-2",))
    assert health.KEYS.items() <= conf(known).items()
    assert {f"{PROGRAMS}/{script}" for script in SCRIPTS} <= set(paths(programs(known)))
    assert programs(known)["goes"] is False
    assert health.is_expected(node(known, "gpu-1"))


def test_the_node_s_name_is_slurm_s():
    known = hosts("external", slurm_node_name="n7")
    known["gpu-1"]["ansible_facts"]["gpu_slurm"]["name"] = "n7"
    (check,) = [one for one in programs(known)["files"] if one["path"] == f"{PROGRAMS}/check"]
    assert f"-B {PROGRAMS} check n7 " in check["content"] and check["mode"] == "0755"


def test_with_external_each_node_answers_for_itself():
    known = hosts("external", watched=("gpu-2",))
    assert paths(programs(known)) == [] and f"{PROGRAMS}/check" in paths(programs(known, "gpu-2"))


@pytest.mark.parametrize("known", [hosts(watched=()), hosts("external", watched=()), hosts("absent")])
def test_what_nobody_asks_for_any_more_goes(known):
    known["gpu-1"]["ansible_facts"]["gpu_node_state"]["records"] = [health.RECORD]
    assert programs(known) == {"files": [], "goes": True, "problems": []}
    assert programs(known, "gpu-2")["goes"] is False


def test_a_node_of_a_cluster_of_others_that_names_them_has_them():
    known = hosts("external", watched=())
    known["gpu-1"]["ansible_facts"]["gpu_slurm"]["named"] = {"Prolog": "/run/slurm/conf/slurm.conf:3"}
    assert f"{PROGRAMS}/prolog" in paths(programs(known)) and health.is_expected(node(known, "gpu-1"))
    assert paths(programs(known, "gpu-2")) == [] and not health.is_expected(node(known, "gpu-2"))


@pytest.mark.parametrize(
    ("slurmd", "is_refused"),
    [({}, True), ({"active": None}, True), ({"active": True}, True), ({"active": False}, False)],
)
def test_as_long_as_slurm_starts_them_they_do_not_go(slurmd, is_refused):
    known = hosts("absent")
    facts = known["gpu-1"]["ansible_facts"]
    facts["gpu_node_state"] = {"records": [health.RECORD], "services": {"slurmd": slurmd} if slurmd else {}}
    facts["gpu_slurm"]["named"] = {"Prolog": "/etc/slurm/a.conf:3", "Epilog": "/etc/slurm/a.conf:4"}
    found = programs(known)
    assert found["goes"] is True
    assert [describe(one) for one in found["problems"]] == [
        "Slurm drains gpu-1 without the programs of the role that are to go: Epilog in /etc/slurm/a.conf:4, Prolog in /etc/slurm/a.conf:3; "
        "remove these lines on the controllers and run 'scontrol reconfigure' there, or stop slurmd of that node."
    ] * is_refused


def test_a_node_that_is_refused_keeps_what_it_has():
    known = hosts(watched=())
    known["gpu-2"]["ansible_facts"]["gpu_slurm"]["confines"] = False
    known["gpu-1"]["ansible_facts"]["gpu_node_state"]["records"] = [health.RECORD]
    assert programs(known) == {"files": [], "goes": False, "problems": []}
    known = hosts("external", slurm_features=["a b"])
    known["gpu-1"]["ansible_facts"]["gpu_node_state"]["records"] = [health.RECORD]
    assert programs(known) == {"files": [], "goes": False, "problems": []}


@pytest.fixture
def place(tmp_path):
    """A node with the programs."""
    for one in health.files("gpu-1"):
        path = tmp_path / one["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(one["content"], "utf-8")
        path.chmod(int(one.get("mode", "0644"), 8))
    return tmp_path


def differing(place):
    found = parse(SlurmNode, read_slurm(FileTree(str(place)), "/etc/slurm", "gpu-1"), "gpu_slurm")
    return [one.kind for one in health.compare(found) if one.differs]


def test_what_was_installed_is_as_planned(place):
    assert differing(place) == []


@pytest.mark.parametrize("spoil", [
    lambda place: (place / PROGRAMS[1:] / "prolog").unlink(),
    lambda place: (place / PROGRAMS[1:] / "epilog").chmod(0o644),
    lambda place: (place / PROGRAMS[1:] / "check").write_text("#!/bin/sh\nexit 1\n", "utf-8"),
    lambda place: (place / PROGRAMS[1:] / "__main__.py").unlink(),
])  # fmt: skip
def test_what_is_missing_or_edited_differs(place, spoil):
    spoil(place)
    assert differing(place) == ["health"]


def test_verification_compares_them_on_nodes_that_have_them():
    known = hosts()
    told = [one.kind for one in SUBJECT.compare(node(known, "gpu-1")) if one.differs]
    assert told[:3] == ["gpus", "node", "health"]
    assert "health" not in [one.kind for one in SUBJECT.compare(node(hosts(watched=()), "gpu-1"))]


TEXTS = {one["path"].rpartition("/")[2]: one["content"] for one in health.files("n1") if one.get("mode") == "0755"}


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 1), (1, 0), (2, 0), (139, 0)])
@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_the_scripts_hand_on_no_other_failure(tmp_path, script, code, expected):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexit {code}\n", "utf-8")
    python.chmod(0o755)
    text = TEXTS[script].replace("/usr/bin/python3", str(python))
    done = subprocess.run(["sh", "-c", text], env={}, check=False)
    assert done.returncode == expected
    text = TEXTS[script].replace("/usr/bin/python3", "/nowhere/python").replace("/usr/libexec", "/nowhere")
    assert subprocess.run(["sh", "-c", text], env={}, check=False, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(("arguments", "expected"), [([], 0), (["health.json"], 1)])
def test_the_check_succeeds_for_slurm_and_tells_the_hook(tmp_path, arguments, expected):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$5" = n1 ] && exit 1\nexit 0\n', "utf-8")
    python.chmod(0o755)
    text = TEXTS["check"].replace("/usr/bin/python3", str(python))
    assert subprocess.run(["sh", "-c", text, "check", *arguments], env={}, check=False).returncode == expected


def test_the_scripts_are_told_whole():
    texts = {one["path"].rpartition("/")[2]: one["content"] for one in health.files("n1") if one.get("mode") == "0755"}
    assert texts["check"] == (
        "#!/bin/sh\n# Written by role allreduce.gpu.slurm.\nPATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}\n"
        "export PATH\npython=/usr/bin/python3\n[ -x $python ] || python=/usr/libexec/platform-python\n"
        f'timeout -k 2 55 $python -I -B {PROGRAMS} check n1 "$@" || [ $# -eq 0 ]\n'
    )
    assert set(texts) == {"check", "prolog", "epilog"}


def test_the_record_says_that_they_are_there():
    record = health.files("n1")[0]
    assert record == {"path": "/var/lib/allreduce/slurm_programs.json", "content": '{"format": 1}\n'}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"health_state": "present", "slurm_state": "present"}, True),
        ({"health_state": "present", "slurm_state": "external"}, True),
        ({"health_state": "present", "slurm_state": "absent"}, False),
        ({"health_state": "present"}, False),
        ({"health_state": "absent", "slurm_state": "present"}, False),
        ({"slurm_state": "present"}, False),
        ({"health_state": "present", "slurm_state": "present", "slurm_health": "no"}, False),
    ],
)
def test_who_asks_for_them(variables, expected):
    assert health.is_asked(variables) is expected


@pytest.mark.parametrize(
    ("state", "other", "expected"),
    [("present", "present", True), ("present", "external", False), ("external", "external", False)],
)
def test_a_node_has_them_for_others_of_its_own_cluster_only(state, other, expected):
    known = hosts(watched=("gpu-2",))
    known["gpu-1"]["slurm_state"], known["gpu-2"]["slurm_state"] = state, other
    assert health.is_expected(node(known, "gpu-1")) is expected


def compared(**measured):
    return health.compare(SlurmNode(name="gpu-1", **measured))


def test_their_comparison_is_told_whole(place):
    seen = parse(SlurmNode, read_slurm(FileTree(str(place)), "/etc/slurm", "gpu-1"), "gpu_slurm").programs
    expected = {"component": "slurm", "subject": PROGRAMS, "desired": seen[:12], "kind": "health"}
    assert compared(programs=seen) == [Comparison(**expected, observed=seen[:12], status=Status.AS_PLANNED)]
    assert compared() == [Comparison(**expected, observed="", status=Status.MISSING, remedy=Remedy.APPLY)]
    other = "0" * 64
    assert compared(programs=other) == [
        Comparison(**expected, observed="0" * 12, status=Status.DIFFERS, remedy=Remedy.APPLY)
    ]


def test_a_node_whose_name_is_no_name_has_none():
    assert health.compare(SlurmNode(name="a b")) == []
    known = hosts()
    known["gpu-1"]["ansible_facts"]["gpu_slurm"]["name"] = "a b"
    assert programs(known)["files"] == []
