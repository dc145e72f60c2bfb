# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interpreters of the environments: from where the plan says, and nobody but root can change them."""

ROOT = "/opt/allreduce"
STANDALONE = f"{ROOT}/python"


def test_every_interpreter_comes_from_where_the_plan_says(host, stack):
    assert stack["environments"]
    for environment in stack["environments"]:
        planned = environment["interpreter"]
        found = host.check_output(f"readlink -f {ROOT}/envs/{environment['name']}/bin/python")
        if planned["source"] == "standalone":
            assert found.startswith(f"{STANDALONE}/cpython-{environment['python']}.")
        else:
            assert found == host.check_output(f"readlink -f {planned['path']}")
            assert not found.startswith(STANDALONE)
        for package in planned["packages"]:
            assert host.package(package).is_installed


def test_an_interpreter_that_no_plan_names_is_not_downloaded(host, stack):
    planned = {one["interpreter"]["source"] for one in stack["environments"]}
    assert host.file(STANDALONE).exists == ("standalone" in planned)


def test_nobody_but_root_writes_to_what_all_use(host):
    places = f"{ROOT}/envs {ROOT}/uv {ROOT}/lib $(ls -d {STANDALONE} 2>/dev/null || true)"
    assert host.check_output(f"find {places} ! -type l '(' -perm /022 -o ! -user root ')'") == ""
    assert host.check_output(f"find {places} -type d ! -perm -0005") == ""


def test_nobody_finds_a_downloaded_interpreter_by_its_name(host):
    assert STANDALONE not in host.check_output(
        "readlink -f $(ls /usr/local/bin/python* /root/.local/bin/python* 2>/dev/null) || true"
    )
