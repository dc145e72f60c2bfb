# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the calls of ansible-core's modules for apt and dnf."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..documents.stack import Package


class Call(NamedTuple):
    """A module to run on the node. ``changes`` False: what it reports as a change was not asked for."""

    module: str
    arguments: dict[str, Any]
    changes: bool = True
    may_fail: bool = False


def _command(*argv: str, changes: bool = True, may_fail: bool = False) -> Call:
    return Call("ansible.builtin.command", {"argv": list(argv)}, changes, may_fail)


@dataclass(frozen=True)
class Apt:
    """apt; ``lock_timeout``: seconds to wait for another package manager."""

    lock_timeout: int
    recommends: bool | None = None  # None: as the host is configured

    def refresh(self) -> list[Call]:
        """Return the calls that read the repositories' indexes."""
        return [Call("ansible.builtin.apt", {"update_cache": True, "lock_timeout": self.lock_timeout}, changes=False)]

    def forget(self) -> list[Call]:
        """Return the calls that remove apt's lists, which it then fetches again.

        It does not write them through to the disk, and takes one that a power cut left empty or cut off for the current one.
        """
        places = ("/var/lib/apt/lists", "/var/cache/apt")
        return [
            _command("find", *places, "-maxdepth", "1", "-type", "f", "-not", "-name", "lock", "-delete", changes=False)
        ]

    def ask_why(self) -> list[Call]:
        """Return the calls with which apt itself says why an index cannot be read: the module often does not."""
        return [_command("apt-get", "update", changes=False)]

    def install(self, packages: Iterable[Package]) -> list[Call]:
        """Return one transaction. What conflicts goes with it; a failure leaves what was installed before."""
        arguments = {
            "name": [f"{package.name}={package.version}" if package.version else package.name for package in packages],
            "update_cache": True,
            "allow_downgrade": True,
            "lock_timeout": self.lock_timeout,
        }
        recommends = {} if self.recommends is None else {"install_recommends": self.recommends}
        return [Call("ansible.builtin.apt", {**arguments, **recommends})]

    def remove(self, names: Iterable[str]) -> list[Call]:
        """Return the calls that remove packages with their configuration."""
        arguments = {"name": list(names), "state": "absent", "purge": True, "lock_timeout": self.lock_timeout}
        return [Call("ansible.builtin.apt", arguments)]

    def pin(self, hold: str, patterns: Iterable[str], version: str) -> list[Call]:
        """Return the calls that make dependencies take a version; apt takes the newest of what is not named.

        The hold rewrites this file, whatever comes of the installation.
        """
        content = f"Package: {' '.join(patterns)}\nPin: version {version}\nPin-Priority: 1001\n"
        path = f"/etc/apt/preferences.d/allreduce-{hold}"
        return [Call("allreduce.gpu.config_files", {"files": [{"path": path, "content": content}]}, changes=False)]

    def repair(self) -> list[Call]:
        """Return the calls that finish an interrupted installation (a power cut, a killed run): nothing else can be installed before.

        The module's state ``fixed`` runs only when it is given packages that are not installed yet. What is held may be
        half of a driver, which cannot be kept as it is. Packages whose dependencies were not unpacked yet fail the first
        step and are left to the second, which judges the outcome.
        """
        quiet = ("env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l")
        options = ("--ignore-hold", "--allow-change-held-packages", f"--option=DPkg::Lock::Timeout={self.lock_timeout}")
        keep = ("--option=Dpkg::Options::=--force-confdef", "--option=Dpkg::Options::=--force-confold")
        configure = ("dpkg", "--force-confdef", "--force-confold", "--configure", "--pending")
        return [
            _command(*quiet, *configure, may_fail=True),
            _command(*quiet, "apt-get", "--yes", "--fix-broken", *options, *keep, "install"),
        ]

    def offered(self, names: Iterable[str]) -> Call:
        """Return the call that asks which of the packages a repository has."""
        return _command("apt-cache", "madison", *names, changes=False)

    def parse_offered(self, output: str) -> set[str]:
        """Return the names in the output of ``offered``."""
        return {line.split("|")[0].strip() for line in output.splitlines() if "|" in line}


@dataclass(frozen=True)
class Dnf:
    """dnf; fields as those of Apt."""

    lock_timeout: int
    recommends: bool | None = None
    module: str = "ansible.builtin.dnf"

    def refresh(self) -> list[Call]:
        """Return the calls that read the repositories' metadata.

        The key of signed metadata is taken from the file that the repository names; ansible.builtin.dnf refuses it, and
        no module accepts it. dnf itself waits for a lock without end.
        """
        return [_command("timeout", str(self.lock_timeout), "dnf", "--assumeyes", "makecache", changes=False)]

    def forget(self) -> list[Call]:
        """Return nothing: dnf compares its metadata with their checksums."""
        return []

    def ask_why(self) -> list[Call]:
        """Return nothing: dnf has said it already."""
        return []

    def install(self, packages: Iterable[Package]) -> list[Call]:
        """Return one transaction. What conflicts goes with it; a failure leaves what was installed before."""
        arguments = {
            "name": [f"{package.name}-{package.version}" if package.version else package.name for package in packages],
            "allow_downgrade": True,
            "allowerasing": True,
            "lock_timeout": self.lock_timeout,
        }
        recommends = {} if self.recommends is None else {"install_weak_deps": self.recommends}
        return [*self.refresh(), Call(self.module, {**arguments, **recommends})]

    def remove(self, names: Iterable[str]) -> list[Call]:
        """Return the calls that remove packages."""
        return [Call(self.module, {"name": list(names), "state": "absent", "lock_timeout": self.lock_timeout})]

    def pin(self, hold: str, patterns: Iterable[str], version: str) -> list[Call]:
        """Return nothing: dnf finds the versions of dependencies by itself."""
        return []

    def repair(self) -> list[Call]:
        """Return the calls that remove the older of packages that are there twice.

        rpm unpacks and configures a package in one step; packages in two versions are what a power cut leaves, and what another
        dnf has while it upgrades: it is waited for.
        """
        return [_command("timeout", str(self.lock_timeout), "dnf", "--assumeyes", "remove", "--duplicates")]

    def offered(self, names: Iterable[str]) -> Call:
        """Return the call that asks which of the packages, named with version and architecture, a repository has."""
        query = ("--qf", "%{name}-%{version}-%{release}.%{arch}")
        return _command("dnf", "--quiet", "repoquery", *query, *names, changes=False)

    def parse_offered(self, output: str) -> set[str]:
        """Return the names in the output of ``offered``."""
        return {line.strip() for line in output.splitlines() if line.strip()}


def manager_of(name: str | None, lock_timeout: int, recommends: bool | None, backend: str | None = None) -> Apt | Dnf:
    """Return apt or dnf by the name that module node_state gives it; backend: fact pkg_mgr, which tells dnf5 from dnf."""
    if name == "apt":
        return Apt(lock_timeout, recommends)
    if name == "dnf":
        module = "ansible.builtin.dnf5" if backend == "dnf5" else "ansible.builtin.dnf"
        return Dnf(lock_timeout, recommends, module)
    raise ValueError("packages are installed on hosts with apt or dnf, and this one has neither")
