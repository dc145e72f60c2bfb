# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host through the driver's branches and back: nothing of the one before is left, and the hold goes along."""

import json
import re
import time
from dataclasses import dataclass
from fnmatch import fnmatch

import pytest
from cluster import CORE_216, KEEP, Cluster

pytestmark = pytest.mark.lab

ROUND = ("535", "550", "580", "535")


@dataclass(frozen=True)
class Way:
    """Options of the lab's hosts, where the driver comes from, and the branches one after another."""

    options: tuple
    branches: tuple = ROUND
    source: str = "nvidia"
    machine: str = "dgx-a100"


WAYS = {
    "ubuntu2204": Way(("--distribution", "ubuntu2204")),
    "rocky8": Way(("--distribution", "rocky8")),
    "debian12": Way(("--distribution", "debian12", "--mirror")),
    # Debian's real packages, compiled on the host; without NVSwitch, as the archive has no fabric manager.
    "debian12-archive": Way(("--distribution", "debian12"), ("470", "535"), "distribution", "a40-pcie"),
}
STEPS = [
    pytest.param(name, step, id=f"{name}-{step}-to-{branch}")
    for name, way in WAYS.items()
    for step, branch in enumerate(way.branches)
]
OF_DRIVER = re.compile(
    r"nvidia|fabric-?manager|^cuda-drivers|^libcuda1|^libcudadebugger|^libnvsdm|^libnvoptix|^libnvcuvid"
)
DRIVER_VERSION = re.compile(r"(?:\d+:)?\d{3}\.\d")


class Apt:
    """What a host with apt says about its packages."""

    def __init__(self, ask):
        self.ask = ask

    def packages(self):
        """{name: version} of every package that dpkg knows more than the name of, removed ones included."""
        lines = self.ask(r"dpkg-query -W -f '${Package}\t${Version}\n'").splitlines()
        return dict(line.split("\t") for line in lines if not line.endswith("\t"))

    def held(self):
        return set(self.ask("apt-mark showhold | sed s/:.*//").split())

    def pinned(self):
        """{name: version} of the preferences."""
        found = {}
        stanzas = self.ask(
            "cat /etc/apt/preferences.d/allreduce-driver; cat /etc/apt/preferences.d/allreduce-fabric-manager 2>/dev/null; true"
        )
        for names, version in re.findall(r"Package: (.*)\nPin: version (.*)\nPin-Priority: 1001\n", stanzas):
            found.update(dict.fromkeys(names.split(), version))
        return found

    def spared(self, name):
        """Whether unattended-upgrades leaves a package alone."""
        listed = re.findall(r'Package-Blacklist:: "(.*)";', self.ask("apt-config dump Unattended-Upgrade"))
        return any(re.match(expression, name) for expression in listed)

    def moved(self):
        self.ask("apt-get -q update")
        said = self.ask("apt-get --simulate dist-upgrade")
        return {line.split()[1] for line in said.splitlines() if line.startswith(("Inst", "Remv"))}

    def lacking(self, names):
        """Files of packages that are not there."""
        return self.ask(f"dpkg --verify {' '.join(names)} | grep ^missing; true")

    def streams(self):
        return None


class Dnf:
    """The same of a host with dnf."""

    def __init__(self, ask):
        self.ask = ask

    def packages(self):
        lines = self.ask(r"rpm -qa --qf '%{NAME}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\n'").splitlines()
        return {name: version.removeprefix("0:") for name, version in (line.split("\t") for line in lines)}

    def held(self):
        return set(self.pinned())

    def pinned(self):
        lines = self.ask("cat /etc/dnf/plugins/versionlock.list").splitlines()
        locks = [re.fullmatch(r"(\S+?)-(\d+:[^-]+-\S+)\.\*", line) for line in lines if not line.startswith("#")]
        return {lock[1]: lock[2].removeprefix("0:") for lock in locks}

    def spared(self, name):
        return name in self.held()

    def moved(self):
        return {line.split(".")[0] for line in self.ask("dnf -q check-update; true").splitlines() if line.strip()}

    def lacking(self, names):
        return self.ask(f"rpm --verify --nodeps {' '.join(names)} | grep ^missing; true")

    def streams(self):
        """Enabled streams of the driver's module, as dnf understands its files."""
        return re.findall(r"(?m)^nvidia-driver +(\S+) (?:\[d\])?\[e\]", self.ask("dnf -q module list nvidia-driver"))


class System:
    """One host on its way through the branches."""

    def __init__(self, name, looks):
        self.way = WAYS[name]
        self.cluster = Cluster(f"branches-{name}", 1, *self.way.options, "--machine", self.way.machine)
        self.host = self.cluster.hosts[0]
        self.looks = looks
        self.manager = Dnf(self.ask) if name == "rocky8" else Apt(self.ask)
        if name == "rocky8":
            self.cluster.programs = CORE_216

    def ask(self, command):
        return self.cluster.on(self.host, command)

    def play(self, branch, reboot_allowed=True):
        """What a user does for a branch. (run, what the host is then)."""
        wanted = {
            "gpu_stack_request": {"driver": branch, "driver_source": self.way.source},
            "stack_lock_renew": True,
            "nvidia_driver_reboot_allowed": reboot_allowed,
            "branches_directory": str(self.looks),
        }
        run = self.cluster.play("tests/scenarios/branches.yml", "-e", json.dumps(wanted))
        assert run.status == 0, run.output[-8000:]
        return run, json.loads((self.looks / f"{self.host}.json").read_text(encoding="utf-8"))

    def driver_packages(self):
        """{name: version} of what moves with the driver."""
        packages = self.manager.packages()
        return {
            name: packages[name] for name in packages if OF_DRIVER.search(name) and DRIVER_VERSION.match(packages[name])
        }


