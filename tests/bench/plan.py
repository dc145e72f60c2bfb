# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tests.bench.plan`: what playbook plan costs for many hosts of five kinds, and what one resolve does."""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from . import mitogen

CHECKOUT = Path(__file__).resolve().parents[2]
LIMIT = 10  # seconds, for 1,000 hosts
KINDS = {
    "dgx": ({"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 8}, {"gpu_stack_profile": "pytorch-stable"}),
    "a40": ({"os": "ubuntu 20.04", "gpus": ["NVIDIA A40"] * 4}, {"gpu_stack_profile": "a40-ubuntu2004"}),
    "el8": (
        {"os": "rocky 8.10", "gpus": ["NVIDIA A100-SXM4-40GB"] * 4, "ansible_core": "2.16"},
        {"gpu_stack_profile": "a100-el8"},
    ),
    "debian": ({"os": "debian 12", "gpus": ["NVIDIA A40"]}, {"gpu_stack_request": {"driver": "535"}}),
    "hopper": (
        {"os": "ubuntu 24.04", "gpus": ["NVIDIA H100 80GB HBM3"] * 8},
        {"gpu_stack_request": {"pytorch": "latest", "tensorflow": "latest"}},
    ),
}


def inventory(count):
    """COUNT hosts, in a group of its own for every kind."""
    children = {}
    for number, (name, (host, constraints)) in enumerate(KINDS.items()):
        hosts = [f"{name}-{one:04}" for one in range(number, count, len(KINDS))]
        children[name] = {"hosts": dict.fromkeys(hosts), "vars": {"gpu_stack_host": host, **constraints}}
    return {"gpu_nodes": {"children": children}}


def plan(count, variables=None):
    """(wall, CPU) in seconds of the whole playbook, with more variables in its environment; fails where it fails."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "hosts.yml").write_text(yaml.safe_dump(inventory(count)), encoding="utf-8")
        program = Path(sys.executable).parent / "ansible-playbook"
        argv = [program, "playbooks/plan.yml", "-i", directory, "-e", "stack_lock="]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        environment = {**os.environ, **(variables or {})}
        done = subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
        wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def resolves():
    """CPU milliseconds of one resolve of each kind, the middle of seven, nothing remembered from before."""
    sys.path.insert(0, str(CHECKOUT / ".collections"))
    from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.judge import session_for
    from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

    found = {}
    for name, (host, constraints) in KINDS.items():
        question = {
            **host,
            "profile": constraints.get("gpu_stack_profile"),
            "request": constraints.get("gpu_stack_request"),
        }
        times = []
        for _attempt in range(7):
            session_for.cache_clear()
            begin = time.process_time()
            resolve(question)
            times.append((time.process_time() - begin) * 1000)
        found[name] = statistics.median(times)
    return found


def main():
    """Print the figures; 1 when a thousand hosts took too long."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plan")
    parser.add_argument("--hosts", type=int, action="append", help="may be repeated; 1000 where it is left out")
    return int(not measure(*(parser.parse_args().hosts or [1000])))


def measure(*counts):
    """Print what a resolve and the playbook cost; whether a thousand hosts were quick enough."""
    for name, milliseconds in resolves().items():
        print(f"  one resolve, {name:20}{milliseconds:8.1f} ms CPU")
    base_wall, base_cpu = plan(len(KINDS))
    print(f"  playbook plan, {len(KINDS):5} hosts      {base_wall:8.1f} s wall, {base_cpu:.1f} s CPU")
    good = True
    for count in counts:
        wall, cpu = plan(count)
        print(f"  playbook plan, {count:5} hosts      {wall:8.1f} s wall, {cpu:.1f} s CPU")
        good = good and (count > 1000 or cpu < LIMIT)
        wall, cpu = plan(count, mitogen.variables())
        print(f"  {'under Mitogen':>27}      {wall:8.1f} s wall, {cpu:.1f} s CPU")
    return good


if __name__ == "__main__":
    sys.exit(main())
