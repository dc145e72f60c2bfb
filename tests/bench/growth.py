# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What growth costs: a bare host's first converge compared with the same commands typed by hand, and what an added node downloads."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.lab import hosts, services, traffic
from tests.lab.demo import MACHINE, copy_settings
from tests.lab.podman import podman
from tests.lab.progress import say

from . import typed
from .measure import inventory_of, playbook, timed

LAB = "growth"
COLD = 4 << 20  # bytes; less is what an archive's indexes cost, which the cache asks for again each time

# Prints what is installed, as JSON. Runs on a host; its own packages and versions are all that counts, not how they came.
INSTALLED = r"""
import glob, json, subprocess
def lines(*argv):
    return sorted(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[:-1])
ask = "import importlib.metadata as m; [print(d.metadata['Name'], d.version) for d in m.distributions()]"
found = {"package": lines("dpkg-query", "-W", "-f", "${db:Status-Abbrev}${binary:Package} ${Version}\n")}
found["DKMS module"] = lines("dkms", "status")
for python in glob.glob("/opt/allreduce/envs/*/bin/python") + glob.glob("/opt/allreduce/uv/bin/python"):
    found["Python package in " + python.split("/")[-3]] = lines(python, "-c", ask)
print(json.dumps(found))
"""
# The same for files that `site` left: {path: {content}}.
READ = "import json, sys; print(json.dumps({p: {'content': open(p).read()} for p in json.load(sys.stdin)}))"


@dataclass(frozen=True)
class Case:
    """A bare host, and what `site` is told about it."""

    what: str
    machine: str
    use_mirror: bool = False
    options: tuple[str, ...] = ()
    horovod: bool = False


DEMO = Case("the demo's stack, whose driver is compiled", MACHINE)
# Its packages from NVIDIA's repository are stubs, which cost next to nothing: the ratio shows what is not packages.
EVERYTHING = Case(
    "everything, from stub packages", "dgx-a100", True, ("-e", f"@{Path(__file__).with_name('full_host.yml')}")
)


@dataclass(frozen=True)
class Built:
    """A host that was brought from bare to the stack: seconds, what is installed, what it downloaded."""

    wall: float
    cpu: float
    installed: Mapping[str, list[str]]
    downloaded: traffic.Traffic


def differences(ours: Mapping[str, list[str]], theirs: Mapping[str, list[str]]) -> list[str]:
    """Return the things that are installed on one side only, in words."""
    found = []
    for kind in sorted({*ours, *theirs}):
        site, hand = set(ours.get(kind, [])), set(theirs.get(kind, []))
        found += [f"{kind} {one}: only where site ran" for one in sorted(site - hand)]
        found += [f"{kind} {one}: only where it was typed" for one in sorted(hand - site)]
    return found


def measure(case: Case = DEMO) -> bool:
    """Print both tables; whether both sides ended with the same and nothing came from outside twice."""
    try:
        ours, script = _by_site(case)
        say("a node added to it")
        added = _added(case)
        hosts.down(LAB)
        hand = _by_hand(case, script)
    finally:
        hosts.down(LAB)
    differ = differences(ours.installed, hand.installed)
    print(converge_table(case.what, ours, hand, differ), end="\n\n")
    print(added_table(added), end="\n\n")
    return not differ and not added.fetched_again() and not added.packets[traffic.OUTSIDE]


def _by_site(case: Case) -> tuple[Built, str]:
    """Converge a bare host; its cost with warm caches, and the commands that do the same."""
    for last in (False, True):
        shutil.rmtree(inventory_of(LAB), ignore_errors=True)  # with the lock of an earlier plan
        inventory = up(case, 1)
        say("site on a bare host, recorded")
        seen, before = watch(inventory, f"{LAB}-1"), _cpu(f"{LAB}-1")
        with (
            tempfile.TemporaryDirectory() as sockets
        ):  # ssh must not take its connection to an earlier host of this address
            fresh = ("-e", f"ansible_control_path_dir={sockets}")
            cost = playbook("site", inventory, *case.options, *fresh, record=True)
        built = _built(f"{LAB}-1", cost.wall, cost.cpu + _cpu(f"{LAB}-1") - before, seen)
        if last or built.downloaded.outside < COLD:
            break
        say(
            f"{mega(built.downloaded.outside)} came from outside: once more on a bare host, now that the lab's caches have it"
        )
        hosts.down(LAB)
    actions = [action for action in cost.actions if action["host"] == f"{LAB}-1"]
    files = json.loads(_python(f"{LAB}-1", READ, json.dumps(typed.paths(actions))))
    return built, typed.script(actions, files)


