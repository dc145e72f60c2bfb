# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything a user wrote, in one pass over the hosts."""

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.check import (
    all_problems,
    measured_problems,
    to_measure,
    training_problems,
    undefined_problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.variables import declared_options
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.world import UNRESOLVED, World
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.scope import COMMAND_LINE, PLAY, Scope
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe

from tools.supported import site_roles

TRAIN = {
    "train_nodes": {"type": "raw", "default": ""},
    "train_script": {"type": "path", "default": "train.py"},
    "train_files": {"type": "list", "elements": "path", "default": []},
    "train_nproc_per_node": {"type": "str", "default": "auto"},
    "train_port": {"type": "int", "default": 29500},
    "train_lease": {"type": "int", "default": 60},
    "train_launcher": {"type": "str", "default": "torchrun"},
    "train_min_nodes": {"type": "int", "default": 0},
    "train_max_restarts": {"type": "int"},
    "train_timeout": {"type": "int", "default": 0},
    "train_stall_timeout": {"type": "int", "default": 600},
}
ROLES = {
    "base": {"base_lock_timeout": {"type": "int", "default": 600}},
    "python_env": {
        "python_env_python": {"type": "str", "default": "auto"},
        "python_env_manager": {"type": "str", "choices": ["uv", "conda"], "default": "uv"},
        "python_env_packages": {"type": "list", "elements": "str", "default": []},
    },
    "gpu_settings": {"gpu_settings_declaration": {"type": "raw", "default": []}},
    "nvidia_driver": {"nvidia_driver_state": {"type": "str", "choices": ["present", "absent"]}},
    "stack": {
        "gpu_stack_request": {"type": "dict", "options": {"driver": {"type": "str"}}},
        "gpu_stack_host": {"type": "dict", "options": {"os": {"type": "str"}, "nvswitches": {"type": "int"}}},
        "plan_measure": {"type": "bool", "default": False},
    },
    "train": TRAIN,
}


def as_written(host, value):
    """A resolver for values without templates; what begins with a brace is one that is not known yet."""
    return UNRESOLVED if isinstance(value, str) and value.startswith("{{") else value


def world(hosts, **more):
    groups = {"all": list(hosts), "gpu_nodes": [name for name in hosts if name.startswith("gpu")]}
    return World(hosts=hosts, groups=groups, playing=["localhost", *hosts], **more)


def found(*arguments, **more):
    """[(code, subject)] and warnings alike."""
    problems, warnings = all_problems(world(*arguments, **more), ROLES, as_written)
    return [(one.code, one.subject) for one in problems], [(one.code, one.subject) for one in warnings]


def test_what_is_right_passes():
    hosts = {"gpu-1": {"base_lock_timeout": 5, "gpu_stack_host": {"os": "debian 12"}, "site_thing": 1}, "login": {}}
    assert found(hosts, play={"plan_measure": True, "hostvars": {}}) == ([], [])


@pytest.mark.parametrize(
    ("component", "problems"), [("pytorch", []), ("", []), ("{{ later }}", []), ("torch", [("wrong_word", "explain")])]
)
def test_a_component_to_explain_is_refused_before_nodes_are_measured(component, problems):
    assert found({"gpu-1": {}}, command_line={"explain": component}) == (problems, [])


@pytest.mark.parametrize(
    "value", ["auto", "distribution", "standalone", "/usr/bin/python3.10", "", None, "{{ later }}"]
)
def test_a_place_of_the_interpreter_passes(value):
    assert found({"gpu-1": {"python_env_python": value}}) == ([], [])


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [
        (
            "aws_ofi_nccl",
            "key_of_others",
            "for which the plan has no version (the AWS OFI plugin of NCCL is released",
        ),
        ("drivr", "misspelt_key", "is not a known key; did you mean driver?"),
        ("slurm", "unknown_key", "is not a known key; choose from driver."),
    ],
)
def test_a_key_that_the_request_does_not_have(key, code, words):
    (problem,), _warnings = all_problems(world({"gpu-1": {"gpu_stack_request": {key: "1"}}}), ROLES, as_written)
    assert problem.code == code and key in describe(problem) and words in describe(problem)


