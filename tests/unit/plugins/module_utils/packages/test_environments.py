# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages.environments import (
    name_of,
    read_builds,
    read_environments,
    read_kept,
    read_uv,
)
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

ENVS = "/opt/allreduce/envs"
SITE = f"{ENVS}/main/lib/python3.11/site-packages"

EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"  # of no bytes

CONDA_SITE = f"{ENVS}/conda/lib/python3.10/site-packages"
CONDA_PYTHON = json.dumps({
    "name": "python", "version": "3.10.14", "build": "h955ad1f_0", "sha256": "1" * 64, "files": ["bin/python3.10"],
})  # fmt: skip


def test_environments_of_uv_venv_and_conda(tmp_path):
    files = tree(tmp_path, {
        "/usr/bin/python3.11": "", f"{ENVS}/main/bin/python": ("link", "/usr/bin/python3.11"),
        f"{ENVS}/main/bin/python3": ("link", "python"), f"{ENVS}/main/pyvenv.cfg": "home = /usr/bin\nuv = 0.13\nversion_info = 3.11.2\n",
        f"{SITE}/torch-2.13.0+cpu.dist-info/RECORD": f"../../../bin/torchrun,{EMPTY},0", f"{ENVS}/main/bin/torchrun": "changed",
        f"{SITE}/nvidia_ml_py-13.615.71.dist-info/RECORD": f"pynvml.py,{EMPTY},0",
        f"{SITE}/numpy-2.4.6.dist-info/METADATA": "the installer was killed before it wrote RECORD",
        f"{ENVS}/venv/bin/python": "", f"{ENVS}/venv/pyvenv.cfg": "version = 3.9.2\n",
        f"{ENVS}/conda/bin/python": "", f"{ENVS}/conda/conda-meta/python-3.10.14-h955ad1f_0.json": CONDA_PYTHON,
        f"{CONDA_SITE}/pip-24.0.dist-info/INSTALLER": "conda\n", f"{CONDA_SITE}/pip-24.0.dist-info/RECORD": f"gone.py,{EMPTY},0",
        "/etc/allreduce/locks/conda.conda.txt": "# request: 0123456789abcdef\n@EXPLICIT\n"
        f"https://c.example/linux-64/python-3.10.13-h955ad1f_0.conda#sha256:{'0' * 64}\n",
        f"{ENVS}/.main.former/bin/python": "",
        f"{ENVS}/half/lib/x": "",
        f"{ENVS}/orphan/bin/python": ("link", "/usr/bin/python3.8"), f"{ENVS}/orphan/pyvenv.cfg": "version_info = 3.8.10\n",
        f"{SITE}/horovod-0.28.1.dist-info/RECORD": "",
        f"{SITE}/horovod-0.28.1.dist-info/direct_url.json": '{"url":"file:///opt/allreduce/cache/horovod/0123456789abcdef/h.whl","archive_info":{}}',
        "/etc/allreduce/locks/main.txt": "# request: 0123456789abcdef\ntorch==2.13.0+cpu \\\n    --hash=sha256:00\n"
        "nvidia_ml_py @ https://example.org/nvidia_ml_py.whl\n    # via main\n",
    })  # fmt: skip
    assert read_environments(files) == {
        "main": {
            "python": "3.11.2",
            "home": "/usr/bin",
            "target": None,
            "packages": {"torch": "2.13.0+cpu", "nvidia-ml-py": "13.615.71", "horovod": "0.28.1"},
            "changed_files": {"nvidia-ml-py": "lib/python3.11/site-packages/pynvml.py", "torch": "bin/torchrun"},
            "lock": {
                "request": "0123456789abcdef",
                "packages": {"torch": "2.13.0+cpu", "nvidia-ml-py": None},
                "digest": "23566453b44d6a24",
            },
            "horovod": "0123456789abcdef",
            "conda": None,
        },
        "venv": {
            "python": "3.9.2",
            "home": None,
            "target": None,
            "packages": {},
            "changed_files": {},
            "lock": None,
            "horovod": None,
            "conda": None,
        },
        "conda": {
            "python": "3.10.14",
            "home": None,
            "target": None,
            "packages": {"pip": "24.0"},
            "changed_files": {},
            "lock": None,
            "horovod": None,
            "conda": {
                "complete": False,
                "packages": {"python": "3.10.14 h955ad1f_0"},
                "locked": {"python": "3.10.13 h955ad1f_0"},
                "changed_files": {"python": "bin/python3.10"},
            },
        },
    }


