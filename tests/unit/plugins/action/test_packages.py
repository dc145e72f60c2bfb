# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action on a node that is answered by the test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible_collections.allreduce.gpu.plugins.action import packages
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.names import CUDNN_PACKAGES
from ansible_collections.allreduce.gpu.tests.support.fake_node import FakeNode, act, template

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"
OLD, NEW = "9.8.0.87-1", "9.10.2.21-1"
STACK = {
    "os": {"id": "ubuntu", "version": "22.04", "family": "debian", "arch": "x86_64"},
    "gpus": [{"model": "A100", "count": 8}],
    "cudnn": {"version": "9.10.2", "packages": [{"name": "libcudnn9-cuda-12", "version": "9.10.*"}]},
}
DRIVER = {
    "version": "595.91.07", "branch": "595", "source": "nvidia", "package_manager": "apt", "dkms_module": "nvidia",
    "packages": [{"name": "nvidia-headless-open", "version": "595.91.07-*"}],
    "pinning_packages": [{"name": "nvidia-driver-pinning-595.91.07"}],
    "held": ["nvidia-*"], "conflicting": ["*-595"],
}  # fmt: skip
APT = {"manager": "apt"}
DNF = {"manager": "dnf"}


def node(manager="apt", **more):
    """A node with cuDNN of an older version, held, and a repository with both."""
    common = {
        "manager": manager,
        "packages": {"libcudnn9-cuda-12": OLD, "bash": "5.2"},
        "repository": {"libcudnn9-cuda-12": [OLD, NEW], "bash": ["5.2"]},
        "held": {"cudnn": {"libcudnn9-cuda-12": OLD}},
    }
    return FakeNode(**{**common, **more})


def run(one, check=False, stack=None, **arguments):
    return act(packages, one, {"gpu_stack": stack or STACK}, check, **({"name": "cudnn"} | arguments))


@pytest.mark.parametrize("arguments", [{}, {"state": "absent"}, {"name": "base", "state": "repaired"}])
@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_package_managers_speak_the_language_whose_words_are_known(manager, arguments):
    """ansible.builtin.command takes that of the node, by which no cause would be recognized."""
    one = node(manager, interrupted=True)
    run(one, **arguments)
    assert (one.environment["LC_ALL"], one.environment["LANGUAGE"]) == ("C.UTF-8", "C.UTF-8")


@pytest.mark.parametrize(("manager", "install"), [("apt", ["apt"]), ("dnf", ["command", "dnf"])])
def test_change(manager, install):
    one = node(manager)
    result = run(one)

    assert result["changed"]
    assert one.packages == {"libcudnn9-cuda-12": NEW, "bash": "5.2"}
    assert one.held == {"cudnn": {"libcudnn9-cuda-12": NEW}}
    assert one.modules() == ["package_hold released", *install, "node_state", "package_hold"]
    assert result["ansible_facts"]["gpu_node_state"]["packages"] == one.packages
    assert (result["installed"], result["removed"]) == ({"libcudnn9-cuda-12": NEW}, [])


@pytest.mark.parametrize("check", [False, True])
def test_the_diff_shows_the_packages_and_the_hold_once(check):
    one = node()
    result = run(one, check)

    planned = "9.10.*" if check else NEW
    (moved,) = [diff for diff in result["diff"] if diff["before_header"] == "packages of cudnn"]
    rest = [diff for diff in result["diff"] if diff is not moved]
    assert moved == {
        "before_header": "packages of cudnn", "after_header": "packages of cudnn",
        "before": f"libcudnn9-cuda-12 {OLD}\n", "after": f"libcudnn9-cuda-12 {planned}\n",
    }  # fmt: skip
    kept = [(diff["before"], diff["after"]) for diff in rest]
    assert kept == ([] if check else [(f"libcudnn9-cuda-12 {OLD}\n", f"libcudnn9-cuda-12 {NEW}\n")])


