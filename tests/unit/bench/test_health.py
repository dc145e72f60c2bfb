# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of gpu_health and gpu_facts is what Ansible runs on a node; and how much that is, counted."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.bench import health

# Prints how many files of this collection were compiled in the process that Ansible starts, and how many of its modules were imported.
COUNTED = """
import atexit, builtins, json, os, runpy, sys
real, ours, process = builtins.compile, [], os.getpid()
def counting(source, filename, *arguments, **more):
    if "allreduce/gpu/plugins/" in str(filename):
        ours.append(filename)
    return real(source, filename, *arguments, **more)
builtins.compile = counting
def tell():
    modules = [name for name in sys.modules if ".allreduce.gpu.plugins.module_utils." in name]
    print(json.dumps([len(ours), len(modules)]), file=sys.stderr)
atexit.register(tell)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# Files that Ansible packs; compiled on a node that knows them: the Ansible module, the module that finds what was kept, and
# the packages above it, each twice since Python 3.10; modules that are imported before the answer.
MOST = {"gpu_health": (72, 12, 58), "gpu_facts": (31, 12, 23)}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Return (the environment, {module: the file that Ansible runs}) on a node where each of them has run."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    place = tmp_path_factory.mktemp("node")
    programs = {name: health.packed(place, name, options) for name, options in health._node(place).items()}
    return health._environment(place), programs


def test_the_cpu_of_every_module_is_taken(node):
    """Which of them costs more is not asked: on a busy machine one run of each says nothing of it."""
    environment, programs = node
    times = health._each(programs, environment)
    assert set(times) == {"gpu_health", "gpu_facts", "empty"} and min(times.values()) > 0


@pytest.mark.parametrize("name", MOST)
def test_little_is_sent_compiled_and_imported(node, name):
    environment, programs = node
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(programs[name])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert health.ANSWERED[name](json.loads(done.stdout))
    compiled, imported = json.loads(done.stderr.splitlines()[-1])
    sent = [source for source in health.sources(programs[name]) if source.startswith("ansible_collections/allreduce/")]
    found = (len(sent), compiled, imported)
    assert all(count <= most for count, most in zip(found, MOST[name], strict=True)), found


@pytest.mark.parametrize(
    ("judged", "known", "good"),
    [([0.4, 0.3, 0.9], [0.35, 0.3, 0.4], True), ([0.6, 0.5, 0.4], [0.35, 0.3, 0.4], False), ([0.4, 0.4, 0.4], [0.6, 0.5, 0.6], False)],
    ids=["within both", "gpu_health beyond", "gpu_facts beyond"],
)  # fmt: skip
def test_the_medians_decide(monkeypatch, capsys, judged, known, good):
    times = {"gpu_health": judged, "gpu_facts": known, "empty": [0.3, 0.3, 0.2]}
    monkeypatch.setattr(health, "_times", lambda place, runs: times)
    assert health.measure(3) is good
    printed = capsys.readouterr().out
    assert ("beyond the empty module 0.100 (below 0.12)" in printed) is (judged[0] == 0.4)
    assert ("beyond the empty module 0.050 (below 0.08)" in printed) is (known[0] == 0.35)
