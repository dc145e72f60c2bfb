# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that answers the modules an action runs: it fails where the real modules fail, and knows their options only."""

from __future__ import annotations

import base64
import importlib
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import SimpleNamespace

import yaml

COLLECTION = "ansible_collections.allreduce.gpu.plugins.modules"
HELD = "E: Held packages were changed and -y was used without --allow-change-held-packages."


def documented_options(module):
    """Names of the options that a module documents."""
    namespace, _dot, name = module.rpartition(".")
    package = {"ansible.builtin": "ansible.modules", "allreduce.gpu": COLLECTION}[namespace]
    known = yaml.safe_load(importlib.import_module(f"{package}.{name}").DOCUMENTATION)
    options = set(known["options"])
    for fragment in known.get("extends_documentation_fragment", ()):
        if fragment.startswith("allreduce.gpu."):
            place = f"{COLLECTION.rpartition('.')[0]}.doc_fragments.{fragment.rpartition('.')[2]}"
            options |= set(yaml.safe_load(importlib.import_module(place).ModuleDocFragment.DOCUMENTATION)["options"])
    return options


def template(text):
    """A text that Ansible takes for a template, as it does with what an inventory says."""
    try:
        from ansible.template import trust_as_template
    except ImportError:  # before ansible-core 2.19 every text is one
        return text
    return trust_as_template(text)