def test_wheels_that_were_compiled(tmp_path):
    cache = "/opt/allreduce/cache/horovod"
    whole, lost, cut = "0123456789abcdef", "1123456789abcdef", "2123456789abcdef"
    files = tree(tmp_path, {
        f"{cache}/{whole}/horovod-0.28.1-cp311-cp311-linux_x86_64.whl": "",
        f"{cache}/{whole}/wheel.sha256": "a" * 64 + "  horovod-0.28.1-cp311-cp311-linux_x86_64.whl\n",
        f"{cache}/{lost}/wheel.sha256": "a" * 64 + "  horovod-0.28.1-cp311-cp311-linux_x86_64.whl\n",
        f"{cache}/{cut}/horovod-0.28.1-cp311-cp311-linux_x86_64.whl": "",
    })  # fmt: skip
    assert read_builds(files) == {whole: {"file": "horovod-0.28.1-cp311-cp311-linux_x86_64.whl", "sha256": "a" * 64}}


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("uv 0.13.9\n", "0.13.9"),
        ("uv 0.13.9 (0a1b2c3d4 2026-06-01)", "0.13.9"),
        (None, None),
        ("", None),
        ("what?", None),
    ],
)
def test_uv_answers_only_when_it_is_complete(tmp_path, answer, version):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return answer

    assert read_uv(tree(tmp_path, {}), run) is None and asked == []
    assert read_uv(tree(tmp_path, {"/opt/allreduce/uv/bin/uv": ""}), run) == version
    assert asked == [["/opt/allreduce/uv/bin/uv", "--version"]]


def test_the_environment_in_use_and_those_that_are_kept(tmp_path):
    lock = "# request: {0}\nalpha=={0}\n"
    first, second, other = ".main-111111111111", ".main-222222222222", ".main-tf-333333333333"
    files = tree(tmp_path, {
        "/usr/bin/python3.11": "", f"{ENVS}/{first}/bin/python": ("link", "/usr/bin/python3.11"),
        f"{ENVS}/{first}/pyvenv.cfg": "home = /usr/bin\nversion_info = 3.11.2\n", f"{ENVS}/main": ("link", first),
        f"{ENVS}/{second}/bin/python": "", f"{ENVS}/{other}/bin/python": "",
        f"{ENVS}/.main-555555555555/bin/python": ("link", "/usr/bin/python3.8"),
        f"{ENVS}/.main-555555555555/allreduce-lock.txt": lock.format("5" * 16),
        f"{ENVS}/{first}/allreduce-lock.txt": lock.format("1" * 16),
        f"{ENVS}/{second}/allreduce-lock.txt": lock.format("2" * 16),
        f"{ENVS}/{other}/allreduce-lock.txt": lock.format("3" * 16),
        f"{ENVS}/.main-444444444444/bin/python": "of a run that broke",
    })  # fmt: skip
    for age, directory in enumerate((second, first, other)):
        os.utime(files.path(f"{ENVS}/{directory}/allreduce-lock.txt"), (1000 - age, 1000 - age))
    environments = read_environments(files)
    assert {name: found["target"] for name, found in environments.items()} == {"main": first}
    assert environments["main"]["python"] == "3.11.2"
    assert read_kept(files) == [
        {"directory": second, "name": "main", "request": "2" * 16},
        {"directory": first, "name": "main", "request": "1" * 16},
        {"directory": other, "name": "main-tf", "request": "3" * 16},
    ]


@pytest.mark.parametrize(
    ("directory", "name"),
    [(".main-0123456789ab", "main"), (".a-b-0123456789ab", "a-b"), (".main-former", "main"),
     ("main", None), (".main.new", None), (".main-0123456789abcdef", None), (".-0123456789ab", None)],
)  # fmt: skip
def test_directories_of_environments(directory, name):
    assert name_of(directory) == name
