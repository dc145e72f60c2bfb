# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Package
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.managers import manager_of
from ansible_collections.allreduce.gpu.tests.support.fake_node import documented_options

PACKAGES = [Package("a", "1.*"), Package("b")]


@pytest.fixture(params=["apt", "dnf", "dnf5"])
def manager(request):
    name = request.param
    return manager_of(name.rstrip("5"), 30, False, backend=name)


def test_modules_know_what_they_are_told(manager):
    calls = [
        *manager.refresh(), *manager.install(PACKAGES), *manager.remove(["a"]), *manager.pin("x", ["a*"], "1.*"),
        *manager.repair(), manager.offered(["a"]),
    ]  # fmt: skip
    assert len({call.module for call in calls}) >= 2
    for call in calls:
        assert set(call.arguments) <= documented_options(call.module), call


@pytest.mark.parametrize(("name", "specs"), [("apt", ["a=1.*", "b"]), ("dnf", ["a-1.*", "b"])])
def test_versions(name, specs):
    call = manager_of(name, 30, None).install(PACKAGES)[-1]
    assert call.arguments["name"] == specs
    assert not {"install_recommends", "install_weak_deps"} & set(call.arguments)


@pytest.mark.parametrize("name", ["apt", "dnf"])
def test_only_asking_is_no_change(name):
    manager = manager_of(name, 30, None)
    assert not [call for call in [*manager.refresh(), manager.offered(["a"])] if call.changes]
    assert all(call.changes for call in [*manager.repair(), *manager.remove(["a"])])


def test_the_lock_is_waited_for_so_long_and_no_longer():
    assert manager_of("dnf", 30, None).refresh()[0].arguments["argv"][:3] == ["timeout", "30", "dnf"]
    assert "--option=DPkg::Lock::Timeout=30" in manager_of("apt", 30, None).repair()[-1].arguments["argv"]


def test_what_repositories_offer():
    madison = " linux-headers-6.1.0-40-amd64 | 6.1.153-1 | http://archive bookworm/main amd64 Packages\n" * 2
    assert manager_of("apt", 30, None).parse_offered(madison) == {"linux-headers-6.1.0-40-amd64"}
    names = "kernel-devel-4.18.0-553.el8_10.x86_64\n\n"
    assert manager_of("dnf", 30, None).parse_offered(names) == {"kernel-devel-4.18.0-553.el8_10.x86_64"}


def test_other_package_managers_are_refused():
    with pytest.raises(ValueError, match="apt or dnf"):
        manager_of(None, 30, None)
