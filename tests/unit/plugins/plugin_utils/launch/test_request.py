# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import io
import tarfile

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import Place, RequestError

NODES = ["gpu-1", "gpu-2", "gpu-3"]


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        ("", NODES),
        (None, NODES),
        ([], NODES),
        (2, ["gpu-1", "gpu-2"]),
        ("1", ["gpu-1"]),
        ("gpu-3, gpu-1", ["gpu-3", "gpu-1"]),
        (["gpu-2", "gpu-2"], ["gpu-2"]),
    ],
)
def test_nodes_are_selected_by_number_or_by_name(wanted, selected):
    assert request.select_nodes(NODES, wanted) == selected


@pytest.mark.parametrize(
    ("available", "wanted", "sentence"),
    [
        ([], "", "Group gpu_nodes has no hosts; add the nodes to train on to it in the inventory."),
        (NODES, 4, "train_nodes is 4 but group gpu_nodes has 3 hosts; set a number from 1 to 3, or names."),
        (NODES, "0", "train_nodes is 0 but group gpu_nodes has 3 hosts; set a number from 1 to 3, or names."),
        (NODES, "gpu-9", "train_nodes names gpu-9, not in group gpu_nodes; choose from gpu-1, gpu-2, gpu-3."),
    ],
)
def test_nodes_that_do_not_exist_are_refused(available, wanted, sentence):
    with pytest.raises(RequestError) as refusal:
        request.select_nodes(available, wanted)
    assert str(refusal.value) == sentence


def test_a_plan_names_nodes_and_script(tmp_path):
    (tmp_path / "train.py").touch()
    plan = request.plan_request(NODES, nodes=2, script="train.py", directories=["/nowhere", str(tmp_path)], forks=5)
    assert plan == {"nodes": ["gpu-1", "gpu-2"], "script": str(tmp_path / "train.py"), "files": [], "refusal": None}


def test_a_plan_takes_an_absolute_path(tmp_path):
    (tmp_path / "train.py").touch()
    plan = request.plan_request(NODES, nodes=1, script=str(tmp_path / "train.py"), directories=["/nowhere"], forks=5)
    assert plan["script"] == str(tmp_path / "train.py")


def test_a_script_that_does_not_exist_is_refused_with_the_places_searched(tmp_path):
    plan = request.plan_request(NODES, nodes="", script="nope.py", directories=[str(tmp_path), "/srv"], forks=5)
    assert plan["refusal"] == (
        f"train_script names nope.py, which does not exist in {tmp_path}, /srv; set it to what does."
    )
    assert plan["nodes"] == []


def test_files_are_found_beside_the_script_and_missing_ones_refused(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "model").mkdir()
    where = {"nodes": "", "script": "train.py", "directories": [str(tmp_path)], "forks": 5}
    assert request.plan_request(NODES, files=["model"], **where)["files"] == [str(tmp_path / "model")]
    assert request.plan_request(NODES, files=["x"], **where)["refusal"].startswith(
        "train_files names x, which does not"
    )


def test_a_directory_is_no_script(tmp_path):
    plan = request.plan_request(NODES, nodes="", script=str(tmp_path), directories=["/"], forks=5)
    assert plan["refusal"] == f"The training script {tmp_path} is no file; set train_script to one."


@pytest.mark.parametrize(
    ("value", "arguments"),
    [([], []), (["--epochs", 2], ["--epochs", "2"]), ("--name 'a b' -v", ["--name", "a b", "-v"])],
)
def test_arguments_are_a_list_or_a_text(value, arguments):
    assert request.script_arguments(value) == arguments


def test_an_open_quote_is_refused():
    with pytest.raises(RequestError, match="cannot be split"):
        request.script_arguments("--name 'a")


def test_a_plan_with_too_few_forks_is_refused(tmp_path):
    (tmp_path / "train.py").touch()
    plan = request.plan_request(NODES, nodes="", script="train.py", directories=[str(tmp_path)], forks=2)
    assert plan["refusal"] == (
        "Training on 3 nodes needs as many forks, but Ansible runs with 2; add '-f 3' to the command line."
    )


def test_a_node_outside_the_play_is_refused():
    with pytest.raises(RequestError, match="gpu-2 should train but does not take part in this play"):
        request.check_play(["gpu-1", "gpu-2"], ["gpu-1"], 5)


@pytest.mark.parametrize("change", [{"nproc_per_node": "0"}, {"nproc_per_node": "all"}, {"port": 0}, {"lease": 5}])
def test_numbers_out_of_range_are_refused(change):
    good = {"nproc_per_node": "auto", "port": 29500, "lease": 60}
    request.check_numbers(good)
    with pytest.raises(RequestError, match=next(iter(change))):
        request.check_numbers({**good, **change})


def test_each_node_needs_an_address_of_its_own():
    assert request.check_addresses({"a": "10.0.0.1", "b": "10.0.0.2"}) == {"a": "10.0.0.1", "b": "10.0.0.2"}
    with pytest.raises(RequestError, match="a and b have the same cluster address 10.0.2.15"):
        request.check_addresses({"a": "10.0.2.15", "b": "10.0.2.15"})
    with pytest.raises(RequestError, match="b has no default route"):
        request.check_addresses({"a": "10.0.2.15", "b": None})


def test_environments_are_named_or_given_by_path():
    assert request.environment_python("main") == "/opt/allreduce/envs/main/bin/python"
    assert request.environment_python("/srv/env/") == "/srv/env/bin/python"


def test_torchrun_gets_the_same_rendezvous_everywhere_and_each_nodes_own_address():
    addresses = {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2"}
    first, second = (
        request.torchrun_arguments(Place(node, ("gpu-1", "gpu-2"), addresses, 29500), "r1", "/runs/r1", 0)
        for node in ("gpu-1", "gpu-2")
    )
    assert first == [
        "--nnodes=2",
        "--rdzv-backend=c10d",
        "--rdzv-id=r1",
        "--rdzv-endpoint=10.0.0.1:29500",
        "--rdzv-conf=is_host=1",
        "--local-addr=10.0.0.1",
        "--max-restarts=0",
        "--log-dir=/runs/r1/logs/torchrun",
    ]
    assert set(second) - set(first) == {"--rdzv-conf=is_host=0", "--local-addr=10.0.0.2"}


def test_ranks_that_may_start_again_get_a_store_of_their_own():
    assert request.script_variables({"A": 1}, 0) == {"A": "1"}
    assert request.script_variables({"A": 1}, 1) == {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "A": "1"}


def test_an_ipv6_rendezvous_is_bracketed():
    assert Place("a", ("a",), {"a": "fd00::1"}, 29500).rendezvous == "[fd00::1]:29500"


def test_the_archive_holds_launcher_script_and_files_without_owners_or_caches(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print()")
    package = tmp_path / "model"
    (package / "__pycache__").mkdir(parents=True)
    (package / "net.py").touch()
    with tarfile.open(fileobj=io.BytesIO(request.archive(script, [package, script], {"a": 1}))) as tar:
        members = {member.name: member for member in tar}
    assert sorted(members) == ["agent.py", "launch.json", "rank.py", "work/model", "work/model/net.py", "work/train.py"]
    assert {(member.uid, member.uname) for member in members.values()} == {(0, "")}


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    script = tmp_path / "train.py"
    script.touch()
    with pytest.raises(RequestError, match="missing.py does not exist on the controller"):
        request.archive(script, [tmp_path / "missing.py"], {})