HELD = {
    "packages": list(CUDNN_PACKAGES),
    "excluded": [],
    "services": [],
    "module_stream": None,
    "kernel": False,
    "kept": True,
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("hold", "modules"),
    [
        (HELD, []),
        ({**HELD, "kept": False}, ["package_hold"]),
        ({**HELD, "packages": ["libcudnn8"]}, ["package_hold"]),
        ({**HELD, "excluded": ["a"]}, ["package_hold"]),
        ({**HELD, "services": ["a"]}, ["package_hold"]),
        ({**HELD, "module_stream": "a:b"}, ["package_hold"]),
        ({**HELD, "kernel": True}, ["package_hold"]),
    ],
)
def test_a_hold_that_was_measured_is_not_asked_for_again(check, hold, modules):
    one = node(packages={"libcudnn9-cuda-12": NEW}, holds={"cudnn": hold}, held={"cudnn": {"libcudnn9-cuda-12": NEW}})
    assert not run(one, check)["changed"]
    assert one.modules() == modules


def test_what_a_failure_left_is_held_whatever_was_measured():
    one = node(holds={"cudnn": HELD}, failure={"msg": "the disk is full"})
    assert run(one)["failed"]
    assert [name for name in one.modules() if "hold" in name] == ["package_hold released", "package_hold"]


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_change_in_check_mode(manager):
    one = node(manager)
    result = run(one, check=True)

    assert result["changed"]
    assert (result["installed"], result["removed"]) == ({"libcudnn9-cuda-12": "9.10.*"}, [])
    assert one.modules() == ["package_hold"]
    assert one.packages["libcudnn9-cuda-12"] == OLD
    assert "ansible_facts" not in result


@pytest.mark.parametrize("manager", ["apt", "dnf"])
@pytest.mark.parametrize("check", [False, True])
def test_no_change_is_one_execution(manager, check):
    one = node(manager, packages={"libcudnn9-cuda-12": NEW}, held={"cudnn": {"libcudnn9-cuda-12": NEW}})
    result = run(one, check)

    assert not result["changed"]
    assert result["diff"] == []
    assert one.modules() == ["package_hold"]
    assert "ansible_facts" not in result


def test_a_component_that_is_not_planned_is_skipped_without_a_connection():
    one = node()
    result = run(one, stack={**STACK, "cudnn": None})

    assert result["skipped"]
    assert one.calls == []


def test_what_drift_narrows_is_not_installed():
    one = node()
    result = act(packages, one, {"gpu_stack": STACK}, variables={"cudnn_archive": "file:///cudnn.tar.xz"}, name="cudnn")

    assert result["skipped"]
    assert one.calls == []


def test_a_node_that_nobody_measured_is_measured():
    one = node()
    result = act(packages, one, {"gpu_stack": STACK, "gpu_node_state": None}, name="cudnn")

    assert one.modules()[0] == "node_state"
    assert result["changed"]


def test_unwanted_packages_go_after_the_installation():
    one = node(packages={"libcudnn8": "8.9.7.29-1+cuda12.2"}, leftover={"libcudnn7": "7.6"}, held={})
    result = run(one)

    assert one.packages == {"libcudnn9-cuda-12": NEW}
    assert one.leftover == {}
    assert one.modules() == ["package_hold released", "apt", "node_state", "apt", "node_state", "package_hold"]
    assert result["removed"] == ["libcudnn8"]


def test_what_the_installation_took_away_is_not_removed_again():
    one = node("dnf", packages={"libcudnn8": "8.9.7.29-1"}, conflicts={"libcudnn9-cuda-12": ["libcudnn8"]}, held={})
    one.manager, one.leftover = "dnf", {}
    result = run(one)

    # The fake leaves configuration behind, which rpm does not.
    assert one.packages == {"libcudnn9-cuda-12": NEW}
    assert result["installed"] == {"libcudnn9-cuda-12": NEW}


def test_removing_a_package_takes_a_wanted_one_with_it():
    one = node(packages={"libcudnn8": "8.9.7.29-1"}, takes_away={"libcudnn8": ["libcudnn9-cuda-12"]}, held={})
    result = run(one)

    assert result["failed"]
    assert result["cause"] == "not_installed"
    assert result["msg"] == (
        "The cudnn packages could not be changed on gpu-1: libcudnn9-cuda-12 should be installed on gpu-1 now but is not: "
        "check whether another repository or program changes packages there, and run this again."
    )
    assert one.modules()[-2:] == ["package_hold", "node_state"]


FAILURES = {
    "disk_full": ({"failure": {"stderr": "dpkg: error: No space left on device"}}, "disk is full"),
    "package_not_found": ({"repository": {}}, "no repository of the host has libcudnn9-cuda-12"),
    "unknown": ({"failure": {"msg": "something new"}}, "something new"),
}