def _by_hand(case: Case, script: str) -> Built:
    """Type it, on a host that has the other's name and address."""
    inventory = up(case, 1)
    say(f"the same typed by hand: {len(script.splitlines())} lines")
    seen, before = watch(inventory, f"{LAB}-1"), _cpu(f"{LAB}-1")
    common = _nodes(inventory)["vars"]
    argv = [
        "ssh", "-i", common["ansible_ssh_private_key_file"], *shlex.split(common["ansible_ssh_common_args"]), "-o", "BatchMode=yes",
        f"{common['ansible_user']}@{_nodes(inventory)['hosts'][f'{LAB}-1']['ansible_host']}", "cat > typed.sh && sudo sh -x typed.sh < /dev/null",
    ]  # fmt: skip
    done, wall, cpu = timed(argv, input=script)
    if done.returncode:
        raise RuntimeError(f"what was typed failed:\n{done.stderr[-3000:]}")
    return _built(f"{LAB}-1", wall, cpu + _cpu(f"{LAB}-1") - before, seen)


def _added(case: Case) -> traffic.Traffic:
    """Add a node to the converged one; what it downloads."""
    inventory = up(case, 2)
    seen = watch(inventory, f"{LAB}-2")
    playbook("site", inventory, *case.options)
    return seen.traffic()


def up(case: Case, count: int) -> Path:
    """Have the given number of hosts, those missing bare; the directory of their inventory."""
    inventory = inventory_of(LAB)
    hosts.up(LAB, count, inventory / "hosts.yml", case.machine, use_mirror=case.use_mirror, pythons=False)
    copy_settings(inventory, case.horovod)
    return inventory


def _nodes(inventory: Path) -> Any:
    return yaml.safe_load((inventory / "hosts.yml").read_text(encoding="utf-8"))["gpu_nodes"]


def watch(inventory: Path, host: str) -> traffic.Watch:
    """Count what a host gets from now on."""
    return traffic.Watch(host, _nodes(inventory)["hosts"][host]["ansible_host"])


def _built(host: str, wall: float, cpu: float, seen: traffic.Watch) -> Built:
    return Built(wall, cpu, json.loads(_python(host, INSTALLED)), seen.traffic())


def _cpu(host: str) -> float:
    """Return the CPU seconds of everything that ran in a host since its boot."""
    lines = podman("exec", host, "cat", "/sys/fs/cgroup/cpu.stat").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("usage_usec ")) / 1e6


def _python(host: str, program: str, given: str = "") -> str:
    return podman("exec", "--interactive", host, "python3", "-c", program, input_text=given)


def mega(size: int) -> str:
    """Return bytes in words."""
    return f"{size / 1e6:.1f} MB"


def converge_table(what: str, ours: Built, hand: Built, differ: list[str]) -> str:
    """Return the comparison of the first converge with the commands typed by hand."""
    same = ", ".join(f"{len(names)} × {kind}" for kind, names in ours.installed.items())
    lines = [
        f"The first converge of a bare host ({what}), in multiples of the same commands typed by hand",
        "",
        f"  {'wall time':42}{ours.wall / hand.wall:8.2f} ×",
        f"  {'CPU of host and controller':42}{ours.cpu / hand.cpu:8.2f} ×",
        f"  both ended with the same: {same}" if not differ else "  NOT the same installed:",
        *[f"    {one}" for one in differ],
    ]
    return "\n".join(lines)


def added_table(added: traffic.Traffic) -> str:
    """Return the table of what an added node got, and from where."""
    lines = [
        "What a node added to a converged cluster downloads",
        "",
        f"  {'source':26}{'served to it':>16}{'from outside':>16}",
        *[f"  {name:26}{mega(added.served(name)):>16}{mega(added.fetched(name)):>16}" for name in services.LOGS],
        f"  {'past all of them':26}{'':>16}{mega(added.packets[traffic.OUTSIDE]):>16}",
        f"  {'controller, over SSH':26}{mega(added.packets[traffic.CONTROLLER]):>16}",
        f"  {'the other node':26}{mega(added.packets[traffic.NEIGHBOURS]):>16}",
    ]
    again = added.fetched_again()
    held = (
        "nothing that the cache held"
        if not again
        else f"{len(again)} files that the cache held: {', '.join(again[:3])}"
    )
    return "\n".join([*lines, f"  from outside came {held}"])
