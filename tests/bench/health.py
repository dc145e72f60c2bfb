# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules gpu_health and gpu_facts cost on a node with eight GPUs, beyond a module that does nothing: CPU of the processes themselves.

All run from a zip archive, as Ansible brings modules: what is in it is compiled on each run, and what the node has, pynvml too, is not.
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
LIMITS = {"gpu_health": 0.15, "gpu_facts": 0.25}  # seconds of CPU beyond the module that does nothing
COLLECTION = "ansible_collections/allreduce/gpu"
MODULES = "ansible_collections.allreduce.gpu.plugins.modules"
ANSWERED = {
    "gpu_health": lambda answer: answer["verdict"] == "ok",
    "gpu_facts": lambda answer: len(answer["ansible_facts"]["gpu_node"]["gpus"]) == 8,
    "empty": lambda answer: answer["changed"] is False,
}
EMPTY = """
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={})
module.exit_json(changed=False)
"""


def measure(runs=RUNS):
    """Print the medians and what is beyond the module that does nothing; whether that is within the limits."""
    with tempfile.TemporaryDirectory() as folder:
        times = _times(Path(folder), runs)
    nothing = statistics.median(times["empty"])
    beyond = {module: statistics.median(times[module]) - nothing for module in LIMITS}
    print(f"modules on 8 simulated H100 and 8 recorded NVMe drives, {runs} runs, in seconds of CPU")
    for name, taken in times.items():
        limit = f"  beyond the empty module {beyond[name]:.3f} (below {LIMITS[name]})" if name in LIMITS else ""
        print(f"  {name:12}median {statistics.median(taken):.3f}  least {min(taken):.3f}  most {max(taken):.3f}{limit}")
    return all(beyond[module] < limit for module, limit in LIMITS.items())


def _times(place, runs):
    """Return the CPU of each run of each module, taken in turns, since the machine's load changes."""
    machine = machines.hgx_h100()
    for number, gpu in enumerate(machine.gpus):
        machine = machine.change(number, settings=(*gpu.settings, ("persistence_mode", "1")))
    machine = machine.with_files(drives(**{f"nvme{number}": smart_log() for number in range(8)}))
    recording.record(machine, place)
    library = recording.build_library(place / "libnvidia-ml.so.1")
    (place / "kmsg").touch()
    node = {"sysfs_root": place / "sys", "procfs_root": place / "proc", "nvml_library": library}
    judged = {**node, "root": place / "root", "kernel_log": place / "kmsg", "gpu_count": len(machine.gpus)}
    (place / "empty.py").write_text(EMPTY, encoding="utf-8")
    commands = {"gpu_health": _command(place, "gpu_health", ["-m", f"{MODULES}.gpu_health"], judged),
                "gpu_facts": _command(place, "gpu_facts", ["-m", f"{MODULES}.gpu_facts"], node),
                "empty": _command(place, "empty", [str(place / "empty.py")], {})}  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"SIMULATED_NVML": str(place / "profile"), "PYTHONPATH": str(_archive(place / "modules.zip")),
                    "PYTHONPYCACHEPREFIX": str(place / "compiled")}  # fmt: skip
    _each(commands, environment)  # compiles what the node has
    rounds = [_each(commands, environment) for dummy in range(runs)]
    return {name: [taken[name] for taken in rounds] for name in commands}


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


def _each(commands, environment):
    return {name: _cpu(argv, environment, name) for name, argv in commands.items()}


def _command(place, name, program, options):
    options = {key: value if isinstance(value, int) else str(value) for key, value in options.items()}
    arguments = place / f"{name}.json"
    arguments.write_text(
        json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_remote_tmp": str(place)}}), encoding="utf-8"
    )
    return [sys.executable, *program, str(arguments)]


def _cpu(argv, environment, name):
    done, _wall, cpu = timed(argv, env=environment)
    if done.returncode or not ANSWERED[name](json.loads(done.stdout)):
        raise RuntimeError(f"not what {name} answers here: {done.stdout[-500:]}{done.stderr[-500:]}")
    return cpu


if __name__ == "__main__":
    sys.exit(not measure(*map(int, sys.argv[1:])))
