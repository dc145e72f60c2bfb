# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS and accounts: what is refused before anything is touched, and what slurm.conf says for them."""

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.modules import slurm_accounting
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import installed, limits
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.answer import SUBJECT
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.request import misfits, problems

from tests.support.slurm import GROUPS, cluster_node
from tests.support.slurm import cluster_hosts as hosts

ROOT = Path(__file__).resolve().parents[6]
LONG = {"name": "long", "priority": 10, "max_minutes": 2880, "gpus_per_user": 2}
ADA = {"name": "physics", "users": ["ada"]}

WRONG = [
    ("slurm_qos", [{"name": "Long"}], "slurm_qos has the name 'Long'; write one of lower-case letters"),
    ("slurm_qos", [{"name": "a,b"}], "slurm_qos has the name 'a,b'; write one"),
    ("slurm_qos", [{"name": "-1"}], "slurm_qos has the name '-1'; write one"),
    ("slurm_qos", [{"name": "a\nb"}], "slurm_qos has the name 'a\\nb'; write one"),
    ("slurm_accounts", [{"name": "$(id)"}], "slurm_accounts has the name '$(id)'; write one"),
    ("slurm_accounts", [{"name": "root"}], "slurm_accounts has the name 'root'; write one"),
    ("slurm_qos", [LONG, LONG], "slurm_qos has long twice; leave one."),
    (
        "slurm_qos",
        [{"name": "long", "gpus": -1}],
        "slurm_qos has gpus: -1 for long; write a whole number from 0 to 1000000.",
    ),
    ("slurm_qos", [{"name": "long", "max_minutes": 0}], "slurm_qos has max_minutes: 0 for long; write a whole number"),
    ("slurm_accounts", [{"name": "a", "shares": 0}], "slurm_accounts has shares: 0 for a; write a whole number from 1"),
    ("slurm_qos", [{**LONG, "preempts": ["short"]}], "slurm_qos lets long preempt short, which is not another name"),
    ("slurm_qos", [{**LONG, "preempts": ["long"]}], "slurm_qos lets long preempt long, which is not another name"),
    (
        "slurm_accounts",
        [{"name": "a", "parent": "b"}],
        "slurm_accounts puts a below b, which it does not have; declare that account, too.",
    ),
    ("slurm_accounts", [{"name": "a", "parent": "a"}], "slurm_accounts puts a below itself;"),
    ("slurm_accounts", [{**ADA, "users": ["ada", "ada"]}], "slurm_accounts has the user ada twice in physics;"),
    ("slurm_accounts", [{**ADA, "users": ["Ada"]}], "slurm_accounts has the user 'Ada' in physics; write a login name"),
    ("slurm_accounts", [{**ADA, "users": ["root"]}], "slurm_accounts has the user 'root' in physics; write a login"),
    ("slurm_accounts", [{**ADA, "users": ["a b"]}], "slurm_accounts has the user 'a b' in physics; write a login name"),
    (
        "slurm_accounts",
        [{**ADA, "default_qos": "long"}],
        "slurm_accounts has default_qos: long for physics, which is not in its qos; add it there.",
    ),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_mistake_is_one_sentence_before_anything_is_touched(name, value, sentence):
    found = [describe(one) for one in problems({name: value})]
    assert len(found) == 1 and found[0].startswith(sentence), found
    refused = installed.answer(cluster_node(hosts(**{name: value})), {})
    assert [describe(one) for one in refused["problems"]] == found


def test_accounts_in_a_circle_are_each_named():
    circle = [{"name": "a", "parent": "c"}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "b"}]
    below = [{"name": "d", "parent": "a"}]
    found = [one.subject for one in problems({"slurm_accounts": [*circle, *below]}) if one.code == "slurm_circle"]
    assert found == ["a", "b", "c"]


@pytest.mark.parametrize("value", ["long", [LONG, "short"], [{"name": "long", "gpus": "many"}], 3])
def test_what_has_another_shape_is_left_to_the_argument_spec(value):
    """Preflight has a sentence for each, and takes these for none."""
    with pytest.raises((AttributeError, TypeError, ValueError)):
        list(problems({"slurm_qos": value}))


