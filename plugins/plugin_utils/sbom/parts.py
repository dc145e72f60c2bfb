# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the parts of a node for a bill of materials: planned or observed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.requirements import Requirement

from ..documents.observed import Environment as Found
from ..documents.observed import Observed
from ..documents.stack import Component, Environment, Package, Stack
from ..drift.components import PACKAGED

# Kinds of package URLs (purl-spec, PURL-TYPES).
PACKAGE_MANAGERS = {"debian": "deb", "el": "rpm"}
# Debian's names of architectures; RPM's are the kernel's.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Part:
    """A package; version: None where only a pattern of it is planned; group: the component or environment it is there for."""

    kind: str  # of the package URL: deb | rpm | pypi | conda | generic
    name: str
    version: str | None = None
    group: str = ""
    qualifiers: tuple[tuple[str, str], ...] = ()


def parts(stack: Stack, observed: Observed | None = None) -> list[Part]:
    """Return the packages of a node, each once, in the order of the stack.

    observed: with it, versions are those that were found, packages that are not installed are left out, and environments have
    everything that is in them; without it they have what the stack pins
    """
    found = [*_of_system(stack, observed), *_of_environments(stack, observed)]
    return list(dict.fromkeys(found))


def _of_system(stack: Stack, observed: Observed | None) -> Iterator[Part]:
    kind = PACKAGE_MANAGERS.get(stack.os.family, "generic")
    arch = DEBIAN.get(stack.os.arch, stack.os.arch) if kind == "deb" else stack.os.arch
    qualifiers = (("arch", arch), ("distro", f"{stack.os.id}-{stack.os.version}"))
    for group in (one.name for one in PACKAGED):
        component = getattr(stack, group)
        packages = component.packages if component else ()
        there = [one for one in packages if observed is None or (observed.packages or {}).get(one.name)]
        listed = [Part(kind, one.name, _version(one, observed), group, qualifiers) for one in there]
        version = None if any(one.version for one in listed) else _bare_version(group, component, observed)
        if version:
            yield Part("generic", f"nvidia-{group.replace('_', '-')}", version, group)
        yield from listed


def _bare_version(group: str, component: Component | None, observed: Observed | None) -> str | None:
    """Return the version of what no package tells: a runfile, another owner's driver, a package the distribution chooses."""
    if observed is None:
        return component.version if component else None
    return observed.driver.installed if group == "driver" and observed.driver else None


def _version(package: Package, observed: Observed | None) -> str | None:
    if observed is not None:
        return (observed.packages or {}).get(package.name)
    return None if "*" in (package.version or "*") else package.version


def _of_environments(stack: Stack, observed: Observed | None) -> Iterator[Part]:
    there = (observed.environments or {}) if observed else {}
    for environment in stack.environments:
        if observed is None:
            yield from _planned(environment)
        elif environment.name in there:
            yield from _installed(environment.name, there[environment.name])


def _planned(environment: Environment) -> Iterator[Part]:
    yield Part("generic", "python", environment.python or None, environment.name)
    for one in map(Requirement, environment.requirements):
        exact = [part.version for part in one.specifier if part.operator == "=="]
        yield Part("pypi", one.name, exact[0] if exact else None, environment.name)
    if environment.build:
        yield Part("pypi", "horovod", environment.build.version, environment.name)


def _installed(name: str, found: Found) -> Iterator[Part]:
    yield Part("generic", "python", found.python, name)
    by_conda = found.conda.packages if found.conda else {}
    for package, locked in sorted(by_conda.items()):
        version, _space, build = locked.partition(" ")
        yield Part("conda", package, version, name, (("build", build),) if build else ())
    yield from (Part("pypi", package, installed, name) for package, installed in sorted(found.packages.items()))
