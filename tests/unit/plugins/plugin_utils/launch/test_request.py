# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import io
import os
import tarfile

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.table import LAUNCHERS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem, ProblemError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe

NODES = ["gpu-1", "gpu-2", "gpu-3"]


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        ("", NODES),
        (None, NODES),
        ([], NODES),
        (2, ["gpu-1", "gpu-2"]),
        ("1", ["gpu-1"]),
        (" ", NODES),
        (" 2 ", ["gpu-1", "gpu-2"]),
        ("gpu-3, gpu-1", ["gpu-3", "gpu-1"]),
        (["gpu-2", "gpu-2"], ["gpu-2"]),
    ],
)
def test_nodes_are_selected_by_number_or_by_name(wanted, selected):
    assert request.select_nodes(NODES, wanted) == selected


def refused(call, *args, **kwargs):
    """Return the one problem for which CALL refuses."""
    with pytest.raises(ProblemError) as refusal:
        call(*args, **kwargs)
    (problem,) = refusal.value.problems
    return problem


@pytest.mark.parametrize(
    ("available", "wanted", "problem"),
    [
        ([], "", Problem("no_training_nodes", "gpu_nodes")),
        (NODES, 4, Problem("training_count", "4", {"variable": "train_nodes", "available": 3})),
        (NODES, "0", Problem("training_count", "0", {"variable": "train_nodes", "available": 3})),
        (NODES, "gpu-9", Problem("training_unknown", "train_nodes", {"unknown": ["gpu-9"], "available": NODES})),
        (NODES, True, Problem("training_count", "True", {"variable": "train_nodes", "available": 3})),
        (NODES, 1.5, Problem("training_count", "1.5", {"variable": "train_nodes", "available": 3})),
        (NODES, {"gpu-1": 1}, Problem("training_count", "{'gpu-1': 1}", {"variable": "train_nodes", "available": 3})),
        (NODES, ",", Problem("training_unknown", "train_nodes", {"unknown": [","], "available": NODES})),
        (NODES, "²", Problem("training_unknown", "train_nodes", {"unknown": ["²"], "available": NODES})),
        (NODES, "9" * 5000, Problem("training_unknown", "train_nodes", {"unknown": ["9" * 5000], "available": NODES})),
    ],
)
def test_nodes_that_do_not_exist_are_refused(available, wanted, problem):
    assert refused(request.select_nodes, available, wanted) == problem


def test_a_plan_names_nodes_and_script(tmp_path):
    (tmp_path / "train.py").touch()
    plan = request.plan_request(NODES, nodes=2, script="train.py", directories=["/nowhere", str(tmp_path)], forks=5)
    assert plan == {"nodes": ["gpu-1", "gpu-2"], "script": str(tmp_path / "train.py"), "files": []}


def test_a_plan_takes_an_absolute_path(tmp_path):
    (tmp_path / "train.py").touch()
    plan = request.plan_request(NODES, nodes=1, script=str(tmp_path / "train.py"), directories=["/nowhere"], forks=5)
    assert plan["script"] == str(tmp_path / "train.py")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "file/below", None, 0])
def test_a_path_that_cannot_be_looked_at_is_one_that_does_not_exist(tmp_path, name):
    (tmp_path / "file").touch()
    problem = refused(request.find_file, name, [str(tmp_path)], "train_script")
    assert (problem.code, problem.detail["name"]) == ("missing_file", str(name))


