# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four cases of the module as Ansible runs it, with the real dpkg and rpm on databases of their own."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.hold import read_holds
from ansible_collections.allreduce.gpu.plugins.modules import package_hold

COLLECTIONS = str(Path(package_hold.__file__).resolve().parents[2] / ".collections")
STANZA = (
    "Package: {0}\nStatus: {2} ok installed\nArchitecture: amd64\n{3}Version: {1}\nMaintainer: x\nDescription: x\n\n"
)
DRIVER = {"name": "driver", "packages": ["*nvidia*", "libcuda*"], "excluded": ["*nvidia-container*"]}

needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg"), reason="needs dpkg")
needs_rpm = pytest.mark.skipif(not shutil.which("rpm"), reason="needs rpm")


def run(root, check=False, **options):
    arguments = {**DRIVER, **options, "root": str(root), "_ansible_check_mode": check, "_ansible_diff": True}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.package_hold"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def debian(tmp_path):
    """A root with what dpkg keeps of four packages."""
    database = tmp_path / "var/lib/dpkg"
    (database / "updates").mkdir(parents=True)
    (database / "info").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    packages = [
        ("nvidia-utils-580", "580.65.06-0ubuntu1", "install", ""),
        ("libnvidia-compute-580", "580.65.06-0ubuntu1", "install", "Multi-Arch: same\n"),
        ("nvidia-container-toolkit", "1.18.0-1", "install", ""),
        ("linux-image-generic", "6.8.0-60", "install", ""),
        ("bash", "5.2", "hold", ""),
    ]
    (database / "status").write_text("".join(STANZA.format(*package) for package in packages))
    return tmp_path


def holds(root):
    text = (root / "var/lib/dpkg/status").read_text()
    return set(re.findall(r"Package: (\S+)\n(?:[^\n]+\n)*?Status: hold ", text))


def text(root, path):
    return (root / path).read_text() if (root / path).exists() else None


PINS = "etc/apt/preferences.d/allreduce-driver"
BLACKLIST = "etc/apt/apt.conf.d/61allreduce-hold-driver"
NEEDRESTART = "etc/needrestart/conf.d/allreduce-driver.conf"
RECORD = "var/lib/allreduce/holds/driver.json"


@needs_dpkg
def test_change(debian):
    result = run(debian, services=["nvidia-*"])
    assert result["changed"], result
    assert holds(debian) == {"nvidia-utils-580", "libnvidia-compute-580", "bash"}
    assert "Package: libnvidia-compute-580 nvidia-utils-580\nPin: version 580.65.06-0ubuntu1\n" in text(debian, PINS)
    assert '"^(?!(.*nvidia-container.*)$).*nvidia.*$";' in text(debian, BLACKLIST)
    assert "$nrconf{override_rc}{qr(^nvidia-.*$)} = 0;" in text(debian, NEEDRESTART)


@needs_dpkg
def test_change_in_check_mode(debian):
    result = run(debian, check=True)
    assert result["changed"] and result["selections"]["nvidia-utils-580"] == "hold"
    assert result["diff"][-1]["before_header"] == "dpkg selections"
    assert holds(debian) == {"bash"} and text(debian, PINS) is None


@needs_dpkg
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("options", [{}, {"kernel": True}, {"state": "released"}], ids=["held", "kernel", "released"])
def test_idempotent(debian, check, options):
    run(debian, **options)
    result = run(debian, check=check, **options)
    assert (result["changed"], result["changed_paths"], result["selections"], result["diff"]) == (False, [], {}, [])


@needs_dpkg
def test_what_dpkg_did_not_release_is_released_the_next_time(debian):
    """The kernel, which would get no security fixes any more; dpkg that waits for nothing ends before it reads all this."""
    kernels = [f"linux-image-6.8.0-{number}-generic" for number in range(60, 3060)]
    with open(debian / "var/lib/dpkg/status", "a") as stream:
        stream.writelines(STANZA.format(name, "6.8.0", "install", "") for name in kernels)
    run(debian, kernel=True)
    assert {"linux-image-generic", *kernels} < holds(debian)
    lock = debian / "var/lib/dpkg/lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    assert "dpkg does not accept the selections" in run(debian, lock_timeout=0)["msg"]
    lock.rmdir()
    run(debian)
    assert holds(debian) == {"nvidia-utils-580", "libnvidia-compute-580", "bash"}