@pytest.mark.parametrize("cause", FAILURES)
@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_a_failure_is_explained_and_what_is_there_is_held(manager, cause):
    given, words = FAILURES[cause]
    one = node(manager, **given)
    result = run(one)

    assert result["failed"]
    assert result["cause"] == cause
    assert result["msg"].startswith("The cudnn packages could not be changed on gpu-1: ")
    assert words in result["msg"]
    assert one.held == {"cudnn": {"libcudnn9-cuda-12": OLD}}
    # Ansible takes no facts from a failure, and would print every package of the node.
    assert "ansible_facts" not in result
    assert 0 < len(result["output"].splitlines()) <= 30


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_who_holds_the_lock_is_named(manager):
    one = node(manager, holder={"pid": 7, "program": "apt-get dist-upgrade"})
    result = run(one)

    assert result["cause"] == "lock_held"
    assert "(process 7, apt-get dist-upgrade)" in result["msg"]
    assert "could not be held" in " ".join(result["warnings"])


@pytest.mark.parametrize(("seconds", "cause"), [(60, None), (0, "lock_held")])
def test_the_lock_of_rpm_is_waited_for_as_that_of_dnf(monkeypatch, seconds, cause):
    monkeypatch.setattr(packages, "LOCK_INTERVAL", 0.01)
    one = node("dnf", rpm_locked=3)
    result = run(one, lock_timeout=seconds)

    assert result.get("cause") == cause
    assert one.packages["libcudnn9-cuda-12"] == (OLD if cause else NEW)


def test_packages_in_two_versions_are_those_of_an_upgrade_that_goes_on():
    """dnf itself would wait for its lock without end."""
    one = node("dnf", interrupted=True)
    run(one, state="repaired", lock_timeout=7)
    (repair,) = [given["argv"] for name, given in one.calls if "remove" in given.get("argv", ())]
    assert repair[:3] == ["timeout", "7", "dnf"]


def test_a_hold_that_fails_is_told():
    one = node(packages={"libcudnn9-cuda-12": NEW}, holder={"pid": 7, "program": "dpkg"})
    result = run(one)

    assert result["failed"]
    assert result["msg"].startswith("The cudnn packages could not be held on gpu-1: ")


def test_a_module_that_cannot_be_built_shows_the_compilers_last_lines():
    log = "/var/lib/dkms/nvidia/595.91.07/build/make.log"
    text = "".join(f"line {number}\n" for number in range(40)) + "nv.c:12: error\n"
    one = node(failure={"stderr": f"Consult {log} for more information"}, files={log: text})
    result = run(one)

    assert result["cause"] == "dkms_build_failed"
    assert result["msg"].endswith("line 38\nline 39\nnv.c:12: error")
    assert "line 25\n" not in result["msg"]


@pytest.mark.parametrize(
    ("variables", "option", "seconds"),
    [({}, {}, 600), ({"gpu_package_lock_timeout": template("{{ 2 + 3 }}")}, {}, 5), ({"gpu_package_lock_timeout": 5}, {"lock_timeout": 7}, 7)],
)  # fmt: skip
def test_one_variable_says_how_long_to_wait(variables, option, seconds):
    one = node()
    act(packages, one, {"gpu_stack": STACK}, variables=variables, name="cudnn", **option)

    waits = {given["lock_timeout"] for name, given in one.calls if "lock_timeout" in given}
    assert waits == {seconds}


def driver_node(**more):
    packages_there = {"nvidia-headless-open": "580.65.06-0ubuntu1", "nvidia-driver-pinning-580": "580-1"}
    repository = {
        "nvidia-headless-open": ["580.65.06-0ubuntu1", "595.91.07-1ubuntu1"],
        "nvidia-driver-pinning-580": ["580-1"],
        "nvidia-driver-pinning-595.91.07": ["595-1"],
    }
    held = {"driver": {"nvidia-headless-open": "580.65.06-0ubuntu1", "nvidia-driver-pinning-580": "580-1"}}
    return FakeNode(**{"packages": packages_there, "repository": repository, "held": held, **more})


