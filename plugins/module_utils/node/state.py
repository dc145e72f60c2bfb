# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the observed state of a node, as ``ansible_facts.gpu_node_state``."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..health.installed import read_installed
from ..host import (
    alternatives,
    cdi,
    driver_owner,
    fapolicyd,
    kernels,
    modprobe,
    nvml_binding,
    secure_boot,
    seen_files,
    selinux,
    services,
)
from ..packages import apt_sources, environments, hold_dnf, repositories
from ..packages import hold as package_hold
from ..packages import installed as installed_packages
from ..packages import locks as package_locks

RPM_QUERY = hold_dnf.QUERY
# What was there before the first change of a role is kept here in a file of its name, to be put back.
RECORDS = "/var/lib/allreduce"
# Of the kernel that runs: containers of one machine have the same.
BOOT = "/proc/sys/kernel/random/boot_id"


def read_node_state(tree, run, package_patterns, service_names, paths):
    """Return the whole state; run takes an argument list and returns the program's output, None where it cannot run."""
    release = installed_packages.os_release(tree)
    manager = installed_packages.package_manager(tree, release)
    listed = (run(RPM_QUERY) or "") if manager == "dnf" else ""
    kernel = kernels.read_kernels(tree, run, listed)
    dkms = kernels.read_dkms(tree)
    shown = run(services.SHOW + service_names) if service_names else None
    container = services.is_container(tree)
    seen = seen_files.read_seen(tree)
    state = {
        "boot_id": tree.text(BOOT),
        "kernel": kernel,
        "container": container,
        "driver_owner": driver_owner.read_driver_owner(tree, container),
        "fips": services.is_fips(tree),
        "package_manager": manager,
        "dkms": dkms,
        "driver": kernels.read_driver(tree, run, kernel, dkms),
        "secure_boot": secure_boot.read_secure_boot(tree, release),
        "selinux": selinux.read_selinux(tree),
        "fapolicyd": fapolicyd.read_fapolicyd(tree),
        "services": services.parse_show(shown, service_names) if shown else services.unknown_services(service_names),
        "cdi": cdi.read_specifications(tree),
        "kernel_modules": kernels.read_modules(tree),
        "modprobe_overrides": modprobe.read_overrides(tree),
        "disk_free_mib": services.disk_free_mib(tree, paths),
        "cuda_alternative": alternatives.read_alternative(tree, "cuda"),
        "nvml_binding": nvml_binding.read_binding(tree),
        "environments": environments.read_environments(tree),
        "environments_kept": environments.read_kept(tree),
        "files": seen,
        "files_changed": seen_files.changed(tree, seen),
        "health": read_installed(tree),
        "horovod_builds": environments.read_builds(tree),
        "uv": environments.read_uv(tree, run),
        "reboot_pending": services.read_reboot_pending(tree),
        "reboot_recorded": tree.exists("/var/lib/allreduce/reboot-pending"),
    }
    state.update(_packages(tree, release, manager, listed, package_patterns))
    records = [name[: -len(".json")] for name in tree.names(RECORDS) if name.endswith(".json")]
    return dict(state, records=records)


def _packages(tree, release, manager, listed, patterns):
    """Return the package manager's packages, its holds and its repositories."""
    installed, interrupted = _installed(tree, listed, manager, patterns)
    mirrors = installed_packages.read_apt_mirrors(tree, release) if manager == "apt" else None
    return {
        "packages": installed,
        "leftover_packages": installed_packages.read_dpkg_leftovers(tree, patterns) if manager == "apt" else {},
        "package_manager_interrupted": interrupted,
        "package_holds": package_hold.read_holds(tree, lambda query: listed if query == RPM_QUERY else None),
        "package_manager_holder": package_locks.lock_holder(tree),
        "apt_components": installed_packages.enabled_components(mirrors, release) if mirrors is not None else None,
        "apt_mirrors": mirrors,
        "apt_contradictions": apt_sources.contradictions(apt_sources.read_entries(tree)) if manager == "apt" else None,
        "dnf_repositories": repositories.read_dnf_repositories(tree) if manager == "dnf" else None,
    }


def _installed(tree, listed, manager, patterns):
    if manager == "apt":
        return installed_packages.read_dpkg(tree, patterns)
    if manager == "dnf":
        return installed_packages.parse_rpm(listed, patterns), bool(installed_packages.rpm_duplicates(listed))
    return {}, False
