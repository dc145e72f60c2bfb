# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, on a real channel of conda's format that lies in a directory.

Two programs install: rattler, as role python_env installs it, always; and micromamba, mamba or conda, where the variable
ALLREDUCE_CONDA has its path. The package index has none of these three: conda 26.7.1 ran once those that were there then, from its sources
and with its classic solver. micromamba and mamba ran none of them: their command line, the JSON of their dry run and the time of their entry in
conda-meta/history are from libmamba's sources (2.8.1).
"""

import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import conda_env

from tests.support.conda_channel import PLACEHOLDER, Package, build_channel

COLLECTIONS = str(Path(conda_env.__file__).resolve().parents[2] / ".collections")
PROGRAM = Path(__file__).resolve().parents[4] / "roles" / "python_env" / "files" / "rattler_program.py"
REAL = os.environ.get("ALLREDUCE_CONDA")
SITE = "lib/python3.12/site-packages"
PYTHON = Package(
    "python", "3.12.4", "h1_0", (), {"bin/python3.12": f"#!/bin/sh\n# {PLACEHOLDER}\necho Python 3.12.4\n", "lib/libpython.so": "elf\n"},
    {"bin/python": "python3.12"}, ("bin/python3.12",),
)  # fmt: skip
PACKAGES = [
    PYTHON,
    Package("jpeg", "3.0.0", "h2_1", (), {"lib/libjpeg.so": "jpeg 3.0\n"}),
    Package("jpeg", "2.9.0", "h2_0", (), {"lib/libjpeg.so": "jpeg 2.9\n"}),
    Package("pillow", "11.0", "py312_0", ("python >=3.12", "jpeg >=2"), {f"{SITE}/PIL/__init__.py": "pass\n"}),
    Package("odd", "1.0", "0", ("absent >=1",), {"share/odd": "odd\n"}),
    # As pytorch-cuda is: no files, and what it constrains is installed by whoever needs it.
    Package("pytorch-cuda", "11.8", "0", ("cuda-libs",), constrains=("cuda-libs 11.*",)),
    Package("pytorch-cuda", "12.4", "0", ("cuda-libs",), constrains=("cuda-libs 12.*",)),
    Package("cuda-libs", "11.8", "0", (), {"lib/libcublas.so": "11\n"}),
    Package("cuda-libs", "12.4", "0", ("__cuda >=12",), {"lib/libcublas.so": "12\n"}),
    Package("future", "1.0", "0", ("__glibc >=2.99",), {"share/future": "future\n"}),
    Package("six", "1.17", "py_0", ("python",), {"site-packages/six.py": "pass\n"}, subdir="noarch", noarch="python"),
]
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the channel has packages for x86_64 alone")


@pytest.fixture(scope="session")
def channel(tmp_path_factory):
    return build_channel(tmp_path_factory.mktemp("channel"), PACKAGES)


@pytest.fixture(
    params=["rattler", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="ALLREDUCE_CONDA is not set"))]
)
def program(request, tmp_path):
    if request.param == "real":
        return REAL
    return rattler(tmp_path)


def rattler(place, then=f'exec {sys.executable} {PROGRAM} "$@"'):
    """Return rattler with the Python of the tests; then: what it does instead."""
    return script(place / "bin" / "rattler", f'[ "$1" != --version ] || exec {sys.executable} {PROGRAM} "$@"\n{then}')


def micromamba(place, version="2.8.1", then="exit 0"):
    """Return what says to be micromamba."""
    return script(place / "bin" / "micromamba", f'[ "$1" != --version ] || {{ echo {version}; exit; }}\n{then}')


def script(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "envs" / "main"


def lock_of(channel, *names):
    """The lock of packages by their stems."""
    lines = []
    for name in names:
        file = Path(channel.removeprefix("file://")) / "linux-64" / f"{name}.conda"
        lines.append(f"{file.as_uri()}#sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}")
    return "\n".join(["# platform: linux-64", "@EXPLICIT", *lines, ""])


@pytest.fixture
def lock(channel):
    return lock_of(channel, "python-3.12.4-h1_0", "jpeg-3.0.0-h2_1", "pillow-11.0-py312_0")


def run(prefix, check=False, environment=(), **options):
    said = {"prefix": f"{prefix}/", "_ansible_check_mode": check, "_ansible_diff": True, **options}
    done = subprocess.run(
        [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.conda_env",
         json.dumps({"ANSIBLE_MODULE_ARGS": said})],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS, "HOME": str([*prefix.parents, prefix][1]), **dict(environment)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def around(prefix):
    """What is left beside the environment."""
    return sorted(path.name for path in prefix.parent.iterdir()) if prefix.parent.exists() else []


def codes(answer):
    assert answer["failed"] is True, answer
    return [one["code"] for one in answer["findings"]]


def test_fresh(prefix, lock, program):
    answer = run(prefix, lock=lock, program=program)
    assert (answer["changed"], answer["step"], answer["state"]) == (True, "create", "absent")
    assert answer["program"]["path"] == program and answer["program"]["version"]
    assert [one["name"] for one in answer["differences"]] == ["jpeg", "pillow", "python"]
    assert answer["diff"]["before"] == "" and "\npillow 11.0 py312_0 " in answer["diff"]["after"]
    said = subprocess.run([prefix / "bin" / "python"], capture_output=True, text=True, check=True)
    assert said.stdout == "Python 3.12.4\n"
    assert str(prefix) in (prefix / "bin" / "python3.12").read_text()
    assert around(prefix) == ["main"]


def test_fresh_in_check_mode(prefix, lock, tmp_path):
    answer = run(prefix, check=True, lock=lock, program=str(tmp_path / "not" / "there"))
    assert (answer["changed"], answer["step"], answer["program"]) == (True, "create", None)
    assert around(prefix) == []


@pytest.mark.parametrize("check", [False, True])
def test_unchanged(prefix, lock, program, check):
    run(prefix, lock=lock, program=program)
    answer = run(prefix, check=check, lock=lock, program="/not/needed")
    assert (answer["changed"], answer["step"], answer["state"]) == (False, None, "complete")
    assert (answer["differences"], answer["changed_files"]) == ([], {})
    assert answer["diff"]["before"] == answer["diff"]["after"]


def overwrite(prefix):
    (prefix / "lib" / "libjpeg.so").write_text("jpeg 3.1\n")  # of the same size


def delete(prefix):
    (prefix / "bin" / "python3.12").unlink()


def patch(prefix):
    file = prefix / "bin" / "python3.12"
    file.write_text(file.read_text().replace("3.12.4", "3.12.5"))


def relink(prefix):
    file = prefix / "lib" / "libjpeg.so"
    file.unlink()
    file.symlink_to("libpython.so")


def forget(prefix):
    (prefix / "conda-meta" / "jpeg-3.0.0-h2_1.json").unlink()


def spoil(prefix):
    (prefix / "conda-meta" / "jpeg-3.0.0-h2_1.json").write_text('{"name": ')


def claim(prefix):
    file = prefix / "conda-meta" / "jpeg-3.0.0-h2_1.json"
    file.write_text(file.read_text().replace('"version": "3.0.0"', '"version": "3.0.1"'))


def cut_off(prefix):
    (prefix / "conda-meta" / "history").write_text("")


DRIFT = [
    (overwrite, {"jpeg": "lib/libjpeg.so"}, []),
    (delete, {"python": "bin/python3.12"}, []),
    (patch, {"python": "bin/python3.12"}, []),
    (relink, {"jpeg": "lib/libjpeg.so"}, []),
    (forget, {}, ["jpeg"]),
    (spoil, {"jpeg-3.0.0-h2_1": "conda-meta/jpeg-3.0.0-h2_1.json"}, ["jpeg"]),
    (claim, {}, ["jpeg"]),
    (cut_off, {}, []),
]


@pytest.mark.parametrize(("damage", "files", "names"), DRIFT)
def test_drift_is_corrected(prefix, lock, program, damage, files, names):
    run(prefix, lock=lock, program=program)
    damage(prefix)
    for check in (True, False):
        answer = run(prefix, check=check, lock=lock, program=program)
        assert (answer["changed"], answer["step"]) == (True, "rebuild")
        assert (answer["changed_files"], [one["name"] for one in answer["differences"]]) == (files, names)
        assert answer["diff"]["before"] != answer["diff"]["after"]
    assert run(prefix, lock=lock, program=program)["changed"] is False
    assert (prefix / "lib" / "libjpeg.so").read_text() == "jpeg 3.0\n"
    assert around(prefix) == ["main"]


def test_another_lock_and_what_was_added_by_hand(prefix, channel, lock, program):
    run(prefix, lock=lock, program=program)
    older = lock_of(channel, "python-3.12.4-h1_0", "jpeg-2.9.0-h2_0")
    answer = run(prefix, lock=older, program=program)
    assert [(one["name"], bool(one["locked"])) for one in answer["differences"]] == [("jpeg", True), ("pillow", False)]
    assert (prefix / "lib" / "libjpeg.so").read_text() == "jpeg 2.9\n"
    assert not (prefix / SITE / "PIL").exists()


def test_a_wheel_is_left_alone(prefix, lock, program):
    """uv and pip install beside conda's packages."""
    run(prefix, lock=lock, program=program)
    (prefix / SITE / "torch-2.8.0.dist-info").mkdir()
    assert run(prefix, lock=lock, program=program)["changed"] is False


