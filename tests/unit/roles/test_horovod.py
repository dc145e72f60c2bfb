# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program with which role horovod compiles (what it makes of a source, of a log, of what the unit gave), and the wheel's way."""

import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.local_play import run_roles

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "roles" / "horovod" / "files" / "compile.py"
SPEC = importlib.util.spec_from_file_location("compile_horovod", PROGRAM)
compile_horovod = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(compile_horovod)
NAME = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
# A setup.py that compiles nothing, and says what it was given.
SETUP = """
import json, os, pathlib, sys
place = pathlib.Path(sys.argv[sys.argv.index("--dist-dir") + 1])
place.mkdir()
said = {name: os.environ[name] for name in ("PYTHONPATH", "MAKEFLAGS", "HOROVOD_WITH_GLOO")}
said["cmake"] = pathlib.Path("CMakeLists.txt").read_text()
print("chatter")
(place / "NAME").write_text(json.dumps(said))
""".replace("NAME", NAME)


def wheel():
    """The bytes of an archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("horovod/__init__.py", "")
    return content.getvalue()


def test_a_wheel_is_kept_with_its_checksum(tmp_path):
    part = tmp_path / "x.part"
    part.write_bytes(NAME.encode() + b"\n" + wheel())
    kept = compile_horovod.keep(tmp_path, part)
    assert kept["file"] == NAME and (tmp_path / NAME).read_bytes() == wheel()
    assert (tmp_path / "wheel.sha256").read_text() == f"{kept['sha256']}  {NAME}\n"
    assert not part.exists()


def test_a_wheel_is_on_the_disk_before_its_checksum_is(tmp_path, monkeypatch):
    """After a power cut, a checksum would vouch for a wheel that is empty."""
    part = tmp_path / "x.part"
    part.write_bytes(NAME.encode() + b"\n" + wheel())
    seen = []

    def fsync(handle):
        seen.append((os.path.getsize(handle), (tmp_path / "wheel.sha256").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    compile_horovod.keep(tmp_path, part)
    assert seen == [(len(wheel()), False)]


@pytest.mark.parametrize(("content", "known"), [(b"half", False), (b"whole", True)])
def test_a_wheel_that_is_damaged_is_forgotten(tmp_path, content, known):
    """The next run compiles it, or brings it, again."""
    (tmp_path / NAME).write_bytes(content)
    (tmp_path / "wheel.sha256").write_text("…")
    tasks = yaml.safe_load((ROOT / "roles" / "horovod" / "tasks" / "install.yml").read_text(encoding="utf-8"))
    task = next(one for one in tasks if one["name"].startswith("Install the wheel"))
    del task["block"][0]["notify"]
    wanted = {"file": NAME, "sha256": hashlib.sha256(b"whole").hexdigest()}
    variables = {
        "__horovod_name": "main", "__horovod_directory": str(tmp_path), "__horovod_wheel": wanted, "__python_env_umask": ["/bin/false"],
        "__python_env_uv": "uv", "__horovod_python": "python", "__python_env_tool_environment": {},
    }  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]))
    (tmp_path / "facts.json").write_text(json.dumps({**variables, "ansible_python_interpreter": sys.executable}))
    settings = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"), "ANSIBLE_NOCOLOR": "1"}
    command = [
        sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", "play.yml", "-e", "@facts.json",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert "Cannot install Horovod in environment main" in done.stdout
    assert (tmp_path / "wheel.sha256").exists() is known, done.stdout


@pytest.mark.parametrize("content", [b"", b"error\n", b"../../etc/passwd\nroot", NAME.encode() + b"\nPK"])
def test_what_is_no_wheel_gets_no_checksum(tmp_path, content):
    part = tmp_path / "x.part"
    part.write_bytes(content)
    with pytest.raises(SystemExit, match="the compilation gave"):
        compile_horovod.keep(tmp_path, part)
    assert not (tmp_path / "wheel.sha256").exists()


@pytest.mark.parametrize(
    "text", ["set(CMAKE_CXX_STANDARD 14)", "    set(CMAKE_CXX_STANDARD  14) # x\nset(CMAKE_CXX_STANDARD 17)"]
)
def test_the_standard_is_raised(tmp_path, text):
    path = tmp_path / "CMakeLists.txt"
    path.write_text(text)
    compile_horovod.raise_standard(path, 14, 20)
    assert path.read_text() == text.replace("14)", "20)")


def test_a_source_that_sets_another_standard_is_refused(tmp_path):
    path = tmp_path / "CMakeLists.txt"
    path.write_text("set(CMAKE_CXX_STANDARD 17)\nset(CMAKE_CXX_STANDARD_REQUIRED ON)\n")
    with pytest.raises(SystemExit, match="CMakeLists.txt sets no C\\+\\+ standard 14"):
        compile_horovod.raise_standard(path, 14, 20)


@pytest.fixture
def toolkit(tmp_path):
    """A directory as a toolkit and NCCL leave it, and the flags that name it; the compiler is this machine's."""
    for name in ("bin/nvcc", "include/nccl.h"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("#include <cuda_runtime.h>\n")
    (tmp_path / "bin" / "nvcc").chmod(0o755)
    return tmp_path, {"HOROVOD_GPU": "CUDA", "HOROVOD_CUDA_HOME": str(tmp_path)}


def test_a_toolkit_with_nccl_lacks_nothing(toolkit):
    assert compile_horovod.missing(toolkit[1]) is None


def test_a_build_for_processors_needs_neither():
    assert compile_horovod.missing({"HOROVOD_CUDA_HOME": "/nowhere"}) is None


def test_nvcc_is_missing(toolkit):
    place, flags = toolkit
    (place / "bin" / "nvcc").unlink()
    said = f"there is no {place}/bin/nvcc; install the CUDA toolkit first (--tags cuda_toolkit)"
    assert compile_horovod.missing(flags) == said


@pytest.mark.skipif(Path("/usr/include/nccl.h").exists(), reason="this machine has NCCL's header")
def test_the_header_of_nccl_is_missing(toolkit):
    place, flags = toolkit
    (place / "include" / "nccl.h").unlink()
    assert compile_horovod.missing(flags) == "NCCL's header nccl.h is missing; install it first (--tags nccl)"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("a\nx.cc:1:2: error: 'y' was not declared.\nmake: *** Error 2\n", "x.cc:1:2: error: 'y' was not declared"),
        ("CMake Error at CMakeLists.txt:3\nmore\n", "CMake Error at CMakeLists.txt:3"),
        (
            "CMake Error at /x/FindPackageHandleStandardArgs.cmake:165 (message):\n  Could NOT find NCCL (missing: NCCL_LIBRARY)\n",
            "CMake Error at /x/FindPackageHandleStandardArgs.cmake:165 (message): Could NOT find NCCL (missing: NCCL_LIBRARY)",
        ),
        ("a\nlast\n", "last"),
        ("", "it said nothing"),
    ],
)
def test_the_first_error_is_the_reason(log, said):
    assert compile_horovod.reason(log, 1) == f"the compilation ended with 1 ({said})"