def _fits(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Failure(Exception):
    """What a module ends with."""

    def __init__(self, msg, **more):
        super().__init__(msg)
        self.result = {"failed": True, "changed": False, "msg": msg, **more}


@dataclass
class FakeNode:
    """Packages by name and version; ``repository`` has every version there is, newest last."""

    manager: str = "apt"
    packages: dict = field(default_factory=dict)
    repository: dict = field(default_factory=dict)
    conflicts: dict = field(default_factory=dict)  # package: those that go when it comes
    takes_away: dict = field(default_factory=dict)  # package: those that go when it goes
    brings: dict = field(default_factory=dict)  # package: {name: versions} that its repository has
    leftover: dict = field(default_factory=dict)
    services: dict = field(default_factory=dict)
    kernel: dict = field(default_factory=dict)
    dkms: list = field(default_factory=list)
    files: dict = field(default_factory=dict)
    holder: dict | None = None  # of the package manager's lock
    rpm_locked: int = 0  # how many transactions find rpm's own lock held
    interrupted: bool = False
    fresh: bool = False  # whether the repositories' indexes were read
    damaged: str = ""  # how apt fails with lists that a power cut has left, whatever it fetches
    failure: dict | None = None  # how the next installation ends
    complaint: str = ""  # what apt-get update says about the repositories
    builds: bool = True  # whether the compiler takes the kernel module
    awaited: set = field(default_factory=set)  # modules that DKMS does not build, as another node gives them
    held: dict = field(default_factory=dict)  # by hold: {package: version}
    holds: dict = field(default_factory=dict)  # the declarations that were measured, by hold
    calls: list = field(default_factory=list)
    environment: dict = field(default_factory=lambda: {"LC_ALL": "de_DE.UTF-8"})  # of the modules

    def state(self):
        """Fact gpu_node_state."""
        return {
            "package_manager": self.manager,
            "packages": dict(self.packages),
            "leftover_packages": dict(self.leftover),
            "package_manager_interrupted": self.interrupted,
            "package_manager_holder": self.holder,
            "package_holds": self.holds,
            "services": {name: dict(service) for name, service in self.services.items()},
            "kernel": dict(self.kernel),
            "dkms": [dict(build) for build in self.dkms],
        }

    def modules(self):
        """Short names of the modules that ran, in order; package_hold with its state."""
        return [
            f"{name.rpartition('.')[2]} {given['state']}"
            if "state" in given and "hold" in name
            else name.rpartition(".")[2]
            for name, given in self.calls
        ]

    def execute(self, check, module_name, module_args, task_vars):
        """Answer as ActionBase._execute_module does."""
        assert task_vars is not None
        unknown = set(module_args) - documented_options(module_name)
        assert not unknown, f"{module_name} has no option {unknown}"
        self.calls.append((module_name, dict(module_args)))
        answer = getattr(self, "_" + module_name.rpartition(".")[2])
        try:
            if check:
                assert module_name in ("allreduce.gpu.package_hold", "allreduce.gpu.node_state"), "check mode changes"
            return {"changed": False, **answer(check=check, **module_args)}
        except Failure as failure:
            return failure.result

    def _node_state(self, check, services):
        assert set(self.services) <= set(services), "a service is set that nobody measures"
        return {"ansible_facts": {"gpu_node_state": self.state()}}

    def _package_hold(
        self, check, name, packages, lock_timeout, excluded=(), services=(), kernel=False, state="held", **more
    ):
        if self.holder:
            raise Failure("dpkg does not accept the selections: dpkg frontend lock is locked by another process.")
        wanted = {
            package: version
            for package, version in self.packages.items()
            if _fits(package, packages) and not _fits(package, excluded) and state == "held"
        }
        before = self.held.get(name, {})
        if state == "released":
            others = {
                hold: {k: v for k, v in kept.items() if not _fits(k, packages)}
                for hold, kept in self.held.items()
                if hold != name
            }
        else:
            others = {**self.held, name: wanted}
        if not check:
            self.held = others
            if state == "released":
                self.holds = {hold: told for hold, told in self.holds.items() if hold != name}
        lines = ["".join(f"{one} {version}\n" for one, version in kept.items()) for kept in (before, wanted)]
        path = f"/etc/apt/preferences.d/allreduce-{name}"
        diff = [{"before_header": path, "after_header": path, "before": lines[0], "after": lines[1]}]
        changed = before != wanted
        return {"changed": changed, "held": wanted, "diff": diff if changed else []}

    def _config_files(self, check, files):
        self.files.update({one["path"]: one["content"] for one in files})
        return {"changed": True, "changed_paths": [one["path"] for one in files]}

    def _read_file(self, check, path, limit, end):
        if path not in self.files:
            raise Failure(f"{path} cannot be read")
        return {"content": base64.b64encode(self.files[path].encode()[-limit:]).decode()}

    def _command(self, check, argv):
        words = [word for word in argv if word != "env" and "=" not in word or word.startswith("--")]
        if words[0] == "timeout":
            words = words[2:]
        program = {
            "dnf": self._run_dnf, "apt-cache": self._madison, "dpkg": self._configure, "apt-get": self._run_apt_get,
            "dkms": self._run_dkms, "find": self._find,
        }[words[0]]  # fmt: skip
        return {"changed": True, "rc": 0, "stdout": program(words) or "", "stderr": ""}

    def _run_dnf(self, words):
        assert self.manager == "dnf"
        if self.holder:
            raise Failure("non-zero return code", rc=124, stderr="Waiting for process with pid 7 to finish.")
        if "makecache" in words:
            self.fresh = True
            return ""
        if "repoquery" in words:
            return "".join(f"{name}\n" for name in words if name in self.repository)
        assert words == ["dnf", "--assumeyes", "remove", "--duplicates"]
        self.interrupted = False
        return ""

    def _find(self, words):
        assert self.manager == "apt" and "-delete" in words
        self.damaged, self.fresh = "", False

    def _madison(self, words):
        assert self.manager == "apt"
        return "".join(
            f" {name} | {self.repository[name][-1]} | http://archive\n" for name in words[2:] if name in self.repository
        )

    def _configure(self, words):
        assert words[-2:] == ["--configure", "--pending"]
        raise Failure("non-zero return code", rc=1, stderr="dpkg: dependency problems prevent configuration of x")

    def _run_apt_get(self, words):
        if words[1:] == ["update"]:
            raise Failure("non-zero return code", rc=100, stderr=self.complaint)
        return self._fix_broken(words)

    def _fix_broken(self, words):
        if self.failure:
            raise Failure(**{"msg": "non-zero return code", "rc": 100, **self.failure})
        assert "--fix-broken" in words
        self.interrupted = False

    def _apt(self, check, lock_timeout, name=(), state="present", purge=False, update_cache=False, allow_downgrade=False,
             install_recommends=None):  # fmt: skip
        assert self.manager == "apt"
        assert isinstance(lock_timeout, int)
        if self.holder:
            raise Failure("Failed to lock apt for exclusive operation: Failed to lock directory /var/lib/apt/lists/")
        self.fresh = self.fresh or update_cache
        if not name:
            return {"changed": update_cache}
        if self.interrupted:
            raise Failure(
                "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
            )
        if state == "absent":
            return self._take_away(name, HELD)
        if self.damaged:
            raise Failure(self.damaged)
        chosen = {}
        for spec in name:
            package, _equals, version = spec.partition("=")
            chosen[package] = self._best(package, version or "*", f"no available installation candidate for {spec}")
            older = package in self.packages and self.repository[package].index(chosen[package]) < self.repository[
                package
            ].index(self.packages[package])
            if older and not allow_downgrade:
                raise Failure(
                    "apt-get install failed", stderr="E: Packages were downgraded and -y was used without ..."
                )
        return self._bring(chosen, HELD)

    def _dnf(self, check, lock_timeout, name, state="present", allow_downgrade=False, allowerasing=False,
             install_weak_deps=None):  # fmt: skip
        assert self.manager == "dnf"
        if self.holder:
            raise Failure("lockfile is held by another process")
        if self.rpm_locked:
            self.rpm_locked -= 1
            raise Failure("can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)")
        if state == "absent":
            return self._take_away(name, "versionlock")
        chosen = {}
        for spec in name:
            missing = f"No package {spec} available."
            package = max(
                (one for one in self.repository if spec == one or spec.startswith(f"{one}-")), key=len, default=None
            )
            if package is None:
                raise Failure("Failed to install some of the specified packages", failures=[missing])
            chosen[package] = self._best(package, spec[len(package) + 1 :] or "*", missing)
        if any(self.conflicts.get(one) for one in chosen) and not allowerasing:
            raise Failure("Depsolve Error occurred: conflicting requests")
        return self._bring(chosen, "versionlock")

    def _best(self, package, pattern, missing):
        versions = self.repository.get(package, []) if self.fresh else []
        fitting = [version for version in versions if fnmatchcase(version, pattern)]
        if not fitting:
            raise Failure(missing, failures=[missing])
        return fitting[-1]

    def _bring(self, chosen, refusal):
        if self.failure:
            raise Failure(**{"msg": "the transaction failed", **self.failure})
        going = [gone for name in chosen for gone in self.conflicts.get(name, []) if gone in self.packages]
        moving = [name for name, version in chosen.items() if self.packages.get(name) not in (None, version)]
        self._refuse_held([*going, *moving], refusal)
        changed = bool(going) or any(self.packages.get(name) != version for name, version in chosen.items())
        for name in going:
            self.leftover[name] = self.packages.pop(name)
        self.packages.update(chosen)
        for name in chosen:
            self.leftover.pop(name, None)
            self.repository.update(self.brings.get(name, {}))
            self.fresh = self.fresh and name not in self.brings
        return {"changed": changed, "diff": {"prepared": "what apt printed"}}

    def _take_away(self, names, refusal):
        going = [name for name in names if name in self.packages]
        going += [gone for name in going for gone in self.takes_away.get(name, []) if gone in self.packages]
        self._refuse_held(going, refusal)
        purged = [name for name in names if name in self.leftover]
        for name in going:
            self.packages.pop(name)
        for name in purged:
            self.leftover.pop(name)
        return {"changed": bool(going or purged)}

    def _refuse_held(self, names, refusal):
        held = {package for kept in self.held.values() for package in kept}
        if held & set(names):
            raise Failure("the transaction was refused", stderr=refusal)

    def _run_dkms(self, words):
        found = re.fullmatch(r"dkms install --force -m (\S+) -v (\S+) -k (\S+)", " ".join(words))
        module, version, kernel = found.groups()
        if kernel not in self.kernel["headers"]:
            raise Failure(
                "non-zero return code", rc=21, stderr=f"Your kernel headers for kernel {kernel} cannot be found"
            )
        if not [build for build in self.dkms if (build["module"], build["version"]) == (module, version)]:
            raise Failure(
                "non-zero return code", rc=3, stderr=f"The module/version combo: {module}-{version} is not located"
            )
        if module in self.awaited:
            raise Failure(
                "non-zero return code", rc=77, stderr="includes a BUILD_EXCLUSIVE directive which does not match"
            )
        if not self.builds:
            log = f"/var/lib/dkms/{module}/{version}/build/make.log"
            self.files[log] = (
                "".join(f"line {number}\n" for number in range(30)) + "nv.c:12: error: too few arguments\n"
            )
            raise Failure(
                "non-zero return code", rc=10, stderr=f"Error! Bad return status\nConsult {log} for more information."
            )
        for build in self.dkms:
            if build.get("kernel") == kernel and build["status"] == "installed":
                build["status"] = "built"
        built = {"module": module, "version": version, "kernel": kernel, "arch": "x86_64", "status": "installed"}
        self.dkms = [build for build in self.dkms if build != {**built, "status": "built"}] + [built]

    def _kernel_module_archive(self, check, name, state):
        assert state == "absent"
        self.awaited.discard(name)
        return {"changed": False}

    def _systemd_service(self, check, name, enabled=None, state=None, daemon_reload=False):
        if name not in self.services:
            raise Failure(f"Could not find the requested service {name}: host")
        service = self.services[name]
        wanted = {
            **({} if enabled is None else {"enabled": enabled}),
            **({} if state is None else {"active": state in ("started", "restarted")}),
        }
        changed = state == "restarted" or any(service[key] != value for key, value in wanted.items())
        service.update({**wanted, **({"outdated": False} if daemon_reload and "outdated" in service else {})})
        return {"changed": changed}


def act(plugin, node, facts=None, check=False, variables=None, delegate_to=None, no_log=False, **arguments):
    """Result of an action of the collection on the node; facts default to what the node is."""
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar

    name = "allreduce.gpu." + plugin.__name__.rpartition(".")[2]
    task = SimpleNamespace(
        args=arguments, check_mode=check, async_val=0, diff=True, action=name, module_defaults=[],
        delegate_to=delegate_to, no_log=no_log, environment=[None, getattr(node, "environment", None)],
    )  # fmt: skip
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="unused"))
    action = plugin.ActionModule(task, connection, None, DataLoader(), Templar(loader=DataLoader()), None)
    action._load_name = name

    def execute(module_name, module_args, task_vars):
        node.environment = {name: value for one in task.environment for name, value in (one or {}).items()}
        return node.execute(check, module_name, module_args, task_vars)

    action._execute_module = execute
    facts = {"gpu_node_state": node.state(), **(facts or {})}
    task_vars = {"ansible_facts": facts, "inventory_hostname": "gpu-1", **(variables or {})}
    return action.run(task_vars=task_vars)
