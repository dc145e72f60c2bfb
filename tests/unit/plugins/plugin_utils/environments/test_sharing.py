# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.sharing import leaders, share

PLACE = {
    "digest": "d", "installed": False, "directory": ".main-0123456789ab", "at": ".main-0123456789ab", "create": True, "seed": "main",
    "switch": True, "late": False, "lock": "other==1.0", "conda_lock": "", "compiled": {}, "modules": [],
}  # fmt: skip
DONE = {**PLACE, "installed": True, "create": False, "seed": "", "switch": False}


@pytest.mark.parametrize(
    ("markers", "seen", "expected"),
    [
        ({"a": "1", "b": "2"}, {"a": ["1"], "b": ["2"]}, {"a": "a", "b": "b"}),
        ({"a": "1", "b": "2"}, {"a": ["1", "2"], "b": ["1", "2"]}, {"a": "a", "b": "a"}),
        # Two file systems, each for two nodes.
        (
            {"a": "1", "b": "2", "c": "3", "d": "4"},
            {"a": ["1", "3"], "b": ["2", "4"], "c": ["1", "3"], "d": ["2", "4"]},
            {"a": "a", "b": "b", "c": "a", "d": "b"},
        ),
        # The first one may read only, so that another one makes them.
        ({"b": "2", "c": "3"}, {"a": ["2", "3"], "b": ["2", "3"], "c": ["2", "3"]}, {"a": "b", "b": "b", "c": "b"}),
        # The first one says that it sees what the others made, who do not see what it made.
        (
            {"a": "1", "b": "2", "c": "3"},
            {"a": ["1", "2", "3"], "b": ["2"], "c": ["3"]},
            {"a": "a", "b": "b", "c": "c"},
        ),
        # Nothing could be measured.
        ({}, {"a": [], "b": []}, {"a": "a", "b": "b"}),
    ],
)
def test_the_first_node_whose_file_is_seen_leads(markers, seen, expected):
    assert leaders(markers, seen) == expected


def test_nodes_with_directories_of_their_own_do_everything():
    places = {"a": {"main": PLACE}, "b": {"main": PLACE}}
    for found in share(places, {"a": "a", "b": "b"}, "ab").values():
        assert (found["shared"], found["places"]) == (False, {"main": PLACE})
        assert not found["others"] and not found["unsupported"]


def test_the_others_only_verify_and_record():
    found = share({"a": {"main": PLACE}, "b": {"main": PLACE}}, {"a": "a", "b": "a"}, "ab")
    assert found["a"]["places"] == {"main": PLACE}
    waits = found["b"]["places"]["main"]
    assert waits == {**PLACE, "installed": True, "create": False, "seed": "", "waits": True}
    assert (found["a"]["shared"], found["b"]["shared"], found["b"]["leader"]) == (True, True, "a")


def test_what_is_done_already_is_not_done_again():
    found = share({"a": {"main": DONE}, "b": {"main": DONE}, "c": {"main": PLACE}}, dict.fromkeys("abc", "a"), "abc")
    assert found["b"]["places"] == {"main": DONE}
    assert found["c"]["places"]["main"]["waits"]


@pytest.mark.parametrize(
    ("own", "made", "others"),
    [
        ({"main": PLACE}, {"main": {**PLACE, "directory": ".main-ffffffffffff"}}, ["main"]),
        ({"main": PLACE}, {"tensorflow": PLACE}, []),
        ({"main": DONE}, {"main": {**PLACE, "directory": ".main-ffffffffffff"}}, []),
    ],
)
def test_one_name_is_one_environment(own, made, others):
    found = share({"a": {**made}, "b": {**own}}, {"a": "a", "b": "a"}, "ab")["b"]
    assert found["others"] == others
    assert not any(place.get("waits") for place in found["places"].values())


@pytest.mark.parametrize("more", [{"late": True}, {"conda_lock": "@EXPLICIT"}])
def test_conda_and_horovod_need_directories_of_their_own(more):
    places = {"a": {"main": {**PLACE, **more}}, "b": {"main": {**PLACE, **more}}}
    assert [one["unsupported"] for one in share(places, {"a": "a", "b": "a"}, "ab").values()] == [["main"], ["main"]]
    assert [one["unsupported"] for one in share(places, {"a": "a", "b": "b"}, "ab").values()] == [[], []]


def test_who_only_says_that_it_sees_the_directory_stops_nobody_else():
    places = {"a": {"main": {**PLACE, "late": True}}, "b": {"main": {**PLACE, "late": True}}}
    found = share(places, {"a": "a", "b": "a"}, marked="a")
    assert (found["a"]["unsupported"], found["b"]["unsupported"]) == ([], ["main"])
    assert found["a"]["shared"]  # what the other may use is kept
