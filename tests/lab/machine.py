# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab changes of the machine's kernel, as it was before the first one: sysctls and firewall chains.

The hosts' systemd sets `fs.*`, as it would on a machine of its own, and netavark turns forwarding on, which changes more. All labs of a
machine share one record, made before the first starts anything; the last one that goes brings back what it says.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import paths
from .progress import say

PROC = Path("/proc/sys")
BRIDGES = Path("/sys/class/net")
AREAS = ("fs", "kernel", "net", "vm")
# These change by themselves.
LIVELY = re.compile(r"kernel/ns_last_pid|.*/neigh/.*|.*/random/.*")
# What podman makes and leaves without content; the first is a mount, the last are control groups.
FOLDERS = (
    "/run/netns", "/run/containers", "/run/runc", "/var/lib/containers", "/sys/fs/cgroup/libpod_parent", "/sys/fs/cgroup/unified/libpod_parent",
)  # fmt: skip
REMEMBERED = {"blob-info-cache-v1.boltdb", "ipam.db"}
TABLES = ("filter", "nat")
OURS = "NETAVARK"


def remember() -> None:
    """Record the machine, unless another lab of this boot did."""
    if _before().exists() and _read().get("boot") == _boot():
        return
    record = {
        "boot": _boot(), "sysctl": sysctls(), "firewall": _firewall(), "bridges": _bridges(),
        "folders": [folder for folder in FOLDERS if Path(folder).exists()],
    }  # fmt: skip
    part = _before().with_suffix(".part")  # an interrupted command leaves no half record
    part.write_text(json.dumps(record), encoding="utf-8")
    part.rename(_before())


def restore() -> None:
    """Bring back what was recorded, if no other lab needs it as it is."""
    if not _before().exists() or _others():
        return
    record = _read()
    if record.get("boot") == _boot():
        foreign = sorted(set(_bridges()) - set(record["bridges"]))
        if foreign:
            say(f"forwarding and the firewall's chains stay: {', '.join(foreign)} came while the lab was up")
        else:
            _restore_firewall(record["firewall"])
        _restore_sysctls(record["sysctl"], keep_forwarding=bool(foreign))
        for folder in FOLDERS:
            if folder not in record["folders"]:
                _remove_if_empty(Path(folder))
    _before().unlink()


def sysctls() -> dict[str, str]:
    """Return {path below /proc/sys: text} of every setting that can be read and written, and does not change by itself."""
    found = {}
    for area in AREAS:
        for directory, _directories, names in os.walk(PROC / area):
            for name in names:
                path = Path(directory, name)
                key = str(path.relative_to(PROC))
                # Interfaces come and go, with their settings; some settings can be written only.
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    if path.stat().st_mode & 0o600 == 0o600 and not LIVELY.fullmatch(key):
                        found[key] = path.read_text(encoding="utf-8").rstrip("\n")
    return found


def changes(before: dict[str, str], now: dict[str, str], keep_forwarding: bool) -> dict[str, str]:
    """Return {key: value} to write, in order: `ip_forward`, which sets many others, then `all` and `default`, then interfaces."""
    differ = [key for key, value in before.items() if key in now and now[key] != value]
    differ = [key for key in differ if not (keep_forwarding and _follows_forwarding(key))]
    return {key: before[key] for key in sorted(differ, key=_rank)}


def _rank(key: str) -> tuple[int, str]:
    general = any(part in key.split("/") for part in ("all", "default"))
    return (0 if key.endswith("/ip_forward") else 1 if general else 2), key


def _follows_forwarding(key: str) -> bool:
    return (
        key.endswith("ip_forward")
        or re.search(r"/conf/[^/]+/(forwarding|accept_redirects|send_redirects)$", key) is not None
    )