def test_an_interrupted_installation_is_repeated(prefix, lock, tmp_path):
    """The program is killed with one of the packages in its place."""
    dies = f'head -n 2 "$3" > "$3.half" && {sys.executable} {PROGRAM} install "$2" "$3.half" && rm "$2"/conda-meta/history && kill -9 $$'
    answer = run(prefix, lock=lock, program=rattler(tmp_path, dies))
    assert codes(answer) == ["conda_failed"] and around(prefix) == [".main.packages"]
    assert "ended with -9" in answer["msg"]
    answer = run(prefix, lock=lock, program=rattler(tmp_path))
    assert (answer["step"], around(prefix)) == ("create", ["main"])


def test_what_a_killed_run_left_is_replaced(prefix, lock, tmp_path):
    """A run that is killed with its program brings nothing back: the next one finds half of an environment."""
    program = rattler(tmp_path)
    run(prefix, lock=lock, program=program)
    shutil.copytree(prefix, prefix.parent / ".main.former", symlinks=True)
    cut_off(prefix)
    (prefix / "bin" / "python3.12").unlink()
    answer = run(prefix, lock=lock, program=program)
    assert (answer["state"], answer["step"], around(prefix)) == ("interrupted", "rebuild", ["main"])


@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_a_run_left_that_was_killed_at_its_end_goes(prefix, lock, program, state):
    if state == "present":
        run(prefix, lock=lock, program=program)
    for name in (".main.former", ".main.packages"):
        (prefix.parent / name / "lib").mkdir(parents=True)
    before = around(prefix)
    assert run(prefix, check=True, state=state, lock=lock, program=program)["changed"] is False
    assert around(prefix) == before
    assert run(prefix, state=state, lock=lock, program=program)["changed"] is False
    assert around(prefix) == (["main"] if state == "present" else [])