@pytest.fixture(scope="module", params=list(WAYS))
def system(request, tmp_path_factory):
    """A bare host of one distribution with a simulated DGX A100, removed at the end."""
    if request.param == "rocky8" and not CORE_216.is_dir():
        pytest.skip(f"{CORE_216} is not there: `nox -s scenarios_all` makes it")
    made = System(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    if not KEEP:
        made.cluster.down()


@pytest.mark.parametrize(("system", "step"), STEPS, indirect=["system"])
def test_switch(system, step):
    branch = system.way.branches[step]
    _run, seen = system.play(branch)
    plan = seen["plan"]
    assert plan["driver"]["branch"] == branch
    assert_only_the_planned_driver(system, plan)
    assert_modules_are_of(system, plan["driver"]["version"])
    assert_held(system, plan)
    assert_at_work(system, seen)
    again, seen = system.play(branch)
    assert again.recap[system.host]["changed"] == 0, again.output
    assert_at_work(system, seen)


def foreign(plan, packages):
    """Those of another version than the plan's; the archive's helpers have a version of their own."""
    planned = {package["name"]: package["version"] for package in plan["driver"]["packages"]}
    return {
        name: version
        for name, version in packages.items()
        if DRIVER_VERSION.match(version)
        and plan["driver"]["version"] not in version
        and not fnmatch(version, planned.get(name) or "")
    }


def assert_only_the_planned_driver(system, plan):
    """Every package of a driver that is there, or was and left files, is of the planned version."""
    packages = system.driver_packages()
    assert foreign(plan, packages) == {}
    assert system.manager.lacking(packages) == ""
    for part in ("driver", "fabric_manager"):
        assert {package["name"] for package in (plan[part] or {"packages": []})["packages"]} <= set(packages)
    if system.manager.streams() is not None:
        assert system.manager.streams() == [plan["driver"]["module_stream"]]


def assert_modules_are_of(system, version):
    """DKMS, sources and built modules know one version."""
    known = system.ask("cd /var/lib/dkms && find . -mindepth 2 -maxdepth 2 -type d -path './nvidia*'").split()
    assert [path.rpartition("/")[2] for path in known] == [version]
    sources = system.ask("find /usr/src -maxdepth 1 -name 'nvidia*[0-9]'").split()
    assert [path for path in sources if not path.endswith(version)] == []
    built = system.ask(
        "find /lib/modules -name 'nvidia*.ko*' | while read -r file; do modinfo -F version $file; done | sort -u"
    )
    assert built.split() == [version]


def assert_held(system, plan):
    packages, manager = system.driver_packages(), system.manager
    pins = manager.pinned()
    assert {name: pins.get(name) for name in packages} == packages
    assert foreign(plan, pins) == {}
    assert set(packages) <= manager.held()
    assert [name for name in packages if not manager.spared(name)] == []
    assert manager.moved() & (set(packages) | set(pins)) == set()


def assert_at_work(system, seen):
    driver, version = seen["node"]["driver"], seen["plan"]["driver"]["version"]
    assert (driver["nvml"], driver["loaded_version"]) == ("ok", version)
    assert seen["health"]["verdict"] == "ok", seen["health"]
    fabric_manager = ["nvidia-fabricmanager"] if seen["plan"]["fabric_manager"] else []
    for service in ("nvidia-persistenced", *fabric_manager):
        assert system.ask(f"systemctl is-active {service}; true").strip() == "active", service
    assert system.ask("ls /var/lib/allreduce/reboot-pending 2>/dev/null; true") == ""


@pytest.mark.parametrize("system", ["ubuntu2204"], indirect=True, scope="module")
def test_switch_without_a_reboot(system):
    """The run ends well, the need is on record until the host has restarted."""
    before = system.play("535")[1]["plan"]["driver"]["version"]
    run, seen = system.play("550", reboot_allowed=False)
    version = seen["plan"]["driver"]["version"]
    pending = json.loads(system.ask("cat /var/lib/allreduce/reboot-pending"))
    assert pending["reason"] == f"driver {before} is loaded, {version} is installed"
    assert seen["health"]["verdict"] == "reboot_required", seen["health"]
    assert seen["node"]["driver"]["loaded_version"] == before
    assert_only_the_planned_driver(system, seen["plan"])
    assert_held(system, seen["plan"])

    again, _seen = system.play("550", reboot_allowed=False)
    assert again.recap[system.host]["changed"] == 0, again.output
    assert json.loads(system.ask("cat /var/lib/allreduce/reboot-pending")) == pending

    restart(system)
    # A GPU forgets its settings with the power; role gpu_settings' unit applies the recorded declaration at boot.
    assert system.ask("systemctl show -P Result allreduce-gpu-settings").strip() == "success"
    assert "power_limit 250000" in system.ask("cat /etc/simulated-nvml/profile.state")
    _run, seen = system.play("550", reboot_allowed=False)
    assert_at_work(system, seen)
    again, _seen = system.play("550", reboot_allowed=False)
    assert again.recap[system.host]["changed"] == 0, again.output


def restart(system, seconds=120):
    """What an administrator does: systemctl reboot, and wait."""
    started = system.ask("stat -c %Y /proc/1")
    system.cluster.on(system.host, "systemctl reboot", check=False)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        said = system.cluster.on(system.host, "stat -c %Y /proc/1; systemctl is-system-running", check=False).split()
        if said[:1] != started.split() and said[1:] in (["running"], ["degraded"]):
            return
        time.sleep(1)
    raise AssertionError(f"{system.host} did not come back within {seconds} s")