def _restore_sysctls(before: dict[str, str], keep_forwarding: bool) -> None:
    """Write what differs, and once more what that changed; say what was restored and what could not be."""
    changed = changes(before, sysctls(), keep_forwarding)
    _write(changed)
    _write(changes(before, sysctls(), keep_forwarding))
    left = changes(before, sysctls(), keep_forwarding)
    for what, keys in (("restored", [key for key in changed if key not in left]), ("could not restore", left)):
        if keys:
            say(f"{what} {', '.join(key.replace('/', '.') for key in keys)}")


def _write(values: dict[str, str]) -> None:
    for key, value in values.items():
        with contextlib.suppress(OSError):
            (PROC / key).write_text(value + "\n", encoding="utf-8")


def _firewall() -> dict[str, str]:
    """Return {table: what iptables-save says of it}; of a table that is not there, nothing."""
    saved = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    return {table: "".join(re.findall(rf"(?ms)^\*{table}$.*?^COMMIT\n", saved)) for table in TABLES}


def removals(table: str, before: str, now: str) -> list[list[str]]:
    """Return the arguments of iptables that remove netavark's chains which were not there before, and the rules that lead to them."""
    chains = [chain for chain in _chains(now) if chain.startswith(OURS) and chain not in _chains(before)]
    rules = [_words(line)[1:] for line in now.splitlines() if line.startswith("-A ")]
    jumps = [rule for rule in rules if rule[0] not in chains and "-j" in rule and rule[rule.index("-j") + 1] in chains]
    return [
        *(["-t", table, "-D", *rule] for rule in jumps),
        *(["-t", table, "-F", chain] for chain in chains),
        *(["-t", table, "-X", chain] for chain in chains),
    ]


def _chains(saved: str) -> list[str]:
    return [line[1:].split()[0] for line in saved.splitlines() if line.startswith(":")]


def _words(line: str) -> list[str]:
    return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]


def _restore_firewall(before: dict[str, str]) -> None:
    removed = []
    for table, now in _firewall().items():
        for argv in removals(table, before[table], now):
            if (
                subprocess.run(["iptables", "-w", *argv], capture_output=True, check=False).returncode == 0
                and argv[2] == "-X"
            ):
                removed.append(argv[3])
        # What iptables itself adds to the ruleset with its first chain; without nft an empty table stays, which does nothing.
        if not before[table] and shutil.which("nft") and not _is_used(table):
            subprocess.run(["iptables", "-w", "-t", table, "-X"], capture_output=True, check=False)
            subprocess.run(["nft", "delete", "table", "ip", table], capture_output=True, check=False)
    if removed:
        say(f"removed the firewall chains {', '.join(removed)}")


def _is_used(table: str) -> bool:
    saved = _firewall()[table]
    return any(line.startswith("-A") or re.match(r":\S+ (DROP|-)", line) for line in saved.splitlines())


def _bridges() -> list[str]:
    """Return the bridges that are not of a lab."""
    return sorted(path.parent.name for path in BRIDGES.glob("*/bridge") if not path.parent.name.startswith("arlab"))


def _others() -> list[str]:
    """Return the folders of other checkouts' labs."""
    return [str(path) for path in paths.RUN.parent.glob("allreduce-lab-*") if path.is_dir() and path != paths.RUN]


def _remove_if_empty(folder: Path) -> None:
    """Remove a folder that has nothing in it but what podman remembers for itself."""
    names = {name for _directory, _directories, names in os.walk(folder) for name in names}
    if folder.is_relative_to("/sys") or names <= REMEMBERED:
        if subprocess.run(["mountpoint", "-q", folder], check=False).returncode == 0:
            subprocess.run(["umount", folder], check=False)
        with contextlib.suppress(OSError):  # in use by another program after all
            for directory, _directories, names in os.walk(folder, topdown=False):
                for name in REMEMBERED.intersection(names):
                    os.unlink(os.path.join(directory, name))
                os.rmdir(directory)


def _before() -> Path:
    """Return the record of all checkouts."""
    return paths.RUN.parent / "allreduce-lab.json"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def _read() -> dict:
    return json.loads(_before().read_text(encoding="utf-8"))