def test_a_wrong_place_of_the_interpreter_names_where_it_is_set():
    hosts = {"gpu-1": {"python_env_python": "conda"}, "gpu-2": {}}
    (problem,), _warnings = all_problems(world(hosts), ROLES, as_written)
    assert describe(problem).startswith(
        "python_env_python (set for host gpu-1) is conda; set python_env_manager to conda instead"
    )


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        ({"power_limit_watts": "lots"}, "power_limit_watts is 'lots'; give a number of watts, or default); "),
        ([{"ecc": True}, {"mig": True}], "There is no setting mig; choose from ecc, mig_mode,"),
        (
            {"application_clocks": {"memory": 1215}},
            "application_clocks is {'memory': 1215}; give {memory: MHz, graphics: MHz}",
        ),
        ("everything", "The declaration is 'everything'; give a list of dictionaries); "),
    ],
)
def test_gpu_settings_that_cannot_be_meant_are_refused_before_a_node_is_touched(declaration, words):
    (problem,), _warnings = all_problems(world({"gpu-1": {"gpu_settings_declaration": declaration}}), ROLES, as_written)
    assert describe(problem).startswith(f"gpu_settings_declaration (set for host gpu-1) cannot be applied ({words}")


@pytest.mark.parametrize(
    "declaration", [{}, [], None, "", "{{ later }}", {"ecc": True}, [{"gpus": [0], "power_limit_watts": "default"}]]
)
def test_gpu_settings_that_can_be_meant_pass(declaration):
    assert found({"gpu-1": {"gpu_settings_declaration": declaration}}) == ([], [])


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"base_lock_timeuot": 5}, ("misspelt_variable", "base_lock_timeuot")),
        ({"plan_mesure": True}, ("misspelt_variable", "plan_mesure")),
        ({"train_scrpit": "x"}, ("misspelt_variable", "train_scrpit")),
        ({"train_nodse": 2}, ("misspelt_variable", "train_nodse")),
        ({"nvidia_driver_colour": "x"}, ("unknown_variable", "nvidia_driver_colour")),
        ({"base_lock_timeout": "soon"}, ("wrong_type", "base_lock_timeout")),
        ({"nvidia_driver_state": "gone"}, ("wrong_choice", "nvidia_driver_state")),
        ({"python_env_python": "uv"}, ("interpreter_unknown", "python_env_python")),
        ({"python_env_python": "conda"}, ("interpreter_conda", "python_env_python")),
        ({"python_env_manager": "mamba"}, ("wrong_choice", "python_env_manager")),
        (
            {"python_env_manager": "conda", "python_env_python": "standalone"},
            ("manager_interpreter", "python_env_python"),
        ),
        ({"python_env_python": "./python3.10"}, ("interpreter_relative", "python_env_python")),
        ({"python_env_python": "/opt/python/"}, ("interpreter_relative", "python_env_python")),
        ({"python_env_packages": ["catboost", "torch==2.4.1"]}, ("package_chosen", "python_env_packages")),
        ({"python_env_packages": "catboost, ./wheels"}, ("package_no_requirement", "python_env_packages")),
        ({"python_env_packages": {"catboost": "1.2"}}, ("wrong_type", "python_env_packages")),
        ({"gpu_stack_host": {"so": "debian 12"}}, ("unknown_key", "gpu_stack_host.so")),
        ({"gpu_stack_host": {"nvswitches": "six"}}, ("wrong_type", "gpu_stack_host.nvswitches")),
    ],
)
@pytest.mark.parametrize("place", ["host", "command_line", "play"])
def test_a_problem_is_found_wherever_it_is_written(variables, problem, place):
    problems, _warnings = found({"gpu-1": variables}) if place == "host" else found({"gpu-1": {}}, **{place: variables})
    assert problems == [problem]


def test_an_ordinary_word_is_warned_about_in_the_inventory_and_refused_on_the_command_line():
    assert found({"gpu-1": {"train_station": "x"}}) == ([], [("unknown_variable", "train_station")])
    assert found({"gpu-1": {}}, command_line={"train_epochs": 10}) == ([("unknown_variable", "train_epochs")], [])


