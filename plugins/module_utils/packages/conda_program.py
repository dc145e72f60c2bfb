# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a program that installs conda's packages, and write its command lines.

micromamba and mamba 2 are one program. rattler is ours, around the library of that name: role python_env installs it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import re

from ..machine.problems import problem
from . import conda_lock

# The first releases that know a SHA-256 in an explicit lock: conda's CHANGELOG of 24.9.0 (#14048), mamba's of 2.1.0 (#3866).
OLDEST = {"conda": (24, 9), "mamba": (2, 1), "micromamba": (2, 1), "rattler": (0, 25)}
OWN = "/opt/allreduce/conda/bin"
RATTLER = "/opt/allreduce/conda/rattler/bin/rattler"
PLACES = (
    OWN,
    "/usr/local/bin",
    "/opt/miniforge3/bin",
    "/opt/miniforge/bin",
    "/opt/conda/bin",
    "/opt/micromamba/bin",
    "/root/miniforge3/bin",
    "/opt/miniconda3/bin",
    "/opt/anaconda3/bin",
)
NAMES = ("micromamba", "mamba", "conda")
LAST_LINES = 3
# rattler's names of errors.
CODES = {"SolverError": "conda_unsolvable", "GatewayError": "conda_unreachable"}


def candidates(named, on_path):
    """Return the paths to try, in their order; ``on_path``: function that finds a name in PATH, or None."""
    if named:
        return [named]
    found = [on_path(name) for name in NAMES]
    paths = [OWN + "/" + name for name in NAMES] + [path for path in found if path]
    paths += ["%s/%s" % (place, name) for place in PLACES for name in NAMES] + [RATTLER]
    return [path for number, path in enumerate(paths) if path not in paths[:number]]


def find(named, on_path, run):
    """Return ({kind, path, version}, problems) of the first program that is new enough; ``run``: see ansible_module.program_runner."""
    seen = []
    for path in candidates(named, on_path):
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            code, output = run([path, "--version"])
            program = parse_version(path, output) if code == 0 else None
            if program and _numbers(program["version"]) >= OLDEST[program["kind"]]:
                return program, []
            seen.append("%s (%s)" % (path, program["version"] if program else "does not answer"))
    if seen:
        return None, [problem("conda_program_old", ", ".join(seen))]
    return None, [problem("conda_program_missing", named or None)]


def parse_version(path, output):
    """Return {kind, path, version} of what ``--version`` prints, None where that is not a version.

    conda and rattler print their name before it, mamba 1 both names on two lines, micromamba and mamba 2 the number alone.
    """
    found = re.match(r"\s*(?:(conda|mamba|rattler) )?(\d+\.\d+[.\w+]*)", output)
    if found is None:
        return None
    name = os.path.basename(path)
    kind = found.group(1) or (name if name in ("mamba", "micromamba") else "micromamba")
    return {"kind": kind, "path": path, "version": found.group(2)}


def _numbers(version):
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def environment(program, cache, proxies):
    """Return the variables that the program has in its environment in addition to the module's own."""
    own = {
        "CONDA_PKGS_DIRS": cache,
        "CONDA_ADD_PIP_AS_PYTHON_DEPENDENCY": "false",
        "CONDA_NUMBER_CHANNEL_NOTICES": "0",
        "CONDA_REGISTER_ENVS": "false",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
    }
    if program["kind"] == "micromamba":
        own["MAMBA_ROOT_PREFIX"] = cache + "/root"
    return dict(proxies, **own)


def creation(program, prefix, lock):
    """Return the command that makes an environment of the packages in the file ``lock``, whose name ends with .txt."""
    if program["kind"] == "rattler":
        return [program["path"], "install", prefix, lock]
    return [program["path"], "create", "--yes", "--quiet", "--prefix", prefix] + _own(program) + ["--file", lock]


def solution(program, prefix, channels, specs):
    """Return the command that prints what would be installed, as JSON."""
    words = [program["path"], "create", "--yes", "--dry-run", "--json", "--prefix", prefix] + _own(program)
    words.append("--override-channels")
    if program["kind"] == "rattler":
        words = [program["path"], "solve"]  # which knows no other channels and makes nothing
    for channel in channels:
        words += ["--channel", channel]
    return words + list(specs)


def _own(program):
    """Return the options that keep a site's default packages, which no lock has, out of the environment."""
    return ["--no-default-packages"] if program["kind"] == "conda" else []


def read_solution(output, platform):
    """Return (lock, problems) of what the solution printed: its packages with their addresses and checksums."""
    answer = _json(output) or {}
    actions = answer.get("actions") or {}
    fetched, linked = actions.get("FETCH") or [], actions.get("LINK") or []
    addresses = {one["url"]: one.get("sha256") for one in linked + fetched if one.get("url")}
    lacking = sorted({one["name"] for one in linked} - {one["name"] for one in linked + fetched if one.get("url")})
    lacking += sorted(url for url, digest in addresses.items() if not digest)
    if lacking:
        return None, [problem("conda_solution_unchecked", lacking[0])]
    if not addresses:
        return None, [problem("conda_solution_empty")]
    return conda_lock.render(addresses, platform), []


def failure(program, status, output):
    """Return the problem of a program that failed."""
    name = (_json(output) or {}).get("exception_name") if program["kind"] == "rattler" else None
    if name in CODES:
        return problem(CODES[name], None, reason=reason(output))
    return problem("conda_failed", program["path"], status=status, reason=reason(output))


def reason(output):
    """Return the reason that the program gives for its failure: the message of its JSON, else its last lines."""
    answer = _json(output) or {}
    said = answer.get("message") or answer.get("error") or answer.get("solver_problems") or output
    lines = said if isinstance(said, list) else [line.strip() for line in said.splitlines() if line.strip()]
    return "; ".join(str(line) for line in lines[-LAST_LINES:]) or "it says nothing"


def _json(output):
    """Return the object in the output, before and after which programs print warnings."""
    try:
        found = json.loads(output[output.index("{") : output.rindex("}") + 1])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