def test_what_was_there_comes_back(prefix, lock, program, tmp_path):
    run(prefix, lock=lock, program=program)
    wrong = lock.replace(lock.rsplit("#sha256:", 1)[1], "0" * 64 + "\n")
    answer = run(prefix, lock=wrong, program=program)
    assert codes(answer) == ["conda_checksum"]
    assert run(prefix, lock=lock, program=program)["changed"] is False
    lacking = lock.replace("pillow-11.0", "pillow-11.1")
    assert codes(run(prefix, lock=lacking, program=program)) == ["conda_not_fetched"]
    assert run(prefix, lock=lock, program=program)["changed"] is False
    unable = micromamba(tmp_path, then="echo no room >&2; exit 7")
    overwrite(prefix)
    answer = run(prefix, lock=lock, program=unable)
    assert codes(answer) == ["conda_failed"] and answer["msg"].endswith("/micromamba ended with 7: no room.")
    assert (prefix / "lib" / "libjpeg.so").read_text() == "jpeg 3.1\n"


@pytest.mark.parametrize("check", [True, False])
def test_removal(prefix, lock, program, check):
    assert run(prefix, check=check, state="absent")["changed"] is False
    run(prefix, lock=lock, program=program)
    answer = run(prefix, check=check, state="absent")
    assert (answer["changed"], answer["step"]) == (True, "remove")
    assert prefix.exists() is check


def test_a_directory_of_somebody_else_is_left_alone(prefix, lock, program):
    prefix.mkdir(parents=True)
    (prefix / "thesis.tex").write_text("")
    for options in ({"lock": lock, "program": program}, {"state": "absent"}):
        assert codes(run(prefix, **options)) == ["conda_foreign"]
    assert (prefix / "thesis.tex").exists()