def test_a_script_in_a_directory_that_may_not_be_searched_is_missing(monkeypatch):
    def stat(path, **options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", stat)
    assert refused(request.find_file, "/data/home/train.py", ["/srv"], "train_script").code == "missing_file"


def test_a_script_that_does_not_exist_is_refused_with_the_places_searched(tmp_path):
    where = [str(tmp_path), "/srv"]
    problem = refused(request.plan_request, NODES, nodes="", script="nope.py", directories=where, forks=5)
    assert problem == Problem("missing_file", "train_script", {"name": "nope.py", "directories": where})


def test_files_are_found_beside_the_script_and_missing_ones_refused(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "model").mkdir()
    where = {"nodes": "", "script": "train.py", "directories": [str(tmp_path)], "forks": 5}
    both = [str(tmp_path / "model"), str(tmp_path / "train.py")]
    assert request.plan_request(NODES, files=["model", "train.py"], **where)["files"] == both
    assert request.plan_request(NODES, files="model, train.py", **where)["files"] == both
    assert refused(request.plan_request, NODES, files=["x"], **where).subject == "train_files"


def test_a_directory_is_no_script(tmp_path):
    problem = refused(request.plan_request, NODES, nodes="", script=str(tmp_path), directories=["/"], forks=5)
    assert problem == Problem("script_not_file", str(tmp_path))


@pytest.mark.parametrize(
    ("value", "arguments"),
    [([], []), (["--epochs", 2], ["--epochs", "2"]), ("--name 'a b' -v", ["--name", "a b", "-v"])],
)
def test_arguments_are_a_list_or_a_text(value, arguments):
    assert request.script_arguments(value) == arguments


@pytest.mark.parametrize("value", [None, 5, {"epochs": 2}, True])
def test_arguments_of_another_kind_are_refused(value):
    problem = refused(request.script_arguments, value)
    assert (problem.code, problem.subject) == ("wrong_arguments", str(value))
    assert describe(problem)


def gpus(*instances):
    """A node's facts; a number for each GPU: of its MIG instances, None where it is whole."""
    modes = [{} if count is None else {"mig": {"current": True, "instances": [{}] * count}} for count in instances]
    return {
        "ansible_facts": {
            "gpu_node": {"gpus": [{"pci_bus_id": f"0000:0{place}:00.0", **one} for place, one in enumerate(modes)]}
        }
    }


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ({"gpu-1.example.org": gpus(None, None), "b": gpus(None, None)}, (("gpu-1", "b"), 2)),
        ({"a": {**gpus(7, None), "slurm_node_name": "node1"}, "b": gpus(*[None] * 8)}, (("node1", "b"), 8)),
        ({"a": {}, "b": {}}, (("a", "b"), 0)),
        ({"a": gpus(None), "b": gpus(None, None)}, "uneven_gpus"),
        ({"a b": gpus(None)}, "unfit_node_name"),
        ({"a": {**gpus(None), "slurm_node_name": "a,b"}}, "unfit_node_name"),
    ],
)
def test_what_slurm_calls_nodes_and_can_give_on_them(hosts, expected):
    if isinstance(expected, str):
        assert refused(request.scheduled, list(hosts), hosts).code == expected
    else:
        assert request.scheduled(list(hosts), hosts) == expected


def test_an_open_quote_is_refused():
    assert refused(request.script_arguments, "--name 'a").code == "wrong_arguments"


@pytest.mark.parametrize(
    ("forks", "playing", "problem"),
    [
        (2, None, Problem("too_few_forks", "forks", {"nodes": 3, "forks": 2})),
        (5, ["gpu-1"], Problem("training_absent", "train_nodes", {"nodes": ["gpu-2", "gpu-3"]})),
    ],
)
def test_a_play_that_cannot_run_all_nodes_at_once_is_refused(tmp_path, forks, playing, problem):
    (tmp_path / "train.py").touch()
    where = {"nodes": "", "script": "train.py", "directories": [str(tmp_path)]}
    assert refused(request.plan_request, NODES, forks=forks, playing=playing, **where) == problem


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"nproc_per_node": "0"}, "wrong_nproc"),
        ({"nproc_per_node": "all"}, "wrong_nproc"),
        ({"nproc_per_node": "²"}, "wrong_nproc"),
        ({"nproc_per_node": "9" * 5000}, "wrong_nproc"),
        ({"port": 0}, "wrong_port"),
        ({"lease": 5}, "short_lease"),
        ({"max_restarts": -1}, "low_number"),
        ({"timeout": -1}, "low_number"),
        ({"start_timeout": 0}, "low_number"),
        ({"stall_timeout": -1}, "low_number"),
        ({"tail_lines": -1}, "low_number"),
        ({"watch_interval": float("nan")}, "wrong_watch_interval"),
        ({"watch_interval": float("inf")}, "wrong_watch_interval"),
    ],
)
def test_numbers_out_of_range_are_refused(change, code):
    good = {"nproc_per_node": "auto", "port": 29500, "lease": 60}
    request.check_numbers(good)
    problem = refused(request.check_numbers, {**good, **change})
    assert problem.code == code
    assert describe(problem)


@pytest.mark.parametrize(
    ("launcher", "least", "count", "found"),
    [
        ("torchrun", 0, 1, 1),
        ("torchrun", 2, 2, 2),
        ("mpirun", 0, 3, 3),
        ("elastic", 0, 3, 3),
        ("elastic", 1, 2, 1),
        ("elastic", 0, 1, Problem("elastic_alone", "elastic", {"nodes": 1})),
        ("elastic", 3, 2, Problem("wrong_min_nodes", "3", {"nodes": 2})),
        ("elastic", -1, 2, Problem("wrong_min_nodes", "-1", {"nodes": 2})),
        ("torchrun", 1, 2, Problem("min_nodes_unused", "1", {"launcher": "torchrun"})),
        ("mpirun", 1, 2, Problem("min_nodes_unused", "1", {"launcher": "mpirun"})),
        ("srun", 0, 2, Problem("unknown_launcher", "srun", {"choices": list(LAUNCHERS)})),
    ],
)
def test_only_an_elastic_run_may_lose_nodes(launcher, least, count, found):
    args = {"launcher": launcher, "min_nodes": least, "max_restarts": 3}
    if isinstance(found, Problem):
        assert refused(request.least_nodes, args, count) == found
        assert describe(found)
    else:
        assert request.least_nodes(args, count) == found


