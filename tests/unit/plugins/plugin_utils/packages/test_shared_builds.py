# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.shared_builds import FIRST, assign_builders

KERNEL, OTHER = "6.1.0-40-amd64", "6.1.0-41-amd64"
VERSION, OLD = "580.95.05", "570.1"
DRIVER = {"version": VERSION, "branch": "580", "source": "nvidia", "dkms_module": "nvidia"}
KEY, OTHER_KEY = "a" * 64, "b" * 64


def host(*built, asks=True, arch="x86_64", kernels=(KERNEL,), headers=None, driver=None, version=VERSION, boot=None):
    """A host with the module of a version built for some kernels."""
    builds = [
        {"module": "nvidia", "version": version, "kernel": kernel, "arch": arch, "status": "installed"}
        for kernel in built
    ]
    kernel = {"running": kernels[0], "installed": list(kernels), "newest": kernels[-1]}
    return {
        "stack": {"os": {"id": "debian", "version": "12", "arch": arch, "family": "debian"}, "driver": {**DRIVER, **(driver or {})}},
        "state": {
            "kernel": {**kernel, "headers": list(kernels if headers is None else headers)},
            "dkms": builds,
            "secure_boot": {"enforced": False, **(boot or {})},
        },
        "asks": asks,
    }  # fmt: skip


def givers(builder=FIRST, **hosts):
    """Who gives to whom."""
    return {name: taken["giver"] for name, taken in assign_builders(hosts, builder).items()}


def signed(fingerprint):
    return {"boot": {"enforced": True, "fingerprint": fingerprint}}


def test_the_first_of_equal_nodes_compiles_for_all():
    assert assign_builders({"a": host(), "b": host(), "c": host()}, FIRST) == {
        name: {"giver": "a", "name": "nvidia", "arch": "x86_64", "kernels": [KERNEL]} for name in ("b", "c")
    }


def test_who_has_it_gives_it():
    assert givers(a=host(), b=host(KERNEL, asks=False), c=host()) == {"a": "b", "c": "b"}


def test_where_all_have_it_nothing_is_given():
    assert givers(a=host(KERNEL, asks=False), b=host(KERNEL, asks=False)) == {}


def test_who_is_alone_compiles():
    assert givers(a=host()) == {}


def test_who_neither_has_nor_asks_takes_no_part():
    """As a node without a GPU, where the role installs no driver."""
    assert givers(a=host(asks=False), b=host(), c=host()) == {"c": "b"}


DIFFERENT = {
    "kernel": {"kernels": [OTHER]},
    "one kernel more": {"kernels": [KERNEL, OTHER]},
    "architecture": {"arch": "aarch64"},
    "module": {"driver": {"dkms_module": "nvidia-open"}},
    "version": {"driver": {"version": "580.1"}},
}


@pytest.mark.parametrize("difference", DIFFERENT)
def test_nodes_that_differ_do_not_share(difference):
    others = DIFFERENT[difference]
    assert givers(a=host(), b=host(**others)) == {}
    assert givers(a=host(), b=host(**others), c=host(), d=host(**others)) == {"c": "a", "d": "b"}


ALONE = {
    "no headers": {"headers": []},
    "headers of one of two kernels": {"kernels": [KERNEL, OTHER], "headers": [KERNEL]},
    "a runfile": {"driver": {"source": "runfile"}},
    "no module of DKMS": {"driver": {"dkms_module": None}},
    "a key that is not there yet": signed(None),
    "a firmware that was not asked": {"boot": {"enforced": None}},
}


@pytest.mark.parametrize("reason", ALONE)
def test_who_cannot_share_does_not(reason):
    assert givers(a=host(**ALONE[reason]), b=host(**ALONE[reason])) == {}


def test_where_signatures_are_demanded_the_key_decides():
    hosts = {"a": host(**signed(KEY)), "b": host(**signed(OTHER_KEY)), "c": host(**signed(KEY)), "d": host()}
    assert givers(**hosts) == {"c": "a"}


def test_where_none_are_demanded_keys_do_not_matter():
    assert givers(a=host(boot={"fingerprint": KEY}), b=host(boot={"fingerprint": OTHER_KEY}), c=host()) == {
        "b": "a",
        "c": "a",
    }


def test_an_older_version_is_not_given():
    assert givers(a=host(), b=host(KERNEL, version=OLD)) == {"b": "a"}


def test_an_archive_that_decides_the_version_has_one_for_all():
    driver = {"source": "distribution", "version": "580.1"}
    assert givers(a=host(driver=driver), b=host(KERNEL, driver={**driver, "version": VERSION}, asks=False)) == {
        "a": "b"
    }


def test_a_build_for_one_of_two_kernels_is_not_enough():
    kernels = [KERNEL, OTHER]
    assert givers(a=host(kernels=kernels), b=host(KERNEL, kernels=kernels)) == {"b": "a"}


def test_a_named_builder_gives_to_those_of_its_kind():
    hosts = {"a": host(), "b": host(), "c": host(kernels=[OTHER]), "d": host(kernels=[OTHER])}
    assert givers("b", **hosts) == {"a": "b"}


def test_nobody_else_gives_where_a_builder_is_named():
    assert givers("z", a=host(KERNEL, asks=False), b=host()) == {}
    assert givers("b", a=host(KERNEL, asks=False), b=host(), c=host()) == {"c": "b"}


def test_a_container_takes_its_newest_headers():
    both = {"kernels": [KERNEL], "headers": [KERNEL, OTHER]}
    hosts = {name: host(**both) for name in "ab"}
    for one in hosts.values():
        one["state"]["kernel"] = {"running": "6.9-cloud", "installed": [], "headers": [KERNEL, OTHER]}
    assert assign_builders(hosts, FIRST)["b"]["kernels"] == [OTHER]