def test_the_driver_is_unpinned_pinned_and_installed_in_this_order():
    one = driver_node()
    result = act(packages, one, {"gpu_stack": {**STACK, "driver": DRIVER}}, name="driver")

    assert result["changed"], result
    steps = [
        given.get("name") or given["files"][0]["path"]
        for name, given in one.calls
        if name.endswith(("apt", "config_files"))
    ]
    assert steps == [
        ["nvidia-driver-pinning-580"],
        ["nvidia-driver-pinning-595.91.07"],
        "/etc/apt/preferences.d/allreduce-driver",
        ["nvidia-headless-open=595.91.07-*"],
    ]
    assert "Pin: version 595.91.07-*\n" in one.files["/etc/apt/preferences.d/allreduce-driver"]
    assert one.packages == {
        "nvidia-headless-open": "595.91.07-1ubuntu1", "nvidia-driver-pinning-595.91.07": "595-1",
    }  # fmt: skip
    (hold,) = [given for name, given in one.calls if name.endswith("hold") and given.get("state") != "released"]
    assert (hold["services"], hold["kernel"]) == (["nvidia-*"], False)
    assert "*fabricmanager*" in hold["excluded"]


@pytest.mark.parametrize("precompiled", [False, True])
def test_the_kernel_is_held_with_precompiled_modules(precompiled):
    modules = {"packages": [{"name": "nvidia-modules", "version": "1"}], "replaces": ["nvidia-headless-open"]}
    stack = {**STACK, "driver": {**DRIVER, "precompiled": modules}}
    one = driver_node()
    variables = {"nvidia_driver_precompiled": precompiled}
    act(packages, one, {"gpu_stack": stack}, check=True, variables=variables, name="driver")

    assert one.calls[-1][1]["kernel"] is precompiled


def test_the_driver_is_removed_with_everything_its_patterns_name():
    one = driver_node()
    result = act(
        packages, one, {"gpu_stack": {**STACK, "driver": DRIVER}}, name="driver", state="absent",
        variables={"nvidia_driver_state": "absent"},
    )  # fmt: skip

    assert one.packages == {}
    assert one.held == {}
    assert result["removed"] == ["nvidia-driver-pinning-580", "nvidia-headless-open"]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("holds", "modules"), [({}, []), ({"cudnn": HELD}, ["package_hold released"])])
def test_an_absent_component_leaves_no_hold(check, holds, modules):
    one = node(packages={"bash": "5.2"}, holds=holds, held={name: {} for name in holds})
    run(one, check, state="absent")
    assert one.modules() == modules


def test_a_removal_that_fails_leaves_the_hold():
    one = node(holds={"cudnn": HELD}, interrupted=True)
    assert run(one, state="absent")["failed"]
    assert "package_hold" in one.modules()
    assert one.held == {"cudnn": {"libcudnn9-cuda-12": OLD}}


OWN = {"packages": ["git", {"name": "make", "version": "4.*"}], "optional": ["linux-headers-1", "linux-headers-2"]}


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_packages_of_ones_own_are_not_held(manager):
    one = node(manager, repository={"git": ["2.3"], "make": ["4.1", "4.2"], "linux-headers-2": ["1"]})
    result = run(one, name="base", plan=OWN)

    assert result["installed"] == {"git": "2.3", "make": "4.2", "linux-headers-2": "1"}
    assert result["unavailable"] == ["linux-headers-1"]
    assert not [name for name in one.modules() if "hold" in name]
    assert one.modules()[-1] == "node_state"


KERNEL = {"running": "6.8.0-84", "installed": ["6.8.0-84"], "headers": [], "newest": "6.8.0-84"}
HEADERS = {"packages": ["git"], "kernel_headers": True}


def test_headers_of_the_next_boot_that_no_repository_has_stop_everything():
    one = node(packages={}, repository={"git": ["2.3"]}, kernel=KERNEL)
    result = run(one, stack={**STACK, "driver": DRIVER}, name="base", plan=HEADERS)

    assert (result["failed"], result["cause"]) == (True, "not_offered")
    assert "no repository of gpu-1 has linux-headers-6.8.0-84" in result["msg"]
    assert one.packages == {}
    assert not result["changed"]


def test_headers_of_the_next_boot_are_installed():
    one = node(packages={}, repository={"git": ["2.3"], "linux-headers-6.8.0-84": ["1"]}, kernel=KERNEL)
    result = run(one, stack={**STACK, "driver": DRIVER}, name="base", plan=HEADERS)

    assert result["installed"] == {"git": "2.3", "linux-headers-6.8.0-84": "1"}
    assert result["changed"]