@pytest.mark.parametrize("value", [["nvidia_driver_skip_*"], "nvidia_driver_skip_reboot,x"])
def test_what_belongs_to_somebody_else_is_left_alone(value):
    hosts = {"gpu-1": {"nvidia_driver_skip_reboot": True}, "gpu-2": {"preflight_ignore": value}}
    assert found(hosts) == ([], [])


@pytest.mark.parametrize(
    ("value", "subjects"),
    [
        (True, ["preflight_ignore"]),
        (3, ["preflight_ignore"]),
        ({"lab_*": 1}, ["preflight_ignore"]),
        ([{"a": 1}], ["preflight_ignore[0]"]),
        ([None, 5], []),
        (None, []),
    ],
)
def test_what_is_no_list_of_names_leaves_nothing_alone(value, subjects):
    assert found({"gpu-1": {"preflight_ignore": value}}) == ([("wrong_type", one) for one in subjects], [])


def test_where_it_is_set_is_told():
    hosts = {"gpu-1": {"base_lock_timeout": "x"}, "gpu-2": {"base_lock_timeout": "x"}, "login": {}}
    scopes = [
        all_problems(world(*arguments), ROLES, as_written)[0][0].detail["scope"]
        for arguments in [(hosts,), ({"gpu-1": {"base_lock_timeout": "x"}, "gpu-2": {}},)]
    ]
    assert scopes == [Scope("group", ("gpu_nodes",)), Scope("hosts", ("gpu-1",))]
    for place, scope in (("command_line", COMMAND_LINE), ("play", PLAY)):
        (problem,), _warnings = all_problems(world({"gpu-1": {}}, **{place: {"plan_measure": "x"}}), ROLES, as_written)
        assert problem.detail["scope"] == scope


def test_the_command_line_wins_over_the_inventory():
    assert found({"gpu-1": {"base_lock_timeout": "x"}}, command_line={"base_lock_timeout": 5}) == ([], [])


def test_each_distinct_wrong_value_is_told():
    hosts = {f"gpu-{number}": {"base_lock_timeout": "soon" if number % 2 else "later"} for number in range(6)}
    assert found(hosts)[0] == [("wrong_type", "base_lock_timeout")] * 2


def test_what_is_not_known_yet_is_left_to_the_roles():
    assert found({"gpu-1": {"base_lock_timeout": "{{ x }}", "gpu_cluster_address": "{{ y }}"}}) == ([], [])


@pytest.mark.parametrize(
    ("hosts", "code"),
    [
        ({"login": {}}, "no_gpu_nodes"),
        ({"gpu-1": {"gpu_cluster_address": "gpu-1"}}, "invalid_address"),
        (
            {"gpu-1": {"gpu_cluster_address": "10.0.0.1"}, "gpu-2": {"gpu_cluster_address": "10.0.0.1"}},
            "shared_address",
        ),
    ],
)
def test_the_inventory_is_looked_at(hosts, code):
    assert [one for one, _subject in found(hosts)[0]] == [code]


@pytest.mark.parametrize(
    ("values", "forks", "codes"),
    [
        ({}, 5, []),
        ({"train_nodes": "2"}, 2, []),
        ({"train_nodes": "{{ later }}"}, 1, []),
        ({}, 1, ["too_few_forks"]),
        ({"train_nodes": 3}, 5, ["training_count"]),
        ({"train_script": "no.py"}, 5, ["missing_file"]),
        ({"train_port": "70000"}, 5, ["wrong_port"]),
        ({"train_nproc_per_node": 0}, 5, ["wrong_nproc"]),
        ({"train_launcher": "elastic", "train_min_nodes": "1"}, 5, []),
        ({"train_launcher": "elastic", "train_nodes": 1}, 5, ["elastic_alone"]),
        ({"train_launcher": "elastic", "train_min_nodes": 3}, 5, ["wrong_min_nodes"]),
        ({"train_launcher": "elastic", "train_max_restarts": 0}, 5, ["elastic_without_restarts"]),
        ({"train_min_nodes": 1}, 5, ["min_nodes_unused"]),
        ({"train_launcher": "srun"}, 5, ["unknown_launcher"]),
        ({"train_stall_timeout": -1}, 5, ["low_number"]),
        ({"train_max_restarts": "-1"}, 5, ["low_number"]),
        ({"train_timeout": "{{ later }}"}, 5, []),
    ],
)
@pytest.mark.parametrize("place", ["host", "command_line"])
def test_a_training_must_be_able_to_start(tmp_path, values, forks, codes, place):
    (tmp_path / "train.py").touch()
    one = values if place == "host" else {}
    there = world({"gpu-1": one, "gpu-2": one}, command_line={} if place == "host" else values)
    assert [p.code for p in training_problems(there, TRAIN, as_written, [str(tmp_path)], forks)] == codes


