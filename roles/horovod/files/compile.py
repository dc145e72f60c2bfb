# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compile the wheel that recipe.json next to this file describes. Role horovod runs it as root, with the environment's interpreter.

What comes from outside runs in a unit of its own: as a user who exists for that time only, who can write nothing but a private temporary
directory and reach no network. The wheel leaves the unit through its standard output, after a line with its name.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

UNIT = "allreduce-horovod"
SANDBOX = (
    "DynamicUser=yes", "PrivateNetwork=yes", "PrivateDevices=yes", "ProtectHome=yes", "ProtectKernelTunables=yes",
    "ProtectControlGroups=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "RestrictSUIDSGID=yes",
)  # fmt: skip
NAME = re.compile(rb"horovod-[A-Za-z0-9._+-]+\.whl\n")
GIB_PER_JOB = 2
HAS_NCCL = b"#if !__has_include(<nccl.h>)\n#error\n#endif\n"


def main():
    here = Path(__file__).resolve().parent
    recipe = json.loads((here / "recipe.json").read_text(encoding="utf-8"))
    lacks = missing(recipe["environment"])
    if lacks:
        sys.exit(lacks)
    if sys.argv[1:] == ["inside"]:
        compile_here(here, recipe)
    else:
        print(json.dumps(compile_in_unit(here, recipe)))


def missing(flags):
    """Return the part that a build for GPUs lacks on this host, and its role; None where it lacks nothing.

    CMake says neither in a line, and looks for NCCL only after minutes of other work.
    """
    if flags.get("HOROVOD_GPU") != "CUDA":
        return None
    nvcc = Path(flags["HOROVOD_CUDA_HOME"]) / "bin" / "nvcc"
    if not os.access(nvcc, os.X_OK):
        return f"there is no {nvcc}; install the CUDA toolkit first (--tags cuda_toolkit)"
    # Looked for as the compiler does. What the header itself includes does not count.
    argv = ["g++", "-E", f"-I{nvcc.parents[1] / 'include'}", "-x", "c++", "-"]
    asked = subprocess.run(argv, input=HAS_NCCL, capture_output=True, check=False)
    return "NCCL's header nccl.h is missing; install it first (--tags nccl)" if asked.returncode else None


def compile_in_unit(here, recipe):
    """Return {file, sha256} of the wheel; its checksum is written last, so one that was cut off is compiled again."""
    subprocess.run(["systemctl", "stop", UNIT], stderr=subprocess.DEVNULL, check=False)  # of a run that was cut off
    for left in here.glob("*.part"):
        left.unlink()
    handle, part = tempfile.mkstemp(dir=here, suffix=".part")
    log = here / "compile.log"
    os.close(handle)
    with Path(part).open("wb") as wheel, log.open("wb") as errors:
        status = subprocess.run(command(here, recipe), stdout=wheel, stderr=errors, check=False).returncode
    if status:
        Path(part).unlink()
        sys.exit(reason(log.read_text(encoding="utf-8", errors="replace"), status) + f"; all it said is in {log}")
    return keep(here, Path(part))


def command(here, recipe):
    """Return the command that compiles in a unit of its own."""
    properties = [*SANDBOX, f"RuntimeMaxSec={recipe['timeout']}"]
    return [
        "systemd-run", "--quiet", "--wait", "--collect", "--pipe", f"--unit={UNIT}",
        *(f"--property={one}" for one in properties), f"--setenv=JOBS={recipe['jobs'] or jobs()}",
        sys.executable, "-I", "-B", str(here / "compile.py"), "inside",
    ]  # fmt: skip


def jobs():
    """Return the number of compilers for which the host has processors and memory."""
    found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    room = int(found[1]) // (GIB_PER_JOB << 20) if found else 1
    return max(1, min(len(os.sched_getaffinity(0)), room))


def reason(log, status):
    """Return the reason why a compilation failed, from its output: the first error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    wrong = re.compile(r"\b(fatal error|error|Error)\b:|CMake Error|No space left|Killed")
    errors = [number for number, line in enumerate(lines) if wrong.search(line)]
    said = lines[errors[0]] if errors else lines[-1] if lines else "it said nothing"
    if errors and said.endswith(":"):  # CMake says where on one line, and what on the next
        said = " ".join(lines[errors[0] :][:2])
    return f"the compilation ended with {status} ({said.rstrip('.')})"


def keep(here, part):
    """Give the wheel its name, and write its checksum."""
    with part.open("rb") as stream:
        name = stream.readline(256)
        if not NAME.fullmatch(name):
            sys.exit("the compilation gave no wheel")
        wheel = here / name.decode().strip()
        with wheel.open("wb") as whole:
            shutil.copyfileobj(stream, whole)
            whole.flush()
            os.fsync(whole.fileno())
    part.unlink()
    if not zipfile.is_zipfile(wheel):
        sys.exit(f"the compilation gave a wheel that is none: {wheel}")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (here / "wheel.sha256").write_text(f"{digest}  {wheel.name}\n", encoding="utf-8")
    return {"file": wheel.name, "sha256": digest}


def compile_here(here, recipe):
    """Write the wheel to standard output; everything else that is said goes to standard error."""
    work = Path(tempfile.mkdtemp(dir="/var/tmp"))
    with tarfile.open(here / recipe["source"]["file"]) as archive:
        archive.extractall(work / "source", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202 (its checksum is the plan's)
    (source,) = (work / "source").iterdir()
    for name in recipe["source"]["standard_files"]:
        raise_standard(source / name, recipe["source"]["standard"], recipe["cxx_standard"])
    environment = {
        **os.environ, **recipe["environment"], "HOME": str(work), "TMPDIR": str(work), "PYTHONPATH": str(here / "tools"),
        "MAKEFLAGS": f"-j{os.environ.get('JOBS', '1')}",
    }  # fmt: skip
    arguments = [sys.executable, "-B", "setup.py", "bdist_wheel", "--dist-dir", str(work / "wheel")]
    status = subprocess.run(arguments, cwd=source, env=environment, stdout=sys.stderr, check=False).returncode
    if status:
        sys.exit(status)
    (wheel,) = (work / "wheel").glob("*.whl")
    sys.stdout.buffer.write(wheel.name.encode() + b"\n" + wheel.read_bytes())


def raise_standard(path, old, new):
    """Raise the C++ standard that a CMake file sets."""
    text = path.read_text(encoding="utf-8")
    raised, count = re.subn(rf"(\bCMAKE_CXX_STANDARD\s+){old}\b", rf"\g<1>{new}", text)
    if not count:
        sys.exit(f"Error: {path.name} sets no C++ standard {old}")
    path.write_text(raised, encoding="utf-8")


if __name__ == "__main__":
    main()
