# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's file on this machine in check mode: what the role asks of a node; and on a recorded tree, the way there and back."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

from tests.support.local_play import CHECKOUT, run_roles

PRESENT = {"nccl_conf_state": "present"}
OURS = {"path": "/etc/nccl.conf", "content": "# ours\nNCCL_IB_HCA==mlx5_0\n", "mode": "0644"}
THEIRS = b"NCCL_DEBUG = WARN\r\n\xff no text"


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {"nccl": None, "cuda": None},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {
            "services": {},
            "packages": {},
            "package_manager": "apt",
            "records": ["nccl_conf"] if recorded else [],
        },
        "default_ipv4": {},
    }
    return run_roles(place, ["nccl"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize(
    ("recorded", "variables", "expected"),
    [
        (False, {}, []),
        (True, {}, ["tuning"]),
        (False, PRESENT, ["nccl_facts", "tuning"]),
        (False, {**PRESENT, "nccl_conf_variables": {"NCCL_X": " a"}}, None),
    ],
)
def test_what_runs_on_the_node(tmp_path, recorded, variables, expected):
    run = play(tmp_path, recorded, **variables)
    assert (run.status == 0) is (expected is not None), run.output
    assert modules(run) == (expected or [])  # what cannot be meant is refused before the node is asked
    assert ("nccl_conf_variables sets NCCL_X to ' a'" in run.output) is (expected is None)


def test_the_file_is_shown(tmp_path):
    run = play(tmp_path, **PRESENT, nccl_conf_variables={"NCCL_IB_TC": 106})
    assert run.status == 0, run.output
    assert "+++ after: /etc/nccl.conf" in run.output and "+NCCL_IB_TC=106" in run.output


def module(root, **options):
    arguments = {"root": str(root), "record": "nccl_conf", "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.tuning"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / ".collections")},
    )  # fmt: skip
    answer = json.loads(done.stdout)
    json.dumps(answer, ensure_ascii=False).encode()  # Ansible takes no answer that is not UTF-8
    return answer


@pytest.mark.parametrize("before", [None, THEIRS])
def test_there_and_back(tmp_path, before):
    """A file that somebody has written comes back with every byte, whatever another role records beside it."""
    tree(tmp_path, {"/etc/hostname": "", "/proc/sys/vm/swappiness": "60", "/var/lib/allreduce/keep": ""})
    if before is not None:
        (tmp_path / "etc/nccl.conf").write_bytes(before)
        (tmp_path / "etc/nccl.conf").chmod(0o600)
    recorded = snapshot(tmp_path)
    assert module(tmp_path, files=[OURS], _ansible_check_mode=True)["changed"] and snapshot(tmp_path) == recorded
    assert module(tmp_path, files=[OURS])["changed"]
    assert module(tmp_path, files=[OURS])["changed"] is False
    other = {"path": "/etc/sysctl.d/90-allreduce.conf", "content": "vm.swappiness = 10\n", "mode": "0644"}
    assert module(tmp_path, record="tuning", files=[other])["changed"]
    assert (tmp_path / "etc/nccl.conf").read_text() == OURS["content"]
    assert module(tmp_path, record="tuning", state="absent")["changed"]
    assert module(tmp_path, state="absent")["changed"]
    assert snapshot(tmp_path) == recorded
    if before is not None:
        assert (tmp_path / "etc/nccl.conf").stat().st_mode & 0o777 == 0o600


def test_the_tests_are_built_for_those_who_train_whatever_the_umask(tmp_path):
    role = CHECKOUT / "roles" / "nccl"
    tasks = yaml.safe_load((role / "tasks" / "tests.yml").read_text(encoding="utf-8"))
    (build,) = [task["ansible.builtin.command"]["argv"] for task in tasks if task["name"] == "Build the tests"]
    assert build.startswith("{{ __nccl_tests_umask + ['make', ")
    wrapper = yaml.safe_load((role / "vars" / "main.yml").read_text(encoding="utf-8"))["__nccl_tests_umask"]
    before = os.umask(0o077)
    try:
        subprocess.run([*wrapper, "mkdir", str(tmp_path / "a build")], check=True)
    finally:
        os.umask(before)
    assert (tmp_path / "a build").stat().st_mode & 0o777 == 0o755


MAKEFILE = """\
PROGRAMS = build/all_reduce_perf build/alltoall_perf
default: $(PROGRAMS)
build/%: src/%
\tmkdir -p build && cp $< $@
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the files are root's")
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize("there", ["Makefile", "build/all_reduce_perf"])
def test_what_was_cut_off_is_built_again(tmp_path, there):
    """What came first of the archive, or of the build, told that all of it was there."""
    directory, source, archive = tmp_path / "tests", tmp_path / "source" / "nccl-tests", tmp_path / "source.tar.gz"
    for name, text in {"Makefile": MAKEFILE, "src/all_reduce_perf": "one\n", "src/alltoall_perf": "two\n"}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, "utf-8")
        os.utime(source / name, (1, 1))
    subprocess.run(["tar", "-czf", archive, "-C", source.parent, "nccl-tests"], check=True)
    (directory / there).parent.mkdir(parents=True)
    (directory / there).write_text("", "utf-8")
    given = {
        "__nccl_plan": {}, "__nccl_cuda": {"version": "12.8", "home": "/usr/local/cuda-12.8"}, "nccl_tests_archive": archive.as_uri(),
        "nccl_tests_checksum": "sha256:" + hashlib.sha256(archive.read_bytes()).hexdigest(),
        "nccl_tests_mpi_home": "", "__nccl_tests_directory": str(directory),
    }  # fmt: skip
    facts = {"gpu_node_state": {"services": {}}}
    first, second = (run_roles(tmp_path, ["nccl/tests"], facts, "-e", json.dumps(given)) for _time in range(2))
    assert first.status == 0, first.output
    built = {path.name: path.read_text("utf-8") for path in (directory / "build").iterdir()}
    assert built == {"all_reduce_perf": "one\n", "alltoall_perf": "two\n"}
    assert "changed=0 " in second.output, second.output


def test_another_mpi_is_another_build(tmp_path):
    given = {"__nccl_cuda": {"version": "12.8"}, "nccl_tests_checksum": "sha256:" + "0" * 64}
    tasks = [
        {
            "ansible.builtin.copy": {
                "content": "{{ __nccl_tests_directory }}",
                "dest": str(tmp_path / f"{number}.txt"),
            },
            "vars": {**given, "nccl_tests_mpi_home": home},
        }
        for number, home in enumerate(("", "/opt/a b", "/opt/c"))
    ]
    variables = CHECKOUT / "roles" / "nccl" / "vars" / "main.yml"
    book = [{"hosts": "localhost", "gather_facts": False, "vars_files": [str(variables)], "tasks": tasks}]
    (tmp_path / "play.yml").write_text(json.dumps(book), "utf-8")
    subprocess.run([sys.executable, "-m", "ansible", "playbook", "play.yml"], cwd=tmp_path, check=True)
    plain, *others = ((tmp_path / f"{number}.txt").read_text("utf-8") for number in range(3))
    assert plain == "/opt/allreduce/nccl-tests/000000000000-cuda12.8"
    assert len(set(others)) == 2
    assert all(one.startswith(f"{plain}-mpi") and " " not in one for one in others)
