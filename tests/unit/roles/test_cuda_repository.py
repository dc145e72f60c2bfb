# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role cuda_repository and OpenPGP keys: which ones it accepts, and which ones apt no longer trusts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import run_roles

CHECKOUT = Path(__file__).resolve().parents[3]
LEFTOVERS = CHECKOUT / "roles" / "cuda_repository" / "tasks" / "leftovers.yml"

needs_gpg = pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg")
needs_apt_key = pytest.mark.skipif(not shutil.which("apt-key"), reason="needs apt-key")


def gpg(home, *arguments):
    home.mkdir(mode=0o700, exist_ok=True)
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def fingerprint(home, name):
    listed = gpg(home, "--with-colons", "--list-keys", name).decode().splitlines()
    return next(line.split(":")[9] for line in listed if line.startswith("fpr:"))


def play(place, tasks, hosts, **environment):
    """Output of tasks on this machine, as these hosts with their variables."""
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": hosts, "vars": local}}
    (place / "hosts.json").write_text(json.dumps(inventory))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    settings = {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"), "ANSIBLE_NOCOLOR": "1"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml"]
    process = subprocess.run(
        command, cwd=place, env={**kept, **settings, **environment}, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


# (key file, key that is expected, whether the node refuses SHA-1): what the refusal says, None where there is none.
CASES = {
    ("good", "good", True): None,
    ("weak", "weak", False): None,
    ("weak", "weak", True): "accepts no key that only SHA-1 binds to its name",
    ("good", "weak", False): "set cuda_repository_key to the right file",
    (
        "weak",
        "good",
        False,
    ): "which NVIDIA has not signed with since April 2022, so this copy of the repository is out of date",
    ("both", "good", False): "set cuda_repository_key to the right file",
    ("page", "good", False): "The repository's key file cannot be used: it holds no ASCII-armored public key",
    (
        "missing",
        "good",
        False,
    ): "missing.asc (File not found. Use -vvvvv to see paths searched): set cuda_repository_key to a file",
    (
        "closed",
        "good",
        False,
    ): "http://127.0.0.1:9/key (<urlopen error [Errno 111] Connection refused>): set https_proxy in",
}
# Of a key that does not lie in a file.
ADDRESSES = {"closed": "http://127.0.0.1:9/key"}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """{case: what the role says when it refuses the key, or nothing}"""
    place = tmp_path_factory.mktemp("keys")
    home, fingerprints = place / "gpg", {}
    for name, digest in (("good", "SHA256"), ("weak", "SHA1")):
        gpg(home, "--cert-digest-algo", digest, "--quick-generate-key", name, "rsa2048", "sign")
        (place / f"{name}.asc").write_bytes(gpg(home, "--armor", "--export", name))
        fingerprints[name] = fingerprint(home, name)
    (place / "both.asc").write_bytes(gpg(home, "--armor", "--export"))
    (place / "page.asc").write_text("<html>404</html>")
    hosts = {
        "-".join(map(str, case)): {
            "cuda_repository_key": ADDRESSES.get(case[0]) or str(place / f"{case[0]}.asc"),
            "cuda_repository_key_fingerprint": fingerprints[case[1]].lower(),
            "packages": {"sqv": "1"} if case[2] else {},
        }
        for case in CASES
    }
    facts = {
        "gpu_stack": {"repository": {"key_fingerprint": None, "retired_keys": [fingerprints["weak"]]}, "driver": None},
        "gpu_node_state": {"package_manager": "apt", "packages": "{{ packages }}"},
    }
    said = {"content": "{{ ansible_failed_result.msg }}", "dest": f"{place}/{{{{ inventory_hostname }}}}.txt"}
    role = {"name": "allreduce.gpu.cuda_repository", "tasks_from": "key"}
    tasks = [
        {"ansible.builtin.set_fact": {"cacheable": True, **facts}},
        {"block": [{"ansible.builtin.include_role": role}], "rescue": [{"ansible.builtin.copy": said}]},
    ]
    play(place, tasks, hosts)
    files = {case: place / f"{'-'.join(map(str, case))}.txt" for case in CASES}
    return {case: path.read_text() if path.exists() else None for case, path in files.items()}


@needs_gpg
@pytest.mark.parametrize("case", CASES)
def test_a_key_is_accepted_by_its_fingerprint(refusals, case):
    if CASES[case] is None:
        assert refusals[case] is None
    else:
        assert CASES[case] in refusals[case]


@needs_gpg
@pytest.mark.parametrize(("system", "hotfixes"), [("rocky 10", True), ("rocky 9", False)])
def test_without_module_streams_no_module_metadata_hides_packages(system, hotfixes, tmp_path):
    gpg(tmp_path / "gpg", "--quick-generate-key", "good", "rsa2048", "sign")
    (tmp_path / "key.asc").write_bytes(gpg(tmp_path / "gpg", "--armor", "--export", "good"))
    stack = resolve({"os": system, "gpus": ["NVIDIA A40"], "request": {"pytorch": "none"}})["stack"]
    facts = {
        "gpu_stack": stack,
        "gpu_node": {"gpus": [{}]},
        "gpu_node_state": {"package_manager": "dnf", "packages": {}},
        "cuda_repository_key": str(tmp_path / "key.asc"),
        "cuda_repository_key_fingerprint": fingerprint(tmp_path / "gpg", "good"),
    }
    run = run_roles(tmp_path, ["cuda_repository"], facts, "--check", "--diff")

    assert run.status == 0, run.output
    assert "+baseurl=" in run.output
    assert ("+module_hotfixes=1" in run.output) == hotfixes


def test_other_entries_go_before_the_repository_is_set_up(tmp_path):
    """A run that ended between the two left them: the next one found the repository set up."""
    sources = tmp_path / "sources.list.d"
    sources.mkdir()
    old, new, kept = (sources / name for name in ("by-hand.list", "new.list", "kept.list"))
    old.write_text("deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/ /\n")
    kept.write_text("deb https://archive.example.org/ stable main\n")
    facts = {
        "gpu_stack": {
            "os": {"family": "debian", "id": "ubuntu", "version": "22.04"},
            "repository": {"retired_keys": []},
            "driver": None,
        },
        "gpu_node_state": {"package_manager": "apt", "packages": {}},
    }
    given = {
        "cuda_repository_key": str(kept), "__cuda_repository_fingerprint": "A", "__cuda_repository_key_text": "",
        "__cuda_repository_keys": [{"fingerprint": "A", "sha1_bound": False}], "__cuda_repository_main_lists": [],
        "__cuda_repository_retired_keys": [], "__cuda_repository_old_places": [str(sources)],
        "__cuda_repository_source_file": str(new),
        "__cuda_repository_files": [{"path": str(new), "content": "new\n", "validate": ["/bin/false", "%s"]}],
    }  # fmt: skip
    run = run_roles(tmp_path, ["cuda_repository"], facts, "-e", json.dumps(given))
    assert "would be refused by /bin/false" in run.output, run.output
    assert list(sources.iterdir()) == [kept]


def retired_key_tasks():
    """The tasks about keys in what runs before the index is read."""
    tasks = yaml.safe_load(LEFTOVERS.read_text(encoding="utf-8"))
    found = [task for task in tasks if "apt-key" in str(task.get("ansible.builtin.command"))]
    assert len(found) == 2
    return found


@pytest.fixture
def trusted(tmp_path):
    """apt's directory with a retired key in the common keyring and in two files of its own, and another key beside it."""
    apt = tmp_path / "etc" / "apt"
    parts = apt / "trusted.gpg.d"
    parts.mkdir(parents=True)
    for name in ("old", "kept"):
        gpg(tmp_path / "gpg", "--quick-generate-key", name, "rsa2048", "sign")
    (apt / "trusted.gpg").write_bytes(gpg(tmp_path / "gpg", "--export"))
    (parts / "cuda.asc").write_bytes(gpg(tmp_path / "gpg", "--armor", "--export", "old"))
    (parts / "nvidia.gpg").write_bytes(gpg(tmp_path / "gpg", "--export", "old"))
    (parts / "kept.gpg").write_bytes(gpg(tmp_path / "gpg", "--export", "kept"))
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{apt}";\n')
    return apt


def trusted_keys(apt):
    """{file that apt reads: names of the keys in it}"""
    found = {}
    for path in sorted([apt / "trusted.gpg", *apt.glob("trusted.gpg.d/*.gpg"), *apt.glob("trusted.gpg.d/*.asc")]):
        listed = gpg(apt / "gpg", "--show-keys", "--with-colons", str(path)).decode()
        found[path.name] = [line.split(":")[9] for line in listed.splitlines() if line.startswith("uid:")]
    return found


def remove_retired(apt, number, **environment):
    """Whether the tasks changed something."""
    place = apt.parents[1]
    hosts = {"node": {"__cuda_repository_retired_keys": [number, "0" * 40]}}
    return "changed=1" in play(place, retired_key_tasks(), hosts, APT_CONFIG=str(place / "apt.conf"), **environment)


@needs_gpg
@needs_apt_key
def test_retired_keys_are_trusted_no_more_and_others_still_are(trusted):
    number = fingerprint(trusted.parents[1] / "gpg", "old")
    assert trusted_keys(trusted)["trusted.gpg"] == ["old", "kept"]
    assert remove_retired(trusted, number)
    assert trusted_keys(trusted) == {"trusted.gpg": ["kept"], "kept.gpg": ["kept"]}
    assert not remove_retired(trusted, number)


@needs_gpg
@needs_apt_key
def test_a_node_without_gnupg_is_left_alone(trusted):
    before = trusted_keys(trusted)
    number = fingerprint(trusted.parents[1] / "gpg", "old")
    programs = trusted.parents[1] / "bin"
    programs.mkdir()
    for path in Path("/usr/bin").iterdir():
        if not path.name.startswith("gpg"):
            (programs / path.name).symlink_to(path)
    assert not remove_retired(trusted, number, PATH=str(programs))
    assert trusted_keys(trusted) == before
