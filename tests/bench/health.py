# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module gpu_health costs on a node with eight GPUs, beyond a module that does nothing: CPU of the processes themselves.

Both run from a zip archive, as Ansible brings modules: what is in it is compiled on each run, and what the node has, pynvml too, is not.
"""

import json
import os
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path

import ansible

from tests.lab.nvml import machines, recording
from tests.lab.nvml.drive_faults import drives, smart_log

from .measure import timed

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS = 15
LIMIT = 0.15  # seconds of CPU
COLLECTION = "ansible_collections/allreduce/gpu"
MODULE = "ansible_collections.allreduce.gpu.plugins.modules.gpu_health"
EMPTY = """
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={})
module.exit_json(changed=False)
"""


def measure(runs=RUNS):
    """Print the medians of both and their difference; whether that is within the limit."""
    with tempfile.TemporaryDirectory() as folder:
        health, empty = _times(Path(folder), runs)
    beyond = statistics.median(health) - statistics.median(empty)
    print(f"gpu_health on 8 simulated H100 and 8 recorded NVMe drives, {runs} runs, in seconds of CPU")
    for name, times in (("gpu_health", health), ("a module that does nothing", empty)):
        print(f"  {name:28}median {statistics.median(times):.3f}  least {min(times):.3f}  most {max(times):.3f}")
    print(f"  {'beyond it':28}       {beyond:.3f}  (below {LIMIT})")
    return beyond < LIMIT


def _times(place, runs):
    """Return the CPU of each run of both, taken in turns, since the machine's load changes."""
    machine = machines.hgx_h100()
    for number, gpu in enumerate(machine.gpus):
        machine = machine.change(number, settings=(*gpu.settings, ("persistence_mode", "1")))
    machine = machine.with_files(drives(**{f"nvme{number}": smart_log() for number in range(8)}))
    recording.record(machine, place)
    library = recording.build_library(place / "libnvidia-ml.so.1")
    (place / "kmsg").touch()
    options = {"kernel_log": place / "kmsg", "sysfs_root": place / "sys", "procfs_root": place / "proc",
               "root": place / "root", "nvml_library": library, "gpu_count": len(machine.gpus)}  # fmt: skip
    health = _command(place, "health", ["-m", MODULE], {key: str(value) for key, value in options.items()})
    (place / "empty.py").write_text(EMPTY, encoding="utf-8")
    empty = _command(place, "empty", [str(place / "empty.py")], {})
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"SIMULATED_NVML": str(place / "profile"), "PYTHONPATH": str(_archive(place / "modules.zip")),
                    "PYTHONPYCACHEPREFIX": str(place / "compiled")}  # fmt: skip
    _both(health, empty, environment)  # compiles what the node has
    return zip(*(_both(health, empty, environment) for dummy in range(runs)), strict=True)


def _archive(place):
    """Return an archive of the collection's modules and of Ansible's part that runs on nodes."""
    files = {**_sources(CHECKOUT / "plugins", f"{COLLECTION}/plugins", ("modules", "module_utils")),
             **_sources(Path(ansible.__file__).parent, "ansible", ("module_utils",))}  # fmt: skip
    packages = {parent for target in files for parent in Path(target).parents} - {Path()}
    empty = {str(package / "__init__.py"): b"" for package in packages}
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for target, content in {**empty, **files}.items():
            archive.writestr(target, content)
    return place


def _sources(folder, target, parts):
    found = [source for part in parts for source in sorted((folder / part).rglob("*.py"))]
    return {f"{target}/{source.relative_to(folder)}": source.read_bytes() for source in found}


def _both(health, empty, environment):
    return _cpu(health, environment, "ok"), _cpu(empty, environment, None)


def _command(place, name, program, options):
    arguments = place / f"{name}.json"
    arguments.write_text(
        json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_remote_tmp": str(place)}}), encoding="utf-8"
    )
    return [sys.executable, *program, str(arguments)]


def _cpu(argv, environment, verdict):
    done, _wall, cpu = timed(argv, env=environment)
    if done.returncode or json.loads(done.stdout).get("verdict") != verdict:
        raise RuntimeError(f"not the expected verdict: {done.stdout[-500:]}{done.stderr[-500:]}")
    return cpu


if __name__ == "__main__":
    sys.exit(not measure(*map(int, sys.argv[1:])))
