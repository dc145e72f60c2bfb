# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observed state of a node: fact gpu_node_state (module node_state) as a value.

None stands for what could not be measured; it is never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """Kernels by release, such as 6.1.0-40-amd64, oldest first."""

    running: str | None = None
    installed: tuple[str, ...] = ()  # empty in a container
    headers: tuple[str, ...] = ()
    newest: str | None = None
    next_boot: str | None = None  # what the boot loader starts next; None where it does not tell: then it is the newest
    partial: tuple[str, ...] = ()  # without their packages of modules, such as the network's
    driver_modules: dict[str, bool | None] = field(
        default_factory=dict
    )  # whether modprobe finds NVIDIA's under a kernel


@dataclass(frozen=True)
class DkmsBuild:
    """One version of a DKMS module for one kernel."""

    module: str
    version: str
    kernel: str | None = None
    arch: str | None = None
    status: str = "added"  # added | built | installed


@dataclass(frozen=True)
class InstalledDriver:
    """Versions of the NVIDIA kernel module: loaded now, and what the next boot would load."""

    loaded: str | None = None
    installed: str | None = None


@dataclass(frozen=True)
class DriverOwner:
    """Another owner of the node's driver."""

    code: str  # wsl | container | dgx_os | azure_hpc | google_dlvm | lambda_stack
    name: str


@dataclass(frozen=True)
class SecureBoot:
    """Secure Boot: whether the kernel loads signed modules only, and whether it trusts the key that DKMS signs with."""

    enforced: bool | None = None
    shim: bool = False  # without it no key can be enrolled at the console
    certificate: str = ""  # path of the key's certificate
    fingerprint: str | None = None  # SHA-256 of the certificate; None where there is none yet
    key: str | None = None  # enrolled | pending | unknown; None where there is none yet


@dataclass(frozen=True)
class Boolean:
    """A switch of SELinux's policy: as it is, and as it will be when what was written is committed."""

    active: bool = False
    pending: bool = False


@dataclass(frozen=True)
class Selinux:
    """SELinux of a node that has it."""

    mode: str | None = None  # enforcing | permissive | disabled; None where the kernel does not tell
    configured: str | None = None  # for the next boot; None where the configuration does not tell
    booleans: dict[str, Boolean] = field(default_factory=dict)


@dataclass(frozen=True)
class Fapolicyd:
    """The daemon fapolicyd of a node that has it; None for what only root can read."""

    active: bool = False
    permissive: bool | None = None  # it writes down what it would deny
    rules: str | None = None  # our file: absent | different | equal
    loaded: bool | None = None  # whether the compiled rules have ours
    others: bool | None = None  # whether rules or trust of another tool name our directory


@dataclass(frozen=True)
class Service:
    """State of a systemd unit; None where systemd could not be asked."""

    enabled: bool | None = None
    active: bool | None = None
    outdated: bool | None = None  # its files have changed since systemd read them


@dataclass(frozen=True)
class KernelModule:
    """A module of the kernel: whether it is loaded, and whether systemd loads it at boot."""

    loaded: bool = False
    at_boot: bool = False


@dataclass(frozen=True)
class ModprobeLine:
    """Another tool's line that gives a module another value than a file of ours, and is read later."""

    file: str
    line: int
    module: str
    parameter: str
    value: str
    ours: str


@dataclass(frozen=True)
class Lock:
    """The result of role frameworks: the digest of the request, every package with its version, and the digest of the text."""

    request: str | None = None
    packages: dict[str, str | None] = field(default_factory=dict)  # None where a URL is pinned
    digest: str | None = None  # of the whole text