BAD = [
    ("", "conda_lock_no_mark"),
    ("https://example.org/c/linux-64/a-1-0.conda\n", "conda_lock_no_mark"),
    ("@EXPLICIT\n", "conda_lock_empty"),
    ("@EXPLICIT\nnumpy=1\n", "conda_lock_no_package"),
    ("@EXPLICIT\nhttps://example.org/c/linux-64/a-1-0.conda\n", "conda_lock_no_checksum"),
    (f"@EXPLICIT\nhttps://example.org/c/linux-64/a-1-0.conda#{'1' * 32}\n", "conda_lock_no_package"),
    (f"@EXPLICIT\nhttps://example.org/c/osx-64/a-1-0.conda#{'1' * 64}\n", "conda_platform"),
    (f"@EXPLICIT\nhttps://repo.anaconda.com/pkgs/main/linux-64/a-1-0.conda#{'1' * 64}\n", "conda_defaults"),
]


@pytest.mark.parametrize(("lock", "code"), BAD)
def test_bad_locks(prefix, lock, code):
    for check in (False, True):
        assert codes(run(prefix, check=check, lock=lock)) == [code]
    assert around(prefix) == []


def test_other_bad_input(prefix, lock):
    assert "absolute path" in run(Path("/opt"), lock=lock)["msg"]
    assert "lock" in run(prefix)["msg"]
    assert codes(run(prefix, lock=lock, program="/nowhere/conda")) == ["conda_program_missing"]


def test_where_no_directory_can_be_made(prefix, lock, tmp_path):
    prefix.parent.write_text("")
    answer = run(prefix, lock=lock, program=rattler(tmp_path))
    assert answer["msg"] == f"Environment {prefix}: [Errno 17] File exists: '{prefix.parent}'."


def test_a_program_that_cannot_start(prefix, lock, tmp_path):
    """As one that a power cut left empty, or of another architecture."""
    program = tmp_path / "micromamba"
    program.touch(mode=0o755)
    answer = run(prefix, lock=lock, program=str(program))
    assert codes(answer) == ["conda_program_old"] and f"{program} (does not answer) is too old" in answer["msg"]


@pytest.mark.parametrize("secret", ["http://me:secret@127.0.0.1:9/channel", "http://127.0.0.1:9/t/secret/channel"])
def test_nothing_that_is_shown_has_passwords(prefix, tmp_path, secret):
    lock = f"@EXPLICIT\n{secret}/linux-64/a-1-0.conda#{'1' * 64}\n"
    answer = run(prefix, lock=lock, program=rattler(tmp_path))
    assert codes(answer) == ["conda_not_fetched"]
    assert "secret" not in str({key: value for key, value in answer.items() if key != "invocation"})


def test_a_program_that_is_too_old(prefix, lock, tmp_path):
    answer = run(prefix, lock=lock, program=micromamba(tmp_path, "2.0.5"))
    assert codes(answer) == ["conda_program_old"] and "/micromamba (2.0.5) is too old" in answer["msg"]


def test_solving(prefix, channel, lock, program):
    answer = run(prefix, state="solved", specs=["pillow"], channels=[channel], program=program)
    assert (answer["changed"], sorted(answer["lock"].split())) == (False, sorted(lock.split()))
    answer = run(prefix, state="solved", specs=["pillow", "jpeg <3"], channels=[channel], program=program)
    assert run(prefix, lock=answer["lock"], program=program)["changed"] is True
    assert (prefix / "lib" / "libjpeg.so").read_text() == "jpeg 2.9\n"


@pytest.mark.parametrize(("cuda", "other"), [("11.8", "12.4"), ("12.4", "11.8")])
def test_a_metapackage_constrains_what_others_need(prefix, channel, program, cuda, other):
    """What the node's driver has is overridden as conda documents it."""
    asked = {"specs": [f"pytorch-cuda={cuda}"], "channels": [channel], "program": program}
    answer = run(prefix, state="solved", environment={"CONDA_OVERRIDE_CUDA": "12.4"}, **asked)
    assert f"/cuda-libs-{cuda}-0.conda#" in answer["lock"] and f"cuda-libs-{other}" not in answer["lock"]
    assert run(prefix, lock=answer["lock"], program=program)["changed"] is True
    assert (prefix / "lib" / "libcublas.so").read_text() == f"{cuda[:2]}\n"
    assert run(prefix, lock=answer["lock"], program=program)["changed"] is False


def test_a_package_without_platform_goes_where_its_python_looks(prefix, channel, program):
    answer = run(prefix, state="solved", specs=["six"], channels=[channel], program=program)
    assert run(prefix, lock=answer["lock"], program=program)["changed"] is True
    assert (prefix / SITE / "six.py").read_text() == "pass\n"
    assert run(prefix, lock=answer["lock"], program=program)["changed"] is False


