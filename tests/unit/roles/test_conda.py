# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments that role python_env has conda make, on two hosts that are both this machine.

Channel, solver and installer are real, of py-rattler. The Python of the channel is a script, so no wheel is installed into it.
"""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.conda_channel import Package, build_channel
from tests.support.local_play import CHECKOUT

PROGRAM = CHECKOUT / "roles" / "python_env" / "files" / "rattler_program.py"
PACKAGES = [
    Package("python", "3.12.4", "h1_0", (), {"bin/python": "#!/bin/sh\necho Python 3.12.4\n"}, {}, ("bin/python",)),
    Package("python", "3.11.9", "h1_0", (), {"bin/python": "#!/bin/sh\necho Python 3.11.9\n"}, {}, ("bin/python",)),
    Package("jpeg", "3.0.0", "h2_1", (), {"lib/libjpeg.so": "jpeg 3.0\n"}),
]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the channel has packages for x86_64 alone"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the role gives what it writes to root"),
]
HOSTS = ("gpu-1", "gpu-2")
# What role frameworks does with the new environment, without looking at it: the Python of the channel imports nothing.
SWITCH = (
    'mkdir -p "$2" && cat > "$2/main.conda.txt" && { test -d "$0/main" -a ! -L "$0/main" || ln -sfn "$1" "$0/main"; }'
)


@pytest.fixture(scope="session")
def channel(tmp_path_factory):
    return build_channel(tmp_path_factory.mktemp("channel"), PACKAGES)


@pytest.fixture
def play(tmp_path, channel):
    """Return a function that runs the part of the role for conda on both hosts, and returns (status, output)."""
    program = tmp_path / "rattler"
    asked = tmp_path / "asked"
    call = f'exec {sys.executable} {PROGRAM} "$@"'
    program.write_text(f'#!/bin/sh\n[ "$1" != --version ] || {call}\necho "$*" >> {asked}\n{call}\n')
    program.chmod(0o755)
    environment = {
        "name": "main",
        "python": "3.12",
        "requirements": ["numpy"],
        "interpreter": {"source": "conda", "path": None, "packages": []},
    }
    tasks = [
        {
            "ansible.builtin.set_fact": {
                "cacheable": True,
                "gpu_stack": {"os": {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}, "environments": [environment]},
                "gpu_node_state": {"environments": "{{ measured | default({}) }}"},
            }
        },
        {"ansible.builtin.include_role": {"name": "allreduce.gpu.python_env", "tasks_from": "conda.yml", "public": True}},
        {
            "ansible.builtin.command": {"argv": ["/bin/sh", "-c", SWITCH, "{{ __python_env_root }}", "{{ __python_env_conda_made.main.at }}",
                                                 "{{ __python_env_locks }}"], "stdin": "{{ __python_env_conda_made.main.lock }}", "stdin_add_newline": False},
            "changed_when": False,
        },
        {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} remade={{ __python_env_remade }} relocked={{ __python_env_relocked }}"}},
    ]  # fmt: skip
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = dict.fromkeys(HOSTS, host)
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))

    def run(*options, **variables):
        own = f"{tmp_path}/{{{{ inventory_hostname }}}}"  # nothing else goes before a role's own variables
        given = {
            "__python_env_root": f"{own}/envs", "__python_env_locks": f"{own}/locks",
            "python_env_conda_program": str(program), "python_env_conda_channels": [channel], "python_env_conda_packages": ["jpeg"],
            **variables,
        }  # fmt: skip
        asked.write_text("")
        plain = {
            name: value for name, value in os.environ.items() if name != "ANSIBLE_CONFIG"
        }  # one with another way to print
        process = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml", "--extra-vars", json.dumps(given), *options],
            cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**plain, "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"), "ANSIBLE_NOCOLOR": "1", "HOME": str(tmp_path)},
        )  # fmt: skip
        return process.returncode, process.stdout + process.stderr, asked.read_text().splitlines()

    return run


def remade(output):
    return {
        name: (made, relocked) for name, made, relocked in re.findall(r'"(gpu-\d) remade=(.*?) relocked=(\w+)"', output)
    }


def test_environments_of_conda(play, tmp_path):
    """Solved once for both hosts, installed on both, left alone, corrected, and solved again when something else is asked for."""
    status, output, asked = play()
    assert status == 0, output
    assert sum(line.startswith("solve ") for line in asked) == 1 and len(asked) == 3
    assert remade(output) == dict.fromkeys(HOSTS, ("['main']", "True"))
    locks = {(tmp_path / name / "locks" / "main.conda.txt").read_text() for name in HOSTS}
    (lock,) = locks
    assert re.match(
        r"# Solved on gpu-1 by role \S+ for: python=3.12, jpeg\n# request: [0-9a-f]{16}\n# platform: linux-64\n@EXPLICIT\n",
        lock,
    )
    for name in HOSTS:
        said = subprocess.run(
            [tmp_path / name / "envs" / "main" / "bin" / "python"], capture_output=True, text=True, check=True
        )
        assert said.stdout == "Python 3.12.4\n"

    status, output, asked = play()
    assert (status, asked) == (0, []), output
    assert (
        remade(output) == dict.fromkeys(HOSTS, ("[]", "False")) and "changed=0" in output and "changed=1" not in output
    )

    (tmp_path / "gpu-2" / "envs" / "main" / "lib" / "libjpeg.so").write_text("jpeg 3.1\n")
    status, output, asked = play()
    assert (status, len(asked)) == (0, 1), output
    assert remade(output) == {"gpu-1": ("[]", "False"), "gpu-2": ("['main']", "False")}

    status, output, asked = play(python_env_conda_packages=[])
    assert status == 0, output
    assert sum(line.startswith("solve ") for line in asked) == 1
    assert remade(output) == dict.fromkeys(HOSTS, ("['main']", "True"))
    assert not (tmp_path / "gpu-2" / "envs" / "main" / "lib" / "libjpeg.so").exists()
    assert (
        len(list((tmp_path / "gpu-2" / "envs").glob(".main-*/lib/libjpeg.so"))) == 1
    )  # of the environment that was in use before


def test_what_uv_made_stays_in_use_meanwhile(play, tmp_path):
    for name in HOSTS:
        (tmp_path / name / "envs" / "main").mkdir(parents=True)
        (tmp_path / name / "envs" / "main" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    measured = {"main": {"python": "3.12.1", "home": "/usr/bin", "conda": None}}
    status, output, _asked = play("--check", measured=measured)
    assert status == 0 and (tmp_path / "gpu-1" / "envs" / "main" / "pyvenv.cfg").exists(), output
    status, output, _asked = play(measured=measured)
    assert status == 0 and remade(output) == dict.fromkeys(HOSTS, ("['main']", "True")), output
    assert (tmp_path / "gpu-1" / "envs" / "main" / "pyvenv.cfg").exists()
    assert list((tmp_path / "gpu-1" / "envs").glob(".main-*/conda-meta"))


def test_check_mode_changes_nothing(play, tmp_path):
    status, output, _asked = play("--check")
    assert status == 0, output
    assert not (tmp_path / "gpu-1").exists()
    assert output.count("changed: [gpu-") >= 2


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"python_env_conda_channels": ["defaults"]},
            "defaults is one of Anaconda's own channels, which have terms of their own",
        ),
        (
            {"python_env_conda_packages": ["nobody-has-this"]},
            "the channels have no solution: No candidates were found for nobody-has-this",
        ),
        (
            {"python_env_conda_program": "/nowhere/micromamba"},
            "/nowhere/micromamba does not exist: install micromamba or Miniforge",
        ),
    ],
)
def test_what_cannot_be_solved(play, variables, said):
    status, output, _asked = play(**variables)
    assert status == 2 and said in output, output


def test_micromamba_by_its_checksum(play, tmp_path):
    """The program is fetched, whatever answers to it; one of another checksum is not kept."""
    source = tmp_path / "rattler"
    digest = subprocess.run(["sha256sum", source], capture_output=True, text=True, check=True).stdout.split()[0]
    given = {"python_env_conda_url": source.as_uri(), "__python_env_conda_bin": str(tmp_path / "conda" / "bin")}
    status, output, _asked = play(python_env_conda_checksum=f"sha256:{'0' * 64}", **given)
    assert status == 2 and "did not match" in output
    assert not (tmp_path / "conda" / "bin" / "micromamba").exists()
    own = str(tmp_path / "conda" / "bin" / "micromamba")
    status, output, _asked = play(python_env_conda_checksum=f"sha256:{digest}", python_env_conda_program="", **given)
    assert status == 0, output
    assert Path(own).stat().st_mode & 0o777 == 0o755