@dataclass(frozen=True)
class Conda:
    """conda's packages in an environment, as "version build", and those of its explicit lock."""

    complete: bool = True  # False where an installation was interrupted
    packages: dict[str, str] = field(default_factory=dict)
    locked: dict[str, str] | None = None
    changed_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """A Python environment below /opt/allreduce/envs."""

    python: str | None = None
    packages: dict[str, str | None] = field(default_factory=dict)
    lock: Lock | None = None
    changed_files: dict[str, str] = field(
        default_factory=dict
    )  # a file of each package that is not as it was installed
    home: str | None = None  # directory of the interpreter that it was made with; None for one that conda made
    horovod: str | None = None  # digest of the build of Horovod that role horovod installed
    conda: Conda | None = None
    target: str | None = None  # where its link leads; None where it is a directory itself


@dataclass(frozen=True)
class Kept:
    """An environment that was verified, in use or not: its directory, and the digest of what was asked for."""

    directory: str
    name: str
    request: str | None = None


@dataclass(frozen=True)
class Wheel:
    """A wheel that was compiled, in the node's cache."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Reboot:
    """A reboot that is due: one that a role recorded, or one the distribution asks for after an upgrade of its own."""

    reason: str | None = None
    by_role: bool = True
    since: Any = None  # ISO 8601 text, or seconds since the epoch
    code: str | None = None  # of drift/reboot.py, where a role recorded it


@dataclass(frozen=True)
class Process:
    """The process that holds the package manager's lock."""

    pid: int
    program: str = ""


@dataclass(frozen=True)
class Hold:
    """A hold as module package_hold was told it, and whether packages and files still are as it left them."""

    packages: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    module_stream: str | None = None
    kernel: bool = False
    kept: bool = False


@dataclass(frozen=True)
class AptSource:
    """One suite of the distribution's archive."""

    uri: str
    suite: str
    components: tuple[str, ...] = ()
    signed_by: str | None = None


@dataclass(frozen=True)
class Observed:
    """A node as it is. ``measured`` is False where nothing is known about it."""

    measured: bool = True
    kernel: Kernel = field(default_factory=Kernel)
    container: bool | None = None
    boot_id: str | None = None  # of the kernel that runs: nodes with the same one share a machine
    driver_owner: DriverOwner | None = None
    package_manager: str | None = None
    packages: dict[str, str | None] | None = None
    leftover_packages: dict[str, str | None] = field(default_factory=dict)
    package_manager_interrupted: bool | None = None
    package_manager_holder: Process | None = None
    package_holds: dict[str, Hold] = field(default_factory=dict)
    apt_components: tuple[str, ...] | None = None
    apt_mirrors: tuple[AptSource, ...] | None = None
    dkms: tuple[DkmsBuild, ...] | None = None
    driver: InstalledDriver | None = None
    secure_boot: SecureBoot = field(default_factory=SecureBoot)
    selinux: Selinux | None = None  # Debian and Ubuntu have none
    fapolicyd: Fapolicyd | None = None  # where it is installed
    services: dict[str, Service] = field(default_factory=dict)
    cdi: dict[str, str | None] = field(default_factory=dict)  # specification: version of the driver that it is for
    kernel_modules: dict[str, KernelModule] | None = None  # those that a service of ours may need
    modprobe_overrides: tuple[ModprobeLine, ...] = ()
    disk_free_mib: dict[str, int] = field(default_factory=dict)
    environments: dict[str, Environment] | None = None
    files: dict[str, str] = field(default_factory=dict)  # that roles wrote: what is there now
    files_changed: dict[str, str] = field(default_factory=dict)  # of those that are not so any more: what was asked for
    environments_kept: tuple[Kept, ...] = ()  # those that were in use last first
    horovod_builds: dict[str, Wheel] = field(default_factory=dict)  # by the digest of their build
    reboot_pending: Reboot | None = None
    reboot_recorded: bool = False
    records: tuple[str, ...] = ()  # names of subjects: what was there before the first change can be put back

    @property
    def has_run(self) -> bool:
        """Return True if a role of this collection has ever recorded anything on the node."""
        return bool(self.files or self.package_holds or self.records)
