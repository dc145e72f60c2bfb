# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is asked for and measured, the role, verify and the report judge a subject alike: all of them, for every subject.

Requests follow from the role's argument spec, facts from the types of the subject's document.
"""

from __future__ import annotations

import functools
import importlib
import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils import subjects
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift as checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import record
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.comparisons import counts, items
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import BY_NAME, SUBJECTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.health.request import answer as health_answer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.request import request as nccl_request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.rdma.request import request as rdma_request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.scratch.request import request as scratch_request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.tuning.request import request as tuning_request
from hypothesis import given, settings
from hypothesis import strategies as st

ROLES = Path(__file__).resolve().parents[5] / "roles"
DOCUMENTS = "ansible_collections.allreduce.gpu.plugins.plugin_utils.documents"
# Values of texts and names of entries, and what documents have in fields that are read further.
WORDS = ("10.0.0.1", "10.0.0.2", "fd00::1")
FIELDS = {
    "code": st.just("read_only"),
    "kind": st.sampled_from(["gpu", "nic"]),
    "left": st.sampled_from([None, "container"]),
    "port_range": st.sampled_from([None, "32768\t60999"]),
    "reserved": st.sampled_from([None, "", "29400-29499"]),
    "reserved_before": st.sampled_from([None, "", "8080"]),
    # A machine has no more, and the document refuses them.
    "Place.cores": st.integers(0, 512),
    "Place.cpus": st.sampled_from(["", "0-31,64-95"]),
    "Place.threads": st.sampled_from([None, 1, 2]),
    # Of priorities and traffic classes there are eight.
    "Bridging.apps": st.sampled_from([None, {}, {"26": 3, "48": 6}]),
    "Bridging.default": st.sampled_from([None, 0, 7]),
    "Bridging.pfc": st.lists(st.integers(0, 7), max_size=8) | st.none(),
    "Ets.tsa": st.lists(st.sampled_from(["ets", "strict"]), min_size=8, max_size=8),
    "Ets.bandwidth": st.lists(st.integers(0, 100), min_size=8, max_size=8),
    "Ets.classes": st.lists(st.integers(0, 7), min_size=8, max_size=8),
    "Buffers.of": st.lists(st.integers(0, 7), min_size=8, max_size=8),
    "Buffers.sizes": st.lists(st.integers(0, 9), min_size=8, max_size=8),
}
EXAMPLES = settings().max_examples // 3  # each is four tests for seven subjects and more
each_subject = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
each_measured = pytest.mark.parametrize("subject", [one for one in SUBJECTS if one.facts], ids=lambda one: one.name)


@functools.cache
def options(role):
    text = (ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["argument_specs"]["main"]["options"]


def value(spec, default):
    """Values of a role's option: those that its spec allows, as far as it says, and the default."""
    if "choices" in spec:
        return st.sampled_from(spec["choices"])
    known = {"bool": st.booleans(), "int": st.integers(-1, 10000) | st.just(default)}
    return known.get(spec.get("type"), st.just(default))


def requests(subject):
    """The subject's variables."""
    specs = options(subject.name)
    return st.fixed_dictionaries({name: value(specs.get(name, {}), one) for name, one in subject.defaults.items()})


def document(name):
    """The type of a subject's fact."""
    found = vars(importlib.import_module(f"{DOCUMENTS}.{name}")).values()
    kinds = [one for one in found if isinstance(one, type) and one.__name__.endswith("Node")]
    assert kinds, f"plugin_utils/documents/{name}.py has no class whose name ends in Node, the type of fact gpu_{name}"
    return kinds[0]


@functools.cache
def of(kind):
    """Values of a type as JSON has them."""
    inner = get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {name: FIELDS.get(f"{kind.__name__}.{name}", FIELDS.get(name)) for name in hints}
        return st.fixed_dictionaries(
            {name: of(one) if known[name] is None else known[name] for name, one in hints.items()}
        )
    if get_origin(kind) in (dict, tuple):
        few = st.lists(of(inner[-1] if get_origin(kind) is dict else inner[0]), max_size=2)
        return few.map(lambda found: dict(zip(WORDS, found, strict=False))) if get_origin(kind) is dict else few
    if inner:
        return st.one_of(*(of(one) for one in inner))
    plain = {str: st.sampled_from(WORDS), int: st.integers(0, 70000), bool: st.booleans(), float: st.floats(0, 9)}
    return plain.get(kind, st.none())


@st.composite
def nodes(draw, subject, state=None, measured=None):
    """A node for a subject, with any request and any measurement: also none."""
    recorded = draw(st.sampled_from([[], [record_of(subject)]]))
    services = {unit: {"enabled": draw(st.booleans()), "active": draw(st.booleans())} for unit in subject.units}
    facts = {"gpu_node_state": {"records": recorded, "services": services}}
    if subject.facts and (draw(st.booleans()) if measured is None else measured):
        facts[f"gpu_{subject.name}"] = draw(of(document(subject.name)))
    variables = draw(requests(subject)) | ({subject.switch: state} if state else {})
    return Node("gpu-1", variables, facts, groups={group: ["gpu-1"] for group in subject.members})


