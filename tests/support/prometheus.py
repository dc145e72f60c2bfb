# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus' own programs on a developer's machine: from the PATH, or from the distribution's packages below .cache.

apt verifies what it downloads against the signed index of the distribution; nothing is installed, and no service starts.
"""

import fcntl
import functools
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "prometheus"
PACKAGES = {
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "amtool": "prometheus-alertmanager",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "prometheus-node-exporter": "prometheus-node-exporter",
}


@functools.cache
def program(name):
    """The path of a program; the test is skipped, with the reason, where there is no way to it."""
    found = shutil.which(name)
    if found:
        return found
    package = PACKAGES[name]
    place = CACHE / package
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:  # processes of one run of the tests
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "usr" / "bin" / name).exists():
            if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
                pytest.skip(f"{name} is not on the PATH, and there is no apt to fetch the package {package} with")
            _fetch(package, place)
    return str(place / "usr" / "bin" / name)


def _fetch(package, place):
    """Unpack the distribution's package below PLACE."""
    shown = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", package], capture_output=True, text=True, check=False
    )
    digest = re.search(r"^SHA256: (\w{64})$", shown.stdout, re.M)
    part = place.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    done = subprocess.run(["apt-get", "download", "-q", package], cwd=part, capture_output=True, text=True, check=False)
    files = list(part.glob("*.deb"))
    if done.returncode or not files or not digest:
        pytest.skip(f"the distribution does not offer {package}: {done.stderr.strip()[-200:]}")
    assert hashlib.sha256(files[0].read_bytes()).hexdigest() == digest[1], (
        f"{files[0].name} is not what the index names"
    )
    subprocess.run(["dpkg-deb", "-x", files[0], part], check=True)
    files[0].unlink()
    shutil.rmtree(place, ignore_errors=True)
    part.rename(place)


def promtool(*arguments, cwd=None):
    """promtool's exit status and what it printed."""
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_rules(place, rules, tests, interval="1m"):
    """promtool's answer to unit tests of a rule file, both given as values."""
    (place / "rules.json").write_text(json.dumps(rules), encoding="utf-8")
    file = {"rule_files": ["rules.json"], "evaluation_interval": interval, "tests": tests}
    (place / "tests.json").write_text(json.dumps(file), encoding="utf-8")
    return promtool("test", "rules", "tests.json", cwd=place)


test_rules.__test__ = False
