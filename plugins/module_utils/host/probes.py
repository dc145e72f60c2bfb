# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try out what files cannot tell: run the driver's tool, the frameworks, and SSH to the other nodes. Changes nothing."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from ..machine.child import GRACE

# Of nvmlReturn_t (nvml.h), which are the exit codes of nvidia-smi.
NVML_NOT_FOUND, NVML_DRIVER_NOT_LOADED, NVML_VERSION_MISMATCH = 6, 9, 18
ENVIRONMENTS = "/opt/allreduce/envs"
SSH = [
    "ssh",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=8",
    "-o",
    "StrictHostKeyChecking=yes",
    "-o",
    "ControlPath=none",
]
# Runs in an environment's own interpreter; prints one JSON object in a line, before and after which packages print what they like.
IMPORTS = """
import glob, importlib, json, os, subprocess, sys
PROGRAMS = ("/usr/bin/mpirun", "/usr/lib64/openmpi/bin/mpirun", "/opt/openmpi/bin/mpirun", "/usr/local/bin/mpirun")
def answer(ask):
    try:
        return ask()
    except Exception:
        return None
def libraries(torch):
    nccl = answer(lambda: torch.cuda.nccl.version())
    return {
        "cuda": torch.version.cuda,
        "cudnn": answer(torch.backends.cudnn.version),
        "nccl": list(nccl) if isinstance(nccl, tuple) else None,
    }
def build_of_horovod():
    from horovod.common import util
    # Each loads the library in a process of its own, which a damaged one ends.
    has = lambda ask, *given: bool(answer(lambda: ask(*given)))
    # horovod.torch can be imported where it was not compiled, and counts as available then.
    compiled = lambda name: glob.glob(os.path.join(os.path.dirname(util.__file__), os.pardir, name, "mpi_lib*.so"))
    return {
        "frameworks": [one for one in ("torch", "tensorflow", "mxnet") if compiled(one) and has(util.extension_available, one)],
        "controllers": [name for name in ("mpi", "gloo") if has(getattr(util, name + "_built"))],
        "operations": [name for name in ("nccl", "ddl", "ccl", "mpi", "gloo") if has(getattr(util, name + "_built"))],
    }
def mpi(mpi4py):
    # Imported, it would start to communicate.
    mpi4py.rc.initialize = False
    program = next((path for path in PROGRAMS if os.access(path, os.X_OK)), None)
    # Enterprise Linux has its Open MPI in a directory of its own.
    beside = sorted(glob.glob(os.path.dirname(os.path.dirname(program)) + "/lib/libmpi.so.*")) if program else []
    if beside:
        os.environ.setdefault("MPI4PY_LIBMPI", beside[0])
    try:
        from mpi4py import MPI
    except RuntimeError as error:  # with a line for each name that it has tried
        raise RuntimeError(str(error).split("\\n")[0])
    said = answer(lambda: subprocess.check_output([program, "--version"], universal_newlines=True)) if program else None
    return {"library": MPI.Get_library_version().split(",")[0].strip("\\0\\n "), "launcher": said and said.split("\\n")[0]}
answers = {}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        answers[name] = {"version": str(getattr(module, "__version__", ""))}
        if name == "torch":
            answers[name].update(cuda_available=module.cuda.is_available(), device_count=module.cuda.device_count())
            answers[name]["libraries"] = libraries(module)
        if name == "horovod":
            answers[name]["build"] = build_of_horovod()
        if name == "mpi4py":
            answers[name].update(mpi(module))
    except BaseException as error:
        answers[name] = {"error": "%s: %s" % (type(error).__name__, error)}
print("\\n" + json.dumps(answers))
"""