def test_the_first_channel_that_has_a_package_counts(prefix, channel, program, tmp_path):
    site = build_channel(tmp_path / "site", [PACKAGES[2]])
    found = [
        run(prefix, state="solved", specs=["jpeg"], channels=channels, program=program)["lock"]
        for channels in ([site, channel], [channel, site])
    ]
    assert "/site/linux-64/jpeg-2.9.0-h2_0.conda#" in found[0] and "/jpeg-3.0.0-h2_1.conda#" in found[1]


@pytest.mark.parametrize(
    ("specs", "name"),
    [(["odd"], "absent"), (["nobody-has-this"], "nobody-has-this"), (["pillow", "jpeg <2"], "jpeg"), (["future"], "__glibc"),
     (["pytorch-cuda=12.4"], "cuda-libs"), (["pytorch-cuda=12.4", "cuda-libs=11.8"], "cuda-libs")],
)  # fmt: skip
def test_what_cannot_be_solved(prefix, channel, program, specs, name):
    hidden = {"CONDA_OVERRIDE_CUDA": ""}
    answer = run(prefix, state="solved", specs=specs, channels=[channel], program=program, environment=hidden)
    assert codes(answer) == ["conda_failed" if program == REAL else "conda_unsolvable"] and around(prefix) == []
    assert name in answer["msg"] and len(answer["msg"].splitlines()) == 1 and answer["msg"].count("..") == 0


def test_a_conflict_is_one_sentence(prefix, channel, tmp_path):
    asked = {"specs": ["pytorch-cuda=12.4", "cuda-libs=11.8"], "channels": [channel], "program": rattler(tmp_path)}
    assert run(prefix, state="solved", **asked)["msg"] == (
        f"Environment {prefix}: the channels have no solution: The following packages are incompatible: cuda-libs 11.8.* can be installed"
        " with any of the following options: cuda-libs 11.8; pytorch-cuda 12.4.* cannot be installed because there are no viable options:"
        " pytorch-cuda 12.4 would constrain cuda-libs 12.*, which conflicts with any installable versions previously reported."
    )


def test_a_channel_that_does_not_answer(prefix, tmp_path):
    for channel in ("http://me:secret@127.0.0.1:9/channel", f"{tmp_path}/nowhere"):
        answer = run(prefix, state="solved", specs=["jpeg"], channels=[channel], program=rattler(tmp_path))
        assert codes(answer) == ["conda_unreachable"] and "secret" not in answer["msg"] + str(answer["findings"])
        assert re.fullmatch(r"Environment \S+: a channel cannot be read: [^\n]+[^.]\.", answer["msg"]), answer["msg"]


def test_a_channel_that_never_ends(prefix, tmp_path):
    """The deadline is shortened."""
    hurried = rattler(tmp_path, f"sed 's/^SECONDS = 600 /SECONDS = 1 /' {PROGRAM} | {sys.executable} - \"$@\"")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        channel = f"http://127.0.0.1:{silent.getsockname()[1]}/channel"
        answer = run(prefix, state="solved", specs=["jpeg"], channels=[channel], program=hurried)
    assert codes(answer) == ["conda_failed"]
    assert answer["msg"].endswith("/rattler ended with 1: no solution within 1 seconds.")


def test_a_spec_that_is_none(prefix, channel, tmp_path):
    answer = run(prefix, state="solved", specs=["jpeg =="], channels=[channel], program=rattler(tmp_path))
    assert codes(answer) == ["conda_failed"] and "/rattler ended with 1: " in answer["msg"]


@pytest.mark.parametrize("name", ["defaults", "https://repo.anaconda.com/pkgs/main"])
def test_no_channel_of_anaconda_unless_asked(prefix, name):
    answer = run(prefix, state="solved", specs=["python"], channels=["conda-forge", name], program="/nowhere/conda")
    assert codes(answer) == ["conda_defaults"]
    assert answer["msg"] == (
        f"Environment {prefix}: {name} is one of Anaconda's own channels, which have terms of their own: name conda-forge or a mirror,"
        " or set allow_defaults to true where your licence covers them."
    )
    allowed = run(
        prefix, state="solved", specs=["python"], channels=[name], program="/nowhere/conda", allow_defaults=True
    )
    assert codes(allowed) == ["conda_program_missing"]
