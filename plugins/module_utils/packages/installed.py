# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installed packages, the state of the package manager, and the archives it is told to use."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fnmatch
import re

from .apt_sources import read_entries

# Not "unattended-upgr": that daemon always waits for the shutdown; real upgrades run dpkg.
PACKAGE_PROGRAMS = ("dpkg", "apt", "apt-get", "aptitude")
BROKEN_STATES = ("half-installed", "unpacked", "half-configured")
ARCHIVE_COMPONENTS = {
    "debian": ("main", "contrib", "non-free", "non-free-firmware"),
    "ubuntu": ("main", "restricted", "universe", "multiverse"),
}


def os_release(tree):
    """Return the variables of /etc/os-release."""
    text = tree.text("/etc/os-release") or tree.text("/usr/lib/os-release") or ""
    pairs = [line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def package_manager(tree, release):
    """Return apt or dnf, by the family that os-release names; None for any other."""
    family = [release.get("ID", "")] + release.get("ID_LIKE", "").split()
    if set(family) & {"debian", "ubuntu"}:
        return "apt"
    if set(family) & {"rhel", "fedora", "centos"}:
        return "dnf"
    return None


def dpkg_stanzas(text):
    """Return (package, version, [want, flag, status]) of every stanza of dpkg's status file."""
    for stanza in re.split(r"\n\n+", text):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", stanza, re.M))
        if "Package" in fields:
            yield fields["Package"], fields.get("Version"), fields.get("Status", "").split()


def read_dpkg_leftovers(tree, patterns):
    """Return {package: version} of those that were removed and left their configuration."""
    wanted = matcher(patterns)
    stanzas = dpkg_stanzas(tree.text("/var/lib/dpkg/status") or "")
    return {name: version for name, version, status in stanzas if status[-1:] == ["config-files"] and wanted(name)}


def read_dpkg(tree, patterns):
    """Return ({installed package: version}, whether dpkg stopped half way and no process is at work)."""
    packages, broken = {}, bool([name for name in tree.names("/var/lib/dpkg/updates") if name.isdigit()])
    wanted = matcher(patterns)
    for name, version, status in dpkg_stanzas(tree.text("/var/lib/dpkg/status") or ""):
        state = status[-1] if status else ""
        broken = broken or state in BROKEN_STATES or "reinstreq" in status
        if wanted(name) and state in ("installed", "triggers-awaited", "triggers-pending"):
            packages[name] = version
    return packages, broken and not package_program_runs(tree)


def parse_rpm(text, patterns):
    """Return {name: version-release} from ``rpm -qa --qf '%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n'``.

    Epoch 0 is left out. Of several installed versions (kernels) the last one printed counts.
    """
    wanted = matcher(patterns)
    pairs = [line.split(" ", 1) for line in text.splitlines() if " " in line]
    return {name: version[2:] if version.startswith("0:") else version for name, version in pairs if wanted(name)}


def rpm_duplicates(text):
    """Return the names listed in two versions: what an upgrade leaves that was cut off. Kernels and keys always may."""
    versions = {}
    for line in text.splitlines():
        name, dummy, version = line.partition(" ")
        versions.setdefault(name, set()).add(version)
    several = [name for name, found in versions.items() if len(found) > 1]
    return sorted(name for name in several if not name.startswith(("kernel", "kmod-", "gpg-pubkey")))


def matcher(patterns):
    """Return a function of a name that tells whether any of the shell patterns matches it."""
    combined = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")
    return lambda name: combined.match(name) is not None


def package_program_runs(tree):
    for pid in tree.names("/proc"):
        if pid.isdigit() and tree.text("/proc/%s/comm" % pid) in PACKAGE_PROGRAMS:
            return True
    return False


def read_apt_mirrors(tree, release):
    """Return the entries {uri, suite, components, signed_by} of the distribution's own archive."""
    entries = [
        {key: entry[key] for key in ("uri", "suite", "components", "signed_by")}
        for _path, entry in read_entries(tree)
        if "deb" in entry["types"]
    ]
    distribution, codename = release.get("ID", ""), release.get("VERSION_CODENAME")
    known = set(ARCHIVE_COMPONENTS.get(distribution, ()))
    own = []
    for entry in entries:
        if re.split("[-/]", entry["suite"])[0] == codename and known & set(entry["components"]):
            if (_origin(tree, entry) or distribution).lower() == distribution:
                own.append(entry)
    return own


def _origin(tree, entry):
    """Return ``Origin`` of the Release file that apt has fetched for this entry, or None."""
    name = re.sub(r"^[a-z+]+:/*", "", entry["uri"]).rstrip("/").replace("/", "_")
    for kind in ("InRelease", "Release"):
        text = tree.text("/var/lib/apt/lists/%s_dists_%s_%s" % (name, entry["suite"].replace("/", "_"), kind))
        found = re.search(r"(?m)^Origin: *(.*)$", text or "")
        if found:
            return found.group(1)
    return None


def enabled_components(mirrors, release):
    """Return the components enabled for the release itself (not only for its updates), in archive order."""
    enabled = set()
    for entry in mirrors:
        if entry["suite"] == release.get("VERSION_CODENAME"):
            enabled.update(entry["components"])
    order = ARCHIVE_COMPONENTS.get(release.get("ID", ""), ())
    return [name for name in order if name in enabled] + sorted(enabled - set(order))
