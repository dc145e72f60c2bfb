# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.gpu PREFIX`: plan, facts, health, verify, benchmark and report of this machine; installs and changes nothing on it."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from .check import from_packages, refusal

CHECKOUT = Path(__file__).resolve().parents[2]
PLACE = CHECKOUT / ".cache" / "gpu"
# A machine that others installed is seldom what this collection would have chosen: that is a finding, and no reason to stop.
GOES_ON = {"verify"}


def main() -> int:
    """Run every step; return 1 where one could not do its work."""
    parser = argparse.ArgumentParser(prog="make gpu", description=__doc__)
    parser.add_argument("prefix", nargs="?", default="", help="of an environment with PyTorch")
    parser.add_argument(
        "--request",
        type=json.loads,
        help="gpu_stack_request as JSON (default: the driver that is loaded, no environment)",
    )
    parser.add_argument("--benchmark", type=shlex.split, default=[], help="arguments of benchmark.py, as one text")
    parser.add_argument(
        "--without-gpu", action="store_true", help="go on without a GPU, to try the way: the processor is measured"
    )
    args = parser.parse_args()
    reason = refusal(args.prefix, args.without_gpu)
    if reason:
        print(reason, file=sys.stderr)
        return 1
    PLACE.mkdir(parents=True, exist_ok=True)
    content = inventory(args.prefix, args.request or request(), args.benchmark)
    (PLACE / "hosts.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return run(steps(), environment())


def run(commands: dict[str, list[str]], variables: dict[str, str]) -> int:
    """Run the steps one after the other."""
    for name, command in commands.items():
        print(f"== {name}", flush=True)
        status = subprocess.run(command, cwd=PLACE, env=variables, check=False).returncode
        if status and name not in GOES_ON:
            print(f"make gpu stopped at step {name}; its output above says why.", file=sys.stderr)
            return 1
    print(f"What was measured is in {PLACE / 'reports'}.")
    return 0


def steps() -> dict[str, list[str]]:
    """Return the commands, by name."""
    playbooks = {name: CHECKOUT / "playbooks" / f"{name}.yml" for name in ("plan", "verify", "benchmark", "report")}
    order = {"plan": playbooks["plan"], "facts and health": Path(__file__).with_name("facts.yml"), **playbooks}
    more = {"plan": ["-e", "plan_measure=true"]}
    base = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(PLACE / "hosts.yml")]
    return {name: [*base, str(path), *more.get(name, [])] for name, path in order.items()}


def inventory(prefix: str, wanted: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """Return an inventory of this machine, reached without SSH, as the user who runs this."""
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,  # it has pynvml, whatever the machine has
        "ansible_become": False,
        "gpu_cluster_address": "127.0.0.1",
        "gpu_stack_request": wanted,
        "stack_lock": str(PLACE / "stack.lock.yml"),
        "stack_lock_renew": True,
        "report_directory": str(PLACE / "reports"),
        "verify_user": getpass.getuser(),
        "verify_collectives": False,  # the benchmark runs them
        "verify_network": False,
        "benchmark_env": prefix,
        "benchmark_supervised": False,
        "benchmark_args": arguments,
    }
    return {"gpu_nodes": {"hosts": {platform.node() or "localhost": host}}}


def request(module: Path = Path("/sys/module/nvidia/version")) -> dict[str, str]:
    """Return the request to plan for: the driver that is loaded, and no environment, since the one named is the user's."""
    try:
        version = module.read_text(encoding="ascii").strip()
    except OSError:
        version = ""
    branch = version.partition(".")[0]
    if not branch.isdigit():
        return {"pytorch": "none"}
    if from_packages():
        return {"driver": branch, "pytorch": "none"}
    print(f"Driver {version} is not from packages: it is taken as it is, and what uses it is judged.")
    return {"driver_source": "vendor", "pytorch": "none"}


def environment() -> dict[str, str]:
    """Return the variables with which Ansible finds this checkout, and no other configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return {
        **kept,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "PWD": str(PLACE),
    }


if __name__ == "__main__":
    sys.exit(main())