def record_of(subject):
    """The name of the record of what was there before."""
    return subject.options.get("record", subject.name)


def agreed(subject, node):
    """Whether nothing differs, as verify and the report say alike."""
    found = subject.comparisons(node)
    passes = {check["status"] for check in checks.checks(found)} <= {"passed"}
    as_written = json.loads(json.dumps({"comparisons": [record(one) for one in found]}))
    rows = items(parse(NodeVerification, as_written).comparisons)
    assert passes is (counts(rows) == (0, 0))
    return passes


@pytest.mark.parametrize("room", sorted({path.parent.name for path in Path(subjects.__file__).parent.glob("*/*.py")}))
def test_every_room_is_in_the_tuple(room):
    assert room in BY_NAME, f"SUBJECT of {room} is not in SUBJECTS of plugin_utils/subjects/__init__.py"


@each_subject
def test_it_has_tests_of_its_own(subject):
    assert [*(Path(__file__).parent / subject.name).glob("test_*.py")], f"no test of its answers is in {subject.name}/"


@each_subject
def test_its_defaults_are_those_of_the_role(subject):
    specs, place = options(subject.name), f"roles/{subject.name}/meta/argument_specs.yml"
    told = {name: specs[name].get("default") for name in subject.defaults if name in specs}
    # The default of one is a variable of another role.
    ours = {name: one if "{{" in str(told.get(name)) else told.get(name) for name, one in subject.defaults.items()}
    assert dict(subject.defaults) == ours, f"the defaults of SUBJECT are not those of {place}"
    if subject.applied_by:
        named = subject.switch.removesuffix("state")
        forgotten = {name for name in specs if name.startswith(named)} - set(subject.variables)
        assert not forgotten, (
            f"options of {place} that are not among the defaults of SUBJECT, so that nobody reads them"
        )


@each_subject
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_verify_and_report_say_the_same(subject, data):
    agreed(subject, data.draw(nodes(subject)))


@each_measured
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_what_is_absent_is_as_planned_exactly_where_the_role_has_nothing_to_take_back(subject, data):
    node = data.draw(nodes(subject, "absent"))
    assert agreed(subject, node) is not node.has_record(record_of(subject)), (
        f"absent: compare tells the record {record_of(subject)!r} as unwanted where a node has it, and nothing else"
    )


@each_measured
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_what_the_role_refuses_or_takes_back_is_not_as_planned(subject, data):
    node = data.draw(nodes(subject, subject.on[0], measured=True))
    decision = subject.decide(node)
    if decision.problems or not decision.applies:
        idle = not decision.problems and not node.has_record(record_of(subject))
        assert agreed(subject, node) is idle, f"compare and decide do not judge alike: {decision}"


@each_measured
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_what_was_not_measured_is_not_as_planned(subject, data):
    node = data.draw(nodes(subject, subject.on[0], measured=False))
    if subject.decide(node).applies:
        assert not agreed(subject, node), f"compare passes a node without the fact gpu_{subject.name}"


@each_subject
def test_a_text_with_commas_is_the_list_that_ansible_reads_in_it(subject):
    """An argument spec takes one for a list, and a role that read its letters would act on each of them."""
    whole = {"cluster_ssh_authorized_keys", "slurm_extra_lines"}  # a key or a line may have commas itself
    kinds = options(subject.name).items()
    lists = [name for name, spec in kinds if spec.get("elements") == "str" and name in {*subject.defaults} - whole]
    for name in lists:
        one, other = (list(subject.problems({name: value})) for value in ("a b/,c d/", ["a b/", "c d/"]))
        assert one == other, name
        assert len(other) >= 2 or subject.name == "health", name  # whose answer has its problems


def test_a_valid_text_with_commas_is_such_a_list_too():
    read = [
        (scratch_request({"scratch_mount_options": "noatime"}).options, ("noatime",)),
        (scratch_request({"scratch_disks": "/dev/sdx, /dev/sdy"}).disks, ("/dev/sdx", "/dev/sdy")),
        (tuning_request({"tuning_irq_interfaces": "eth0"}).interfaces, ("eth0",)),
        (tuning_request({"tuning_limit_services": "slurmd.service,containerd"}).services, ("slurmd", "containerd")),
        (tuning_request({"tuning_kernel_arguments": "iommu=pt"}).arguments, ("iommu=pt",)),
        (rdma_request({"rdma_interfaces": "eth0,eth1"}).interfaces, ("eth0", "eth1")),
        (nccl_request({"nccl_conf_elsewhere": "NCCL_DEBUG"}).elsewhere, ("NCCL_DEBUG",)),
        (health_answer({"health_skip_checks": "throttling,xid"})["options"]["skip_checks"], ["throttling", "xid"]),
    ]
    for found, wanted in read:
        assert found == wanted