def recorded(root):
    """What module node_state tells of the hold."""
    return read_holds(FileTree(str(root)), lambda _query: None).get("driver")


def rewrite(path, old, new):
    """What somebody else does to a file."""
    found = path.read_text()
    assert old in found
    path.write_text(found.replace(old, new))


@needs_dpkg
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("var/lib/dpkg/status", "Version: 580.65.06-0ubuntu1", "Version: 580.95.05-0ubuntu1"),
        ("var/lib/dpkg/status", "Status: hold ok installed", "Status: install ok installed"),
        ("var/lib/dpkg/status", "Package: bash", "Package: nvidia-settings"),
        (PINS, "Pin-Priority: 1001", "Pin-Priority: 100"),
        (BLACKLIST, "nvidia", "intel"),
        (NEEDRESTART, "0;", "1;"),
        (RECORD, '"*nvidia*"', '"bash"'),
        (RECORD, '"nvidia-*"', "7"),
        (RECORD, "kernel", "colonel"),
        (RECORD, "{", "["),
    ],
)
def test_the_record_tells_whether_the_hold_is_kept(debian, path, old, new):
    services = ["nvidia-*"]
    run(debian, check=True, services=services)
    assert recorded(debian) is None
    run(debian, services=services)
    assert recorded(debian) == {
        "packages": DRIVER["packages"],
        "excluded": DRIVER["excluded"],
        "services": services,
        "module_stream": None,
        "kernel": False,
        "kept": True,
    }
    rewrite(debian / path, old, new)
    assert not (recorded(debian) or {"kept": False})["kept"]
    run(debian, services=services)
    assert recorded(debian)["kept"]
    run(debian, state="released")
    assert recorded(debian) is None


@needs_dpkg
def test_release_lets_go_of_ours_and_of_what_somebody_held_by_hand(debian):
    run(debian)
    (debian / PINS).unlink()
    assert run(debian, state="released")["changed"]
    assert holds(debian) == {"bash"}
    assert (text(debian, PINS), text(debian, BLACKLIST)) == (None, None)


@needs_dpkg
def test_what_the_hold_no_longer_names_is_free_again(debian):
    run(debian, kernel=True)
    assert "linux-image-generic" in holds(debian)
    run(debian)
    assert "linux-image-generic" not in holds(debian)


@needs_dpkg
def test_the_blacklist_means_what_the_patterns_mean(debian):
    run(debian)
    expressions = re.findall(r'"(.*)";', text(debian, BLACKLIST))
    for name, skipped in [("nvidia-utils-580", 1), ("libcuda1", 1), ("nvidia-container-toolkit", 0), ("bash", 0)]:
        assert any(re.match(expression, name) for expression in expressions) == bool(skipped), name


@pytest.fixture
def el(tmp_path):
    """A root with an empty RPM database, the plugin, and a lock that somebody else set."""
    for path in ("etc/dnf/plugins", "etc/dnf/modules.d", "var/lib/rpm"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text('ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    (tmp_path / "etc/dnf/plugins/versionlock.conf").write_text(
        "[main]\nenabled = 1\nlocklist = /etc/dnf/plugins/versionlock.list\n"
    )
    (tmp_path / "etc/dnf/plugins/versionlock.list").write_text("bash-0:4.4.20-4.el8.*\n")
    return tmp_path


STREAM = "etc/dnf/modules.d/nvidia-driver.module"


@needs_rpm
@pytest.mark.skipif(os.geteuid() != 0, reason="rpm --root needs root")
def test_a_stream_is_enabled_once(el):
    assert run(el, check=True, module_stream="nvidia-driver:580-open")["changed"]
    assert text(el, STREAM) is None
    assert run(el, module_stream="nvidia-driver:580-open")["changed"]
    assert "stream=580-open\n" in text(el, STREAM)
    (el / STREAM).write_text(text(el, STREAM).replace("profiles=", "profiles=default"))
    assert not run(el, module_stream="nvidia-driver:580-open")["changed"]
    assert run(el, module_stream="nvidia-driver:535-dkms")["changed_paths"] == [str(el / STREAM), str(el / RECORD)]
    assert text(el, "etc/dnf/plugins/versionlock.list") == "bash-0:4.4.20-4.el8.*\n"


def test_an_unknown_system_is_refused(tmp_path):
    result = run(tmp_path)
    assert result["failed"] and "apt or dnf" in result["msg"]
