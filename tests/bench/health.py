# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules gpu_health and gpu_facts cost on a node with one GPU, beyond a module that does nothing: CPU of the processes themselves.

All run as Ansible brings them to a node: packed by Ansible itself, unpacked and run as the file that it writes there.
"""

import base64
import io
import json
import os
import re
import statistics
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

from tests.lab.nvml import machines, recording
from tests.lab.nvml.drive_faults import drives, smart_log

from .measure import timed

CHECKOUT = Path(__file__).resolve().parents[2]
RUNS = 15
LIMITS = {"gpu_health": 0.12, "gpu_facts": 0.08}  # seconds of CPU beyond the module that does nothing
ANSWERED = {
    "gpu_health": lambda answer: answer["verdict"] == "ok",
    "gpu_facts": lambda answer: len(answer["ansible_facts"]["gpu_node"]["gpus"]) == 1,
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
    print(f"modules on a simulated H100 and 8 recorded NVMe drives, {runs} runs, in seconds of CPU")
    for name, taken in times.items():
        limit = f"  beyond the empty module {beyond[name]:.3f} (below {LIMITS[name]})" if name in LIMITS else ""
        print(f"  {name:12}median {statistics.median(taken):.3f}  least {min(taken):.3f}  most {max(taken):.3f}{limit}")
    return all(beyond[module] < limit for module, limit in LIMITS.items())


def _times(place, runs):
    """Return the CPU of each run of each module, taken in turns, since the machine's load changes."""
    environment = _environment(place)
    programs = {name: packed(place, name, options) for name, options in _node(place).items()}
    _each(programs, environment)  # compiles what is compiled once
    rounds = [_each(programs, environment) for dummy in range(runs)]
    return {name: [taken[name] for taken in rounds] for name in programs}


def _node(place):
    """Make a node; return the options of each module on it."""
    machine = machines.hgx_h100()
    machine = replace(machine, gpus=(replace(machine.gpus[0], settings=(("persistence_mode", "1"),)),))
    machine = machine.with_files(drives(**{f"nvme{number}": smart_log() for number in range(8)}))
    recording.record(machine, place)
    library = recording.build_library(place / "libnvidia-ml.so.1")
    (place / "kmsg").touch()
    (place / "library").mkdir()
    (place / "library" / "empty.py").write_text(EMPTY, encoding="utf-8")
    node = {"sysfs_root": str(place / "sys"), "procfs_root": str(place / "proc"), "nvml_library": str(library)}
    judged = {**node, "root": str(place / "root"), "kernel_log": str(place / "kmsg"), "gpu_count": len(machine.gpus)}
    return {"gpu_health": judged, "gpu_facts": node, "empty": {}}


def packed(place, name, options):
    """Return the file that Ansible writes to a node for a module, which it has run once."""
    arguments = ["-a", json.dumps(options)] if options else []
    module = name if name == "empty" else f"allreduce.gpu.{name}"
    variables = {**_environment(place), "ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_PIPELINING": "0"}
    variables |= {"ANSIBLE_REMOTE_TMP": str(place / "remote" / name), "ANSIBLE_LIBRARY": str(place / "library")}
    python = f"ansible_python_interpreter={sys.executable}"
    argv = [
        str(Path(sys.executable).with_name("ansible")),
        "localhost",
        "-i",
        "localhost,",
        "-c",
        "local",
        "-e",
        python,
        "-m",
        module,
        *arguments,
    ]
    done, _wall, _cpu = timed(argv, env=variables, cwd=CHECKOUT)
    found = list((place / "remote" / name).glob("*/AnsiballZ_*"))
    if done.returncode or len(found) != 1:
        raise RuntimeError(f"Ansible did not run {name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return found[0]


def sources(program):
    """Return {name: bytes} of what Ansible brings in a packed module."""
    data = re.search(r"(?i)zip_?data = ?(?:b?'|b?\")+([A-Za-z0-9+/=]+)|zip_data='([^']+)'", program.read_text("utf-8"))
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(data.group(1) or data.group(2)))) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def _environment(place):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return environment | {
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "ANSIBLE_NOCOLOR": "1",
        "SIMULATED_NVML": str(place / "profile"),
    }


def _each(programs, environment):
    return {name: _cpu([sys.executable, str(program)], environment, name) for name, program in programs.items()}


def _cpu(argv, environment, name):
    done, _wall, cpu = timed(argv, env=environment)
    if done.returncode or not ANSWERED[name](json.loads(done.stdout)):
        raise RuntimeError(f"not what {name} answers here: {done.stdout[-500:]}{done.stderr[-500:]}")
    return cpu


if __name__ == "__main__":
    sys.exit(not measure(*map(int, sys.argv[1:])))