@pytest.mark.parametrize(
    ("name", "value", "codes"),
    [
        ("tuning_kernel_arguments", ["pci=noacs"], ["tuning_refused_argument"]),
        ("tuning_sysctl", {"kernel.sched_latency_ns": 1}, ["tuning_refused_sysctl"]),
        ("tuning_limits", {"memlock": "64G"}, ["tuning_no_limit"]),
        ("tuning_sysctl", {"vm.swappiness": 10}, []),
        ("nccl_conf_variables", {"NCCL_PORT_RANGE": "1-2"}, ["nccl_refused"]),
        ("nccl_conf_variables", {"NCCL_IB_TC": 106}, []),
        ("nccl_conf_elsewhere", ["nccl_debug"], ["nccl_no_variable"]),
        ("scratch_disks", ["/dev/nvme*"], ["scratch_no_path"]),
        ("scratch_mount_options", ["discard"], ["scratch_refused"]),
        ("scratch_mount_point", "/srv/scratch", []),
        ("tuning_sysctl", "{{ later }}", []),
        ("tuning_sysctl", ["of the wrong type"], []),
    ],
)
def test_what_tuning_refuses_by_name_is_told_before_a_node_is_contacted(name, value, codes):
    roles = {**ROLES, "tuning": {name: {"type": "raw"}}}
    problems, _warnings = all_problems(world({"gpu-1": {name: value}}), roles, as_written)
    assert [one.code for one in problems] == codes


@pytest.mark.parametrize(
    ("name", "value", "codes"),
    [
        ("rdma_stack", "doca", ["rdma_no_doca"]),
        ("rdma_roce", {"dscp": 26, "priority": 3, "pfc": [4]}, ["rdma_lossy"]),
        ("rdma_roce", {"dscp": 26, "priority": 3}, []),
        ("rdma_roce", "{{ later }}", []),
        ("rdma_roce", ["of the wrong type"], []),
    ],
)
def test_what_rdma_refuses_is_told_before_a_node_is_contacted(name, value, codes):
    roles = {**ROLES, "rdma": {name: {"type": "raw"}}}
    problems, _warnings = all_problems(world({"gpu-1": {name: value}}), roles, as_written)
    assert [one.code for one in problems] == codes


def test_equal_values_of_a_thousand_hosts_are_looked_at_once():
    request = {"os": "debian 12", "nvswitches": 6}
    names = {f"site_variable_{number}": number for number in range(50)}
    hosts = {
        f"gpu-{number}": {
            **names,
            "gpu_stack_host": dict(request),
            "gpu_cluster_address": f"10.0.{number // 250}.{number % 250}",
        }
        for number in range(1000)
    }
    resolved = []

    def count(host, value):
        resolved.append(host)
        return value

    assert all_problems(world(hosts), ROLES, count)[0] == []
    assert len(resolved) == 1001, "an address for each host, and one of the equal values"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"firewall_owner": "shorewall"}, [("wrong_choice", "firewall_owner")]),
        ({"firewall_addresses": ["10.0.0"]}, [("firewall_no_address", "firewall_addresses")]),
        ({"firewall_extra_sources": "head"}, [("firewall_no_address", "firewall_extra_sources")]),
        ({"firewall_port_range": "{{ later }}"}, []),
        ({"firewall_interfaces": ["eth0", "bond0.7"], "ansible_facts": {"interfaces": ["eth0", "bond0_7"]}}, []),
        ({"firewall_interfaces": ["ib7"], "ansible_facts": {"interfaces": ["eth0"]}}, [("firewall_lacks_interface", "ib7")]),
        ({"firewall_interfaces": ["ib7"]}, []),
    ],
)  # fmt: skip
def test_what_role_firewall_refuses(variables, expected):
    options = {
        "firewall_owner": {"type": "str", "choices": ["auto", "ufw"]},
        "firewall_port_range": {"type": "str"},
        **{name: {"type": "list"} for name in ("firewall_addresses", "firewall_extra_sources", "firewall_interfaces")},
    }
    problems, _warnings = all_problems(
        world({"gpu-1": {"gpu_cluster_address": "10.0.0.1", **variables}}), {**ROLES, "firewall": options}, as_written
    )


