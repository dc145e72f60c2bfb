# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbook plan does for each further host that the inventory describes, counted in all of Ansible's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import cache

import pytest
import yaml

from tests.bench.plan import KINDS, inventory
from tests.support.command import CHECKOUT

# Appends a line for each call. Workers are forks, so that they inherit the open file and what is replaced here.
COUNTED = """
import importlib, os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND)

def count(module, owner, name):
    owner = getattr(importlib.import_module(module), owner)
    found = getattr(owner, name)
    def counted(*arguments, **options):
        os.write(log, (name + "\\n").encode())
        return found(*arguments, **options)
    setattr(owner, name, counted)

count("ansible.vars.manager", "VariableManager", "get_vars")
count("ansible.template", "Templar", "template")
if importlib.util.find_spec("ansible._internal._templating._engine"):
    count("ansible._internal._templating._engine", "TemplateEngine", "template")
count("yaml", "CSafeLoader", "get_single_data")
os.register_at_fork(after_in_child=lambda: os.write(log, b"fork\\n"))
from ansible.cli.playbook import main
main()
"""
FEW, MANY = 2 * len(KINDS), 12 * len(KINDS)


@pytest.fixture(scope="module")
def cost(tmp_path_factory):
    """Give what is counted in a run for so many hosts, each made once."""

    @cache
    def counted(hosts):
        directory = tmp_path_factory.mktemp(f"hosts-{hosts}")
        log, sources = directory / "log", directory / "inventory"
        log.touch()
        sources.mkdir()
        (sources / "hosts.yml").write_text(yaml.safe_dump(inventory(hosts)), encoding="utf-8")
        argv = [sys.executable, "-c", COUNTED, str(log), "playbooks/plan.yml", "-i", str(sources)]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg")}
        done = subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "stack.lock.yml" in os.listdir(sources)
        return Counter(log.read_text(encoding="utf-8").split())

    return counted


def test_a_further_host_costs_two_looks_at_its_variables(cost):
    """One is preflight's, one the plan's; Ansible itself looks at the variables of a host for each task of a play that is not run once."""
    few, many = cost(FEW), cost(MANY)
    assert few["get_vars"] > FEW
    grown = many - few
    templates = grown.pop("template", 0)
    assert grown == {"get_vars": 2 * (MANY - FEW)}
    assert (
        templates < MANY - FEW
    )  # not even one for each; Ansible's own, of tags, are some more or fewer from run to run