class BesideOthers(FakeNode):
    """Headers of one kernel, beside those of another in a package of the same name, whose version alone shows."""

    def state(self):
        shown = super().state()
        return {**shown, "packages": {name: "1" for name in shown["packages"] if "headers" not in name}}


def test_headers_that_the_state_does_not_show_are_a_change():
    one = BesideOthers(repository={"linux-headers-6.8.0-84": ["1"]}, kernel=KERNEL)
    result = run(one, stack={**STACK, "driver": DRIVER}, name="base", plan={"kernel_headers": True})

    assert "linux-headers-6.8.0-84" in one.packages
    assert result["changed"]


def test_headers_are_no_condition_where_no_module_is_compiled():
    one = node(packages={}, repository={"git": ["2.3"]}, kernel=KERNEL)
    result = run(one, stack={**STACK, "driver": None}, name="base", plan=HEADERS)

    assert result["installed"] == {"git": "2.3"}
    assert result["unavailable"] == ["linux-headers-6.8.0-84"]


def test_headers_are_predicted_without_asking():
    one = node(packages={}, repository={"git": ["2.3"]}, kernel=KERNEL)
    result = run(one, check=True, stack={**STACK, "driver": DRIVER}, name="base", plan=HEADERS)

    assert result["installed"] == {"git": "any version", "linux-headers-6.8.0-84": "this version"}
    assert one.calls == []


def test_optional_packages_alone_change_nothing_where_no_repository_has_them():
    one = node(packages={"git": "2.3", "make": "4.1"})
    result = run(one, name="base", plan=OWN)

    assert not result["changed"]
    assert result["unavailable"] == ["linux-headers-1", "linux-headers-2"]
    assert one.modules() == ["apt", "command"]


def test_nothing_to_install_and_nothing_to_hold_runs_nothing():
    one = node(packages={"git": "2.3", "make": "4.1"})
    result = run(one, name="base", plan={"packages": OWN["packages"]})

    assert not result["changed"]
    assert one.calls == []


def test_packages_that_bring_a_repository_come_first():
    one = node("dnf", repository={"epel-release": ["8"]}, brings={"epel-release": {"dkms": ["3.0"]}})
    result = run(one, name="base", plan={"first": ["epel-release"], "packages": ["dkms"]})

    assert result["installed"] == {"epel-release": "8", "dkms": "3.0"}
    assert one.modules() == ["command", "dnf", "command", "dnf", "node_state"]


def test_packages_of_ones_own_are_removed():
    one = node()
    result = run(one, name="own", state="absent", plan={"packages": ["bash"], "held": ["libcudnn*"]})

    assert one.packages == {}
    assert result["removed"] == ["bash", "libcudnn9-cuda-12"]


@pytest.mark.parametrize("recommends", [None, True, False])
def test_what_packages_recommend_is_the_nodes_own_choice(recommends):
    one = node(repository={"git": ["2.3"]})
    option = {} if recommends is None else {"install_recommends": recommends}
    run(one, name="own", plan={"packages": ["git"]}, **option)
    (given,) = [given for name, given in one.calls if name == "ansible.builtin.apt"]

    assert given.get("install_recommends") is recommends


def test_a_component_comes_without_what_it_recommends():
    one = node()
    run(one)

    assert one.calls[1][1]["install_recommends"] is False


@pytest.mark.parametrize("manager", ["apt", "dnf"])
def test_an_interrupted_installation_is_finished(manager):
    one = node(manager, interrupted=True)
    result = run(one, name="base", state="repaired")

    assert result["changed"]
    assert not one.interrupted
    assert result["ansible_facts"]["gpu_node_state"]["package_manager_interrupted"] is False


def test_an_interrupted_installation_in_check_mode():
    one = node(interrupted=True)
    result = run(one, check=True, name="base", state="repaired")

    assert result["changed"]
    assert one.calls == []


def test_nothing_to_repair_runs_nothing():
    one = node()
    result = run(one, name="base", state="repaired")

    assert result["skipped"]
    assert one.calls == []