def run(arguments, timeout=60, user=None):
    """Return (exit code, lines of both outputs); the exit code is None where the program did not run to its end."""
    environment = dict(os.environ, LC_ALL="C.UTF-8", LANG="C.UTF-8")
    try:
        process = subprocess.Popen(
            as_user(arguments, user),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return None, ["%s does not start: %s" % (arguments[0], error.strerror)]
    try:
        output = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        kill(process)
        return None, ["%s took longer than %d seconds" % (arguments[0], timeout)]
    return process.returncode, [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]


def kill(process):
    """Kill a program and its children; those that the kernel does not let go, or that left its session, are left behind."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        process.stdout.close()


def as_user(arguments, user):
    """Return the command, run as the user: root steps down to them, any other user runs it as itself."""
    return ["runuser", "-u", user, "--"] + arguments if user and os.geteuid() == 0 else arguments


def known_user(user):
    try:
        pwd.getpwnam(user)
    except KeyError:
        return None
    return user


def user_number(user):
    """Return the number of a user, None without one; root is never the training user: all that root does would be training."""
    try:
        return pwd.getpwnam(user).pw_uid or None
    except (KeyError, TypeError):
        return None


def home_of(user):
    """Return the home directory of a user, None without one."""
    try:
        return pwd.getpwnam(user).pw_dir
    except (KeyError, TypeError):
        return None


def probe_nvidia_smi():
    """Return {``exit_code``, ``lines``} and what ``parse_nvidia_smi`` makes of them."""
    code, lines = run(["nvidia-smi", "-L"])
    return dict(parse_nvidia_smi(code, lines), exit_code=code, lines=lines[:64])


def parse_nvidia_smi(code, lines):
    """Return {``state``, ``count``: number of GPUs} of the exit code and output of ``nvidia-smi -L``.

    The states are ``listed``, ``no_device``, ``no_driver``, ``version_mismatch``, ``not_started`` (it did not run to its
    end) and ``failed``. The exit codes are NVML's, but some releases end with another one and say the same.
    """
    text = " ".join(lines)
    count = len([line for line in lines if re.match(r"GPU \d+: ", line)])
    if code is None:
        state = "not_started"
    elif code == NVML_NOT_FOUND or re.search(r"No devices (were )?found", text):
        state = "no_device"
    elif code == NVML_DRIVER_NOT_LOADED or "couldn't communicate with the NVIDIA driver" in text:
        state = "no_driver"
    elif code == NVML_VERSION_MISMATCH or "Driver/library version mismatch" in text:
        state = "version_mismatch"
    else:
        state = "listed" if code == 0 else "failed"
    return {"state": state, "count": count}


def probe_clock():
    """Return True if the kernel's clock follows a time server; None where systemd cannot tell."""
    code, lines = run(["timedatectl", "show", "--property=NTPSynchronized", "--value"], timeout=15)
    return {"yes": True, "no": False}.get(lines[0]) if code == 0 and lines else None


def probe_environment(name, modules, user, root=None):
    """Return {module: {``version`` or ``error``, …}}, or {``error``} where the interpreter does not get that far."""
    python = "%s/%s/bin/python" % (root or ENVIRONMENTS, name)
    if not os.path.exists(python):
        return {"error": "there is no %s" % python}
    code, lines = run([python, "-B", "-c", IMPORTS] + modules, timeout=240, user=user)
    for line in reversed(lines):
        answers = _read_answers(line)
        if answers is not None and set(answers) == set(modules):
            return answers
    return {"error": "%s ended with %s: %s" % (python, code, lines[-1] if lines else "no output")}


def _read_answers(line):
    """Return the answers for modules in a line of output; None where it has none."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else None


def resolve(name):
    """Return the addresses that the node itself finds for a name, sorted."""
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(name, None)})
    except (socket.error, UnicodeError):
        return []


def probe_peer(name, address, user):
    """Return {``address``, ``resolved``, ``ssh``: None when it works, else why not}, or ``reason`` instead of ``ssh``.

    Where SSH works, ``clock`` says how far the peer's clock is ahead, see ``clock_ahead``.
    """
    answer = {"address": address, "resolved": resolve(name)}
    account = known_user(user)
    if account is None:
        return dict(answer, reason="there is no user %s on this node" % user)
    before = time.time()
    code, lines = run(SSH + [name, "date", "+%s.%N"], timeout=30, user=account)
    if code != 0:
        return dict(answer, ssh=lines[-1] if lines else "ssh ended with %s" % code)
    return dict(answer, ssh=None, clock=clock_ahead(lines, before, time.time()))


def clock_ahead(lines, before, after):
    """Return {``least``, ``most``}: seconds that a clock is ahead which was read at some time between the two.

    lines: what was printed around ``date +%s.%N``; None where it is not among them.
    """
    found = [line for line in lines if re.match(r"\d+\.\d{9}$", line)]
    if not found:
        return None
    return {"least": round(float(found[-1]) - after, 3), "most": round(float(found[-1]) - before, 3)}


def probe_peers(peers, user):
    """Probe all other nodes, a few at a time."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        answers = {name: pool.submit(probe_peer, name, address, user) for name, address in peers.items()}
        return {name: answer.result() for name, answer in answers.items()}