def test_ranks_of_an_elastic_run_have_to_start_again():
    args = {"launcher": "elastic", "min_nodes": 1, "max_restarts": 0}
    problem = refused(request.least_nodes, args, 2)
    assert problem == Problem("elastic_without_restarts", "0")
    assert describe(problem)


def test_each_node_needs_an_address_of_its_own():
    hosts = {"a": {"gpu_cluster_address": "10.0.0.1"}, "b": {"gpu_cluster_address": "10.0.0.2"}, "c": {}}
    assert request.node_addresses(["a", "b"], hosts) == {"a": "10.0.0.1", "b": "10.0.0.2"}
    assert refused(request.node_addresses, ["a", "c"], hosts).code == "missing_address"


def test_environments_are_named_or_given_by_path():
    assert request.environment_python("main") == "/opt/allreduce/envs/main/bin/python"
    assert request.environment_python("/srv/env/") == "/srv/env/bin/python"


def test_an_ipv6_rendezvous_is_bracketed():
    assert Place("a", ("a",), {"a": "fd00::1"}, 29500).rendezvous == "[fd00::1]:29500"


def test_the_archive_holds_launcher_script_and_files_without_owners_or_caches(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print()")
    package = tmp_path / "model"
    (package / "__pycache__").mkdir(parents=True)
    (package / "net.py").touch()
    with tarfile.open(
        fileobj=io.BytesIO(request.archive({"a": 1}, ("agent.py", "rank.py"), [script, package, script]))
    ) as tar:
        members = {member.name: member for member in tar}
    assert sorted(members) == ["agent.py", "launch.json", "rank.py", "work/model", "work/model/net.py", "work/train.py"]
    assert {(member.uid, member.uname) for member in members.values()} == {(0, "")}


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    script = tmp_path / "train.py"
    script.touch()
    missing = tmp_path / "missing.py"
    assert refused(request.archive, {}, (), [script, missing]) == Problem("file_absent", str(missing))


def test_two_files_of_one_name_are_refused(tmp_path):
    """The second would be trained with, or read, in place of the first."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").touch()
    problem = refused(request.archive, {}, (), [tmp_path / "a" / "train.py", tmp_path / "b" / "train.py"])
    assert problem == Problem(
        "same_file_name", "train.py", {"paths": [str(tmp_path / one / "train.py") for one in "ab"]}
    )
    assert describe(problem)


def test_a_link_and_files_with_two_names_are_packed_as_files(tmp_path):
    package = tmp_path / "model"
    package.mkdir()
    (package / "net.py").write_text("net")
    (package / "same.py").hardlink_to(package / "net.py")
    (tmp_path / "train.py").symlink_to(package / "net.py")
    packed = request.archive({}, (), [tmp_path / "train.py", package])
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar if one.isreg() and one.name.startswith("work/")}
    assert files == {"work/train.py": b"net", "work/model/net.py": b"net", "work/model/same.py": b"net"}


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("net.py"), os.mkfifo], ids=["link", "pipe"])
def test_what_the_node_would_refuse_in_a_directory_is_refused_before(tmp_path, make):
    package = tmp_path / "model"
    package.mkdir()
    make(package / "other")
    problem = refused(request.archive, {}, (), [package])
    assert problem == Problem("not_plain_file", str(package / "other"))
    assert describe(problem)


def test_a_file_that_the_controller_may_not_read_is_refused(tmp_path, monkeypatch):
    def add(tar, path, *args, **more):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "train.py").touch()
    monkeypatch.setattr(tarfile.TarFile, "add", add)
    problem = refused(request.archive, {}, (), [tmp_path / "train.py"])
    assert problem == Problem("file_unreadable", str(tmp_path / "train.py"), {"error": "Permission denied"})
    assert describe(problem)


def test_a_run_that_starts_again_gets_its_launch_alone():
    with tarfile.open(fileobj=io.BytesIO(request.archive({"a": 1}))) as tar:
        assert tar.getnames() == ["launch.json"]