def test_a_qos_that_nobody_declares_is_refused_as_a_misfit():
    """Preflight looks at one variable at a time, so this needs both."""
    accounts = [{**ADA, "qos": ["normal", "long", "short"]}]
    assert list(problems({"slurm_accounts": accounts})) == []
    given = {"slurm_state": "present", "slurm_qos": [LONG], "slurm_accounts": accounts}
    (found,) = misfits(GROUPS, given)
    assert (
        describe(found)
        == "slurm_accounts gives physics the QoS short, which slurm_qos does not have; declare it there."
    )


def test_a_cluster_of_somebody_else_is_not_told_of_accounts():
    given = {"slurm_state": "external", "slurm_qos": [LONG], "slurm_accounts": [ADA]}
    found = [describe(one).partition(";")[0] for one in misfits(GROUPS, given)]
    assert found == [f"{name} is for slurm_state: present" for name in ("slurm_qos", "slurm_accounts")]


ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos"}
WEIGHT = {"PriorityWeightQOS": "10000"}


@pytest.mark.parametrize(
    ("qos", "accounts", "expected"),
    [
        ([], [], {}),
        ([], [{**ADA, "shares": 3}], {}),
        ([], [{**ADA, "gpus": 0}], ENFORCED),
        ([], [{**ADA, "gpus_per_job": 4}], ENFORCED),
        ([], [{**ADA, "qos": ["normal"]}], ENFORCED),
        ([{"name": "long"}], [], ENFORCED),
        ([LONG], [], {**ENFORCED, **WEIGHT}),
        (
            [LONG, {"name": "short", "preempts": ["long"]}],
            [],
            {**ENFORCED, **WEIGHT, "PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"},
        ),
    ],
)
def test_slurm_conf_enforces_limits_where_any_are_declared(qos, accounts, expected):
    assert limits.keys(qos, accounts) == expected
    known = hosts(slurm_qos=qos, slurm_accounts=accounts)
    found = installed.answer(cluster_node(known), installed.shared(cluster_node(known)))
    (conf,) = [one["content"] for one in found["files"] if one["path"] == "/etc/slurm/slurm.conf"]
    assert expected.items() <= dict(re.findall("(?m)^([A-Za-z]+)=(.*)$", conf)).items()
    assert ("AccountingStorageEnforce" in conf) is bool(expected)
    assert ("# QoS or limits are declared: users without an account cannot submit jobs" in conf) is bool(expected)
    assert found["accounting"] == {"cluster": "cluster", "qos": qos, "accounts": accounts}


def test_enforcement_restarts_slurmctld_and_a_further_limit_does_not():
    units = []
    for qos in ([], [LONG], [LONG, {"name": "short"}]):
        known = hosts(slurm_qos=qos)
        first = installed.answer(cluster_node(known), installed.shared(cluster_node(known)))["first"]
        units.append([one["content"] for one in first if one["path"] == installed.DROP_IN % "slurmctld"])
    assert units[0] != units[1] == units[2]


def test_a_line_of_the_user_s_counts():
    known = hosts(slurm_qos=[LONG], slurm_extra_lines=["AccountingStorageEnforce=all", "PriorityWeightQOS=5"])
    found = installed.answer(cluster_node(known), installed.shared(cluster_node(known)))
    (conf,) = [one["content"] for one in found["files"] if one["path"] == "/etc/slurm/slurm.conf"]
    assert re.findall("(?m)^(?:AccountingStorageEnforce|PriorityWeightQOS)=(.*)$", conf) == ["all", "5"]


def test_role_and_module_take_the_same_keys():
    spec = yaml.safe_load((ROOT / "roles/slurm/meta/argument_specs.yml").read_text("utf-8"))["argument_specs"]["main"]
    for variable, option in (("slurm_qos", "qos"), ("slurm_accounts", "accounts")):
        keys = spec["options"][variable]["options"]
        said = {key: {name: value for name, value in one.items() if name != "description"} for key, one in keys.items()}
        assert said == slurm_accounting.SPEC[option]["options"]
        assert variable in SUBJECT.defaults