def test_the_source_is_compiled_with_what_the_recipe_says(tmp_path, monkeypatch, capfdbinary):
    with tarfile.open(tmp_path / "source.tar.gz", "w:gz") as archive:
        for name, text in (("setup.py", SETUP), ("CMakeLists.txt", "set(CMAKE_CXX_STANDARD 14)")):
            one = tarfile.TarInfo(f"horovod-0.28.1/{name}")
            one.size = len(text)
            archive.addfile(one, io.BytesIO(text.encode()))
    monkeypatch.setenv("JOBS", "3")
    monkeypatch.setattr(compile_horovod.tempfile, "mkdtemp", lambda dir: str(tmp_path / "work"))  # noqa: A002
    source = {"file": "source.tar.gz", "standard": 14, "standard_files": ["CMakeLists.txt"]}
    compile_horovod.compile_here(
        tmp_path, {"source": source, "cxx_standard": 20, "environment": {"HOROVOD_WITH_GLOO": "1"}}
    )
    name, dummy, content = capfdbinary.readouterr().out.partition(b"\n")
    assert name.decode() == NAME
    assert json.loads(content) == {
        "PYTHONPATH": str(tmp_path / "tools"),
        "MAKEFLAGS": "-j3",
        "HOROVOD_WITH_GLOO": "1",
        "cmake": "set(CMAKE_CXX_STANDARD 20)",
    }


def test_the_unit_reaches_no_network_and_ends():
    argv = compile_horovod.command(Path("/x"), {"jobs": 2, "timeout": 60})
    assert {
        "--property=PrivateNetwork=yes",
        "--property=DynamicUser=yes",
        "--property=RuntimeMaxSec=60",
        "--setenv=JOBS=2",
    } <= set(argv)
    assert argv[-2:] == ["/x/compile.py", "inside"]


def test_a_wheel_reaches_a_node_that_has_compiled_nothing(tmp_path):
    """Where not even the directory of the wheels is. Each host has a cache of its own, as if it were another machine."""
    built = tmp_path / "builder" / "cache" / "digest"
    built.mkdir(parents=True)
    with zipfile.ZipFile(built / NAME, "w") as archive:
        for name in ("horovod/__init__.py", "horovod-0.28.1.dist-info/METADATA", "horovod-0.28.1.dist-info/RECORD"):
            archive.writestr(name, "")
    content = (built / NAME).read_bytes()
    facts = {
        "__horovod_plan": {"digest": {"host": "builder", "receivers": ["taker"], "version": "0.28.1"}},
        "__horovod_wheels": {"digest": {"file": NAME, "sha256": hashlib.sha256(content).hexdigest()}},
    }
    cache = {"__horovod_cache": f"{tmp_path}/{{{{ inventory_hostname }}}}/cache"}
    (tmp_path / "taker").mkdir()
    run = run_roles(tmp_path, ["horovod/distribute"], facts, "-e", json.dumps(cache), hosts=("builder", "taker"))
    assert run.status == 0, run.output
    taken = tmp_path / "taker" / "cache" / "digest"
    assert (taken / NAME).read_bytes() == content
    assert [path.stat().st_mode & 0o777 for path in (taken.parent, taken, taken / NAME)] == [0o755, 0o755, 0o644]
