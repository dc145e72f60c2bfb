# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true on a converged host of any distribution."""

from fnmatch import fnmatch

import pytest


@pytest.fixture
def apt(os_release):
    """True on hosts of the Debian family; a replica of another one has both package managers."""
    return os_release["ID"] in ("debian", "ubuntu")


@pytest.fixture
def installed(host, apt):
    """{package: version} of all that is installed; rpm's versions as EPOCH:VERSION-RELEASE."""
    query = (
        r"dpkg-query -W -f '${db:Status-Abbrev}\t${Package}\t${Version}\n' | sed -n 's/^.i \t//p'"
        if apt
        else r"rpm -qa --queryformat '%{NAME}\t%|EPOCH?{%{EPOCH}}:{0}|:%{VERSION}-%{RELEASE}\n'"
    )
    return dict(line.split("\t") for line in host.check_output(query).splitlines() if "\t" in line)


def _matches(version, wanted):
    """A plan may leave the epoch, the release or all of it to the repository."""
    return wanted is None or any(
        fnmatch(text, pattern) for text in (version, version.partition(":")[2]) for pattern in (wanted, f"{wanted}.*")
    )


def test_installed_versions_equal_the_plan(installed, planned):
    assert planned
    wrong = {
        name: (installed.get(name), version)
        for name, version in planned.items()
        if not _matches(installed.get(name, ""), version)
    }
    assert wrong == {}


def test_no_other_branch_is_installed(installed, stack):
    named = {package["name"] for package in stack["driver"]["packages"]}
    others = [
        name
        for name, version in installed.items()
        if "nvidia" in name
        and name[-3:].isdigit()
        and name not in named
        and not name.endswith(stack["driver"]["branch"])
    ]
    assert others == []


def test_an_upgrade_moves_nothing_of_the_stack(host, apt, planned):
    if apt:
        host.check_output("apt-get -q update")
        said = host.check_output("apt-get --simulate dist-upgrade")
        moved = [line.split()[1] for line in said.splitlines() if line.startswith(("Inst", "Remv"))]
    else:
        said = host.run("dnf -q check-update").stdout
        moved = [line.split()[0].rpartition(".")[0] for line in said.splitlines() if line.strip()]
    assert not {
        name for name in moved if name in planned or "nvidia" in name or name.startswith(("cuda", "libcud", "libnccl"))
    }


def test_unattended_upgrade_leaves_the_stack_alone(host, apt):
    """unattended-upgrades; dnf-automatic is a `dnf upgrade` that nobody answers."""
    tried = "unattended-upgrade --dry-run --verbose 2>&1" if apt else "dnf --assumeno upgrade 2>&1; true"
    listed = [line for line in host.check_output(tried).splitlines() if "will be upgraded" in line or not apt]
    assert not [word for line in listed for word in line.split() if word.startswith(("nvidia", "libnvidia", "cuda"))]


def test_holds_win_over_newer_packages(host, apt, installed, planned):
    """apt: of every planned package the candidate is what is installed. dnf: every planned package is locked."""
    if not apt:
        locked = host.check_output("dnf -q versionlock list").splitlines()
        assert [name for name in planned if not any(line.startswith(f"{name}-") for line in locked)] == []
        return
    candidates, name = {}, None
    for line in host.check_output(f"apt-cache policy {' '.join(planned)}").splitlines():
        name = line[:-1] if line and not line.startswith(" ") else name
        if line.startswith("  Candidate:"):
            candidates[name] = line.split()[-1]
    assert candidates == {name: installed[name] for name in planned}


def test_the_loaded_driver_is_the_planned_one(gpu_node, stack):
    assert gpu_node["driver"]["nvml"] == "ok"
    loaded = gpu_node["driver"]["loaded_version"]
    if stack["driver"]["source"] == "distribution":  # its archive holds one version of a branch, and moves on
        assert loaded.startswith(stack["driver"]["branch"] + ".")
    else:
        assert loaded == stack["driver"]["version"]
    assert gpu_node["problems"] == []


def test_fabric_manager_runs_only_where_it_belongs(host, stack):
    service = host.service("nvidia-fabricmanager")
    assert service.is_running == bool(stack["fabric_manager"])
    assert not service.exists or service.is_enabled == bool(stack["fabric_manager"])


def test_persistence_daemon_runs(host):
    service = host.service("nvidia-persistenced")
    assert host.check_output("systemctl is-enabled nvidia-persistenced") == "enabled"
    assert service.is_running
    assert "--no-persistence-mode" not in host.check_output("systemctl show --property=ExecStart nvidia-persistenced")


def test_gpus_stay_initialised(gpu_node):
    assert {gpu["persistence_mode"] for gpu in gpu_node["gpus"]} == {True}


def test_nouveau_is_kept_away(host):
    assert "blacklist nouveau" in host.check_output(
        "cat /etc/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf 2>/dev/null; true"
    )


def test_repository_key_is_trusted_for_one_repository_only(host, apt, stack):
    if stack["repository"] is None:
        assert (
            host.run("ls /etc/apt/sources.list.d/allreduce-cuda.sources /etc/yum.repos.d/allreduce-cuda.repo").stdout
            == ""
        )
        return
    if apt:
        source = host.file("/etc/apt/sources.list.d/allreduce-cuda.sources").content_string
        assert "Signed-By: /etc/apt/keyrings/" in source
        assert host.check_output("ls /etc/apt/trusted.gpg.d/*cuda* /etc/apt/trusted.gpg 2>/dev/null; true") == ""
    else:
        source = host.file("/etc/yum.repos.d/allreduce-cuda.repo").content_string
        assert "gpgcheck=1" in source.replace(" ", "")
    assert "trusted=yes" not in source.replace(" ", "").lower()


def test_cuda_is_where_programs_look(host, stack):
    if stack["cuda"] is None:
        assert not host.file("/usr/local/cuda").exists
        return
    assert host.file("/usr/local/cuda").exists
    assert host.check_output("readlink -f /usr/local/cuda") == stack["cuda"]["home"]
    assert "/usr/local/cuda/bin" in host.check_output("bash -lc 'echo $PATH'")


def test_no_reboot_is_pending(host):
    assert not host.file("/var/lib/allreduce/reboot-pending").exists


@pytest.mark.parametrize("path", ["/etc/allreduce", "/var/lib/allreduce", "/opt/allreduce"])
def test_owner_and_mode(host, path):
    entry = host.file(path)
    assert (entry.user, entry.group, entry.mode) == ("root", "root", 0o755)


def test_nothing_is_world_writable(host):
    found = host.check_output(
        "find /etc /opt/allreduce /var/lib/allreduce -xdev -perm -0002 -not -type l -not -perm -1000 -print"
    )
    assert found == ""
