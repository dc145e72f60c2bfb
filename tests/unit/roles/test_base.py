# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role base and dnf's repositories: those of a server that is gone, and those that a mirror replaces."""

import json
import re
import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import run_roles

KEY = "file:///etc/pki/rpm-gpg/RPM-GPG-KEY-centosofficial"
DIRECTORY = "/etc/yum.repos.d/"
VAULT = "https://vault.centos.org/8.5.2111"
DEAD = "http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo="


def repository(name, file, enabled=True, source=f"{DEAD}x"):
    return {"id": name, "path": DIRECTORY + file, "enabled": enabled, "source": source, "key": KEY}


CENTOS = [
    repository("appstream", "CentOS-Linux-AppStream.repo"),
    repository("baseos", "CentOS-Linux-BaseOS.repo"),
    repository("powertools", "CentOS-Linux-PowerTools.repo", enabled=False),
    repository("site", "site.repo", source="http://site.example/"),
]
SITE = [repository("rhel-8-baseos", "redhat.repo", source="https://cdn.example/")]


def base(tmp_path, system, repositories, mirror="", packages=("epel-release",), **variables):
    stack = resolve({"os": system, "gpus": ["NVIDIA A40"], "ansible_core": "2.16", "request": {"pytorch": "none"}})[
        "stack"
    ]
    state = {
        "package_manager": "dnf",
        "packages": dict.fromkeys(packages, "8-11"),
        "kernel": {"running": "4.18.0-348.el8.x86_64", "newest": None, "installed": [], "headers": []},
        "container": True,
        "package_manager_interrupted": False,
        "dnf_repositories": repositories,
    }
    facts = {"gpu_stack": stack, "gpu_node": {"gpus": [{}]}, "gpu_node_state": state, "base_dnf_mirror": mirror}
    facts.update(variables)
    return run_roles(tmp_path, ["base"], facts, "--check", "--diff")


@pytest.mark.parametrize(
    ("system", "repositories", "mirror", "words"),
    [
        (
            "centos 8",
            CENTOS,
            "",
            ["appstream, baseos of node are at mirrorlist.centos.org", f"set base_dnf_mirror to {VAULT}"],
        ),
        (
            "rhel 8",
            SITE,
            VAULT,
            ["base_dnf_mirror takes the place of the repositories baseos, appstream", "node has none"],
        ),
    ],
)
def test_sources_that_cannot_work_are_refused(system, repositories, mirror, words, tmp_path):
    run = base(tmp_path, system, repositories, mirror)

    assert run.status == 2, run.output
    said = re.sub(r"\s+", " ", run.output)
    assert all(word in said for word in words), run.output
    assert run.executions == []


def test_a_mirror_takes_the_place_of_the_distributions_repositories(tmp_path):
    run = base(tmp_path, "centos 8", CENTOS, VAULT)

    for name in ("BaseOS", "AppStream", "PowerTools"):
        assert f"+baseurl={VAULT}/{name}/$basearch/os/\n+enabled=1\n+gpgcheck=1\n+gpgkey={KEY}" in run.output
        assert f"+++ after: {DIRECTORY}CentOS-Linux-{name}.repo" in run.output
    assert "extras" not in run.output
    assert "site.repo" not in run.output


@pytest.mark.skipif(not shutil.which("rpm"), reason="needs rpm")
def test_epel_that_cannot_be_had_is_told_with_what_can_be_done(tmp_path):
    run = base(tmp_path, "rhel 9", SITE, packages=(), base_epel_key=str(tmp_path / "missing.asc"))

    assert run.status == 2, run.output
    said = re.sub(r"\s+", " ", run.output)
    assert (
        "EPEL cannot be set up on node from https://dl.fedoraproject.org/pub/epel/epel-release-latest-9.noarch.rpm"
        in said
    )
    assert "Set base_epel_release and base_epel_key to copies that the host reaches" in said
    assert not {str(one["module"]).rpartition(".")[2] for one in run.executions} & {"dnf", "command"}


def test_a_repository_of_the_site_for_epel_is_enough(tmp_path):
    run = base(tmp_path, "rhel 9", [*SITE, repository("site-epel9", "site.repo")], packages=())

    assert "Set EPEL up" not in run.output


NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/"
ENTRIES = "/etc/apt/sources.list.d/"
CONTRADICTIONS = {
    "nvidia": (NVIDIA, "/", ["allreduce-cuda.sources", "cuda-ubuntu2204-x86_64.list"], ["allreduce-cuda.sources"]),
    "components": (
        "http://archive.example/ubuntu/",
        "jammy",
        ["allreduce-components.sources", "x.sources"],
        ["allreduce-components.sources"],
    ),
    "foreign": ("https://download.docker.com/linux/ubuntu/", "jammy", ["docker.list", "docker.sources"], []),
}


def contradicting(tmp_path, name, **variables):
    """Role base in check mode, on a host of Ubuntu where this was measured; what would be removed lies in a directory of the test."""
    uri, suite, paths, ours = CONTRADICTIONS[name]
    place = tmp_path / "sources.list.d"
    place.mkdir()
    for path in paths:
        (place / path).write_text(f"deb [signed-by=/{path}] {uri} {suite}\n")
    stack = resolve(
        {"os": "ubuntu 22.04", "gpus": ["NVIDIA A40"], "ansible_core": "2.16", "request": {"pytorch": "none"}}
    )["stack"]
    one = {
        "uri": uri,
        "suite": f"{suite}\x1b[31m",
        "option": "Signed-By",
        "paths": [f"{place}/{path}" for path in paths],
    }
    state = {
        "package_manager": "apt",
        "packages": {},
        "kernel": {"running": "5.15.0-100-generic", "newest": None, "installed": [], "headers": []},
        "container": True,
        "package_manager_interrupted": False,
        "apt_mirrors": [],
        "apt_contradictions": [{**one, "ours": [f"{place}/{path}" for path in ours]}],
    }
    facts = {
        "gpu_stack": stack,
        "gpu_node": {"gpus": [{}]},
        "gpu_node_state": state,
        **variables,
    }
    places = {
        "__cuda_repository_old_places": [str(place)],
        "__cuda_repository_source_file": f"{place}/allreduce-cuda.sources",
        "__cuda_repository_main_lists": [],
    }
    return run_roles(tmp_path, ["base"], facts, "--check", "--diff", "-e", json.dumps(places))


def removed(run):
    """Files that would be removed."""
    return re.findall(r'-    "path": "\S+/sources\.list\.d/(\S+)",\n-    "state": "file"', run.output) or re.findall(
        r"item=\S+/sources\.list\.d/([^)\s]+)\)", run.output
    )


@pytest.mark.parametrize(
    ("name", "goes"), [("nvidia", "cuda-ubuntu2204-x86_64.list"), ("components", "allreduce-components.sources")]
)
def test_sources_of_ours_that_contradict_others_are_set_right_before_the_first_packages(name, goes, tmp_path):
    run = contradicting(tmp_path, name)

    assert run.status == 0, run.output
    assert removed(run) == [goes]
    done = [str(one["module"]).rpartition(".")[2] for one in run.executions]
    assert "file" in done


def test_sources_of_others_that_contradict_each_other_are_refused_with_their_files(tmp_path):
    run = contradicting(tmp_path, "foreign")

    assert run.status == 2, run.output
    said = re.sub(r"\s+", " ", run.output)
    assert "https://download.docker.com/linux/ubuntu/ jammy has different values of Signed-By in" in said
    assert "\x1b[31m" not in run.output
    assert re.search(r"in \S+/docker\.list and \S+/docker\.sources\. Keep one of these entries", said), run.output
    assert run.executions == []