FAST = {"interfaces": ["eth0"], "default_ipv4": {"interface": "eth0"}, "eth0": {"speed": 100000}}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"qos_rate": "100gbit"}, [("qos_too_fast", "qos_rate")]),
        ({"qos_guarantee": "most of it"}, [("qos_no_share", "qos_guarantee")]),
        ({"qos_rate": "{{ later }}", "qos_state": "present", "ansible_facts": FAST}, []),
        ({"qos_state": "present", "ansible_facts": FAST}, [("qos_too_fast", "eth0 of gpu-1")]),
        ({"qos_state": "absent", "ansible_facts": FAST}, []),
        ({"qos_state": "present", "qos_rate": "20gbit", "ansible_facts": FAST}, []),
        ({"qos_state": "present", "qos_interfaces": ["ib7"], "ansible_facts": FAST}, [("qos_lacks_interface", "ib7")]),
    ],
)  # fmt: skip
def test_what_role_qos_refuses(variables, expected):
    options = {name: {"type": "str"} for name in ("qos_state", "qos_rate", "qos_guarantee")}
    options["qos_interfaces"] = {"type": "list"}
    hosts = {"gpu-1": {"gpu_cluster_address": "10.0.0.1", **variables}, "gpu-2": {"gpu_cluster_address": "10.0.0.2"}}
    problems, _warnings = all_problems(world(hosts), {**ROLES, "qos": options}, as_written)
    assert [(one.code, one.subject) for one in problems] == expected
    assert all(describe(one).endswith(".") for one in problems)