def test_a_repair_that_fails_is_explained():
    one = node(interrupted=True, failure={"stderr": "No space left on device"})
    result = run(one, name="base", state="repaired")

    assert result["cause"] == "disk_full"
    assert result["msg"].startswith("An interrupted package installation could not be finished on gpu-1: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"name": "gds"},
            "the name must be one of driver, fabric-manager, imex, container-toolkit, cuda-toolkit, cudnn, nccl",
        ),
        ({"name": "gds", "plan": {"packages": [["a"]]}}, "is not a package"),
        ({"name": "gds", "plan": {"package": ["a"]}}, "package"),
        ({"state": "latest"}, "latest"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, words):
    with pytest.raises(AnsibleError, match=words):
        run(node(), **arguments)


def test_a_node_without_a_package_manager_is_refused():
    with pytest.raises(AnsibleError, match="apt or dnf"):
        run(node(manager=None))


def test_a_newer_dnf_is_told_by_its_module():
    one = node("dnf")
    one._dnf5 = one._dnf
    act(packages, one, {"gpu_stack": STACK, "pkg_mgr": "dnf5"}, name="cudnn")

    assert "dnf5" in one.modules()


@pytest.fixture
def play(tmp_path):
    """Run the action by ansible-playbook; package_hold works in a directory, which module_defaults name."""
    root = tmp_path / "root"
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    stanza = "Package: libcudnn9-cuda-12\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}\n\n"
    (root / "var/lib/dpkg/status").write_text(stanza.format(NEW))

    def run(version, *options):
        state = {"package_manager": "apt", "packages": {"libcudnn9-cuda-12": version}}
        tasks = [
            {"ansible.builtin.set_fact": {"cacheable": True, "gpu_stack": STACK, "gpu_node_state": state}},
            {"allreduce.gpu.packages": {"name": "cudnn"}},
        ]
        defaults = {"allreduce.gpu.package_hold": {"root": str(root)}}
        host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"gpu-1": host}}}))
        (tmp_path / "play.yml").write_text(
            json.dumps([{"hosts": "all", "gather_facts": False, "module_defaults": defaults, "tasks": tasks}])
        )
        environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1"}
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml", "--diff", *options]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, root / "etc/apt/preferences.d/allreduce-cudnn"

    return run


def test_ansible_runs_the_steps_with_the_defaults_of_the_play(play):
    output, held = play(NEW, "--check")
    assert "changed=1" in output
    assert not held.exists()
    output, held = play(NEW)
    assert f"Pin: version {NEW}" in held.read_text()
    assert f"+++ after: {held}" in output


def test_ansible_shows_what_would_be_installed(play):
    output, held = play(OLD, "--check")
    assert f"-libcudnn9-cuda-12 {OLD}\n+libcudnn9-cuda-12 9.10.*" in output
    assert "changed=1" in output


UNREACHABLE = "W: Failed to fetch http://deb.example/dists/x/InRelease  Temporary failure resolving 'deb.example'"


def test_where_the_module_does_not_say_why_apt_is_asked():
    """After its retries ansible.builtin.apt ends with nothing but a colon."""
    one = node(failure={"msg": "Failed to update apt cache after 5 retries: "}, complaint=UNREACHABLE)
    result = run(one)
    assert (result["failed"], result["cause"]) == (True, "unreachable")
    assert "http://deb.example/dists/x/InRelease cannot be reached" in result["msg"]


def test_where_apt_does_not_know_either_the_message_stands():
    result = run(node(failure={"msg": "something new"}))
    assert result["cause"] == "unknown" and "something new" in result["msg"]


def test_dnf_is_not_asked_twice():
    one = node("dnf", failure={"msg": "something new"})
    assert run(one)["cause"] == "unknown"
    assert one.modules().count("command") == 1


DAMAGED = {
    "empty": "No package matching 'libcudnn9-cuda-12' is available",
    "cut off": "E:The package lists or status file could not be parsed or opened.",
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_lists_that_a_power_cut_has_left_are_fetched_from_the_beginning(damaged):
    one = node(damaged=damaged)
    result = run(one)
    assert result["changed"] and one.packages["libcudnn9-cuda-12"] == NEW
    assert one.modules().count("command") == 1


def test_lists_are_fetched_again_once_and_what_no_repository_has_is_told():
    one = node(repository={"bash": ["5.2"]})
    result = run(one)
    assert (result["failed"], result["cause"]) == (True, "package_not_found")
    assert one.modules().count("command") == 1