CHECKOUT = Path(__file__).resolve().parents[5]
SITE = [*site_roles(CHECKOUT), "stack"]
SPECS = declared_options(
    {
        role: yaml.safe_load((CHECKOUT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
        for role in SITE
    }
)
OPTIONS = [(name, option) for role in SITE for name, option in SPECS[role].items()]
# Of each type a value that is none.
WRONG = {
    "bool": "perhaps",
    "int": "many",
    "float": "much",
    "dict": ["a"],
    "list": {"a": 1},
    "str": ["a"],
    "path": ["a"],
}


@pytest.mark.parametrize("role", SITE)
def test_every_role_of_site_has_arguments_to_judge(role):
    assert SPECS[role]


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=[name for name, _option in OPTIONS])
def test_the_arguments_of_every_role_of_site_are_judged_before_a_node_is_contacted(name, option):
    """Its roles do not validate them again."""
    kind = option.get("type", "str")
    if kind != "raw":
        problems, _warnings = all_problems(world({"gpu-1": {name: WRONG[kind]}}), SPECS, as_written)
        assert ("wrong_type", name) in {(one.code, one.subject) for one in problems}
    if option.get("choices"):
        problems, _warnings = all_problems(world({"gpu-1": {name: "no such choice"}}), SPECS, as_written)
        assert ("wrong_choice", name) in {(one.code, one.subject) for one in problems}


def test_no_argument_of_a_role_of_site_is_required():
    """Preflight judges what is set."""
    assert [name for name, option in OPTIONS if option.get("required")] == []


MEASURED = {"gpu-1": {"{{ a }}": "present", "{{ b }}": 7}, "gpu-2": {"{{ a }}": "gone", "{{ b }}": "soon"}}


def measured(hosts, **more):
    """[(code, subject, scope)] of templates that facts have resolved; {{ later }} is still not known."""

    def resolve(host, value):
        return as_written(host, MEASURED[host].get(value, value) if isinstance(value, str) else value)

    there = world(hosts, **more)
    problems = measured_problems(there, ROLES, resolve, lambda value: str(value).startswith("{{"))
    return [(one.code, one.subject, one.detail["scope"]) for one in problems]


@pytest.mark.parametrize(
    ("request_", "more", "sentences"),
    [
        ({"driver": "580"}, {}, []),
        ({"driver": "{{ no_such }}"}, {}, ["gpu_stack_request (set for group gpu_nodes) uses no_such, which nothing defines for gpu-1, gpu-2; "]),
        ({"driver": "{{ no_such }}"}, {"command_line": {"no_such": "580"}}, []),
        ({"driver": "{{ no_such }}"}, {"play": {"no_such": "580"}}, []),
        ({"driver": "{{ mine }}"}, {}, ["gpu_stack_request (set for group gpu_nodes) uses mine, which nothing defines for gpu-2; "]),
        ({"driver": "{{ train_port }}"}, {}, []),
        ({"driver": "{{ ansible_facts.driver }}"}, {}, []),
        ({"driver": "{{ no_such | default('580') }}"}, {}, []),
    ],
)  # fmt: skip
def test_a_template_of_the_request_uses_what_is_defined(request_, more, sentences):
    def resolve(_host, value):
        return UNRESOLVED if str(value).startswith("{{") and "default" not in value else value

    group = {"gpu_stack_request": request_}
    there = world({"gpu-1": {**group, "mine": 1}, "gpu-2": group, "login": {}}, **more)
    found = [describe(one) for one in undefined_problems(there, ROLES, resolve)]
    assert [text.partition("define it")[0] for text in found] == sentences


def test_a_template_on_the_command_line_is_judged_for_every_node():
    hosts = {"gpu-1": {"mine": 1}, "gpu-2": {}}
    there = world(hosts, command_line={"gpu_stack_request": {"driver": "{{ mine }}"}})
    (problem,) = undefined_problems(there, ROLES, as_written)
    assert (problem.detail["scope"], problem.detail["nodes"]) == (COMMAND_LINE, ["gpu-2"])


GPU_2 = Scope("hosts", ("gpu-2",))


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"nvidia_driver_state": "{{ a }}"}, [("wrong_choice", "nvidia_driver_state", GPU_2)]),
        ({"base_lock_timeout": "{{ b }}"}, [("wrong_type", "base_lock_timeout", GPU_2)]),
        ({"nvidia_driver_state": "{{ later }}"}, []),
        ({"nvidia_driver_state": "gone"}, []),  # was refused before
        ({"site_thing": "{{ a }}"}, []),
    ],
)
@pytest.mark.parametrize("place", ["hosts", "play", "command_line"])
def test_a_template_is_judged_for_each_node_when_facts_are_known(variables, expected, place):
    one = variables if place == "hosts" else {}
    more = {} if place == "hosts" else {place: variables}
    scoped = [(*rest, COMMAND_LINE if place == "command_line" else scope) for *rest, scope in expected]
    assert measured({"gpu-1": one, "gpu-2": one, "login": one}, **more) == scoped


def test_a_node_outside_the_play_is_not_judged():
    hosts = {name: {"nvidia_driver_state": "{{ a }}"} for name in MEASURED}
    groups = {"all": list(hosts), "gpu_nodes": list(hosts)}
    limited = World(hosts=hosts, groups=groups, playing=["gpu-1"])
    assert measured_problems(limited, ROLES, lambda host, value: MEASURED[host][value], lambda value: True) == []


DESCRIBED = {"gpu_stack_host": {"os": "debian 12"}}


@pytest.mark.parametrize(
    ("variables", "everyone", "measured"),
    [
        (DESCRIBED, False, False),
        (DESCRIBED, "false", False),
        (DESCRIBED, True, True),
        (DESCRIBED, "true", True),
        ({}, False, True),
        ({"gpu_stack_host": {}}, False, True),
        ({**DESCRIBED, "plan_measure": True}, False, True),
        ({**DESCRIBED, "plan_measure": "no"}, False, False),
        ({"gpu_stack_host": "{{ hosts[inventory_hostname] }}"}, False, True),
        ({"gpu_stack_host": {"os": "{{ system }}"}}, False, False),
    ],
)
def test_described_nodes_are_measured_only_when_asked_for(variables, everyone, measured):
    hosts = {"gpu-1": variables, "login": {}}
    assert to_measure(world(hosts), as_written, everyone) == (["gpu-1"] if measured else [])
