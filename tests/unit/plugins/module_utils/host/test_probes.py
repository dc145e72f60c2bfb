# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import sys
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import probes


def test_a_program_that_is_missing():
    code, lines = probes.run(["allreduce-no-such-program"])
    assert code is None
    assert lines[0].startswith("allreduce-no-such-program does not start: ")


def test_a_program_that_takes_too_long():
    assert probes.run([sys.executable, "-c", "import time; time.sleep(30)"], timeout=0.2)[0] is None


@pytest.mark.parametrize("own", ["", "setsid "])
def test_children_of_a_program_that_takes_too_long_are_not_waited_for(own):
    """runuser waits for a child, which keeps the output open; one in a session of its own is out of reach."""
    before = time.monotonic()
    assert probes.run(["sh", "-c", own + "sleep 20; true"], timeout=0.2)[0] is None
    assert time.monotonic() - before < 10


def test_children_of_a_program_that_takes_too_long_end_with_it(tmp_path):
    probes.run(["sh", "-c", f"(sleep 1; touch {tmp_path}/there) & wait"], timeout=0.2)
    time.sleep(1.5)
    assert not list(tmp_path.iterdir())


def test_lines_of_both_outputs_without_empty_ones():
    code, lines = probes.run(
        [sys.executable, "-c", "import sys; print('a'); print(); print('b', file=sys.stderr); sys.exit(3)"]
    )
    assert (code, sorted(lines)) == (3, ["a", "b"])


def test_imports_answer_for_each_module(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    answer = probes.probe_environment("main", ["json", "no_such_module"], None)
    assert answer["json"] == {"version": "2.0.9"}
    assert answer["no_such_module"]["error"].startswith("ModuleNotFoundError")


@pytest.mark.parametrize(
    "said",
    ["print('[W1130 init.cpp] bye', file=sys.stderr)", "print(5)", "print('{}')", "print('[]')", "print('null')"],
)
def test_what_packages_print_as_they_end_is_not_the_answer(tmp_path, monkeypatch, said):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "talker.py").write_text(f"import atexit, sys\n__version__ = '1'\natexit.register(lambda: {said})\n")
    assert probes.probe_environment("main", ["talker"], None) == {"talker": {"version": "1"}}


TORCH = """
__version__ = "2.3.1"
class version: cuda = "12.1"
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
    class nccl: version = staticmethod(lambda: (2, 20, 5))
class backends:
    class cudnn: version = staticmethod(lambda: 8902)
"""
WITHOUT_CUDA = """
__version__ = "2.3.1+cpu"
class version: cuda = None
class cuda:
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
class backends:
    class cudnn: version = staticmethod(lambda: None)
"""


@pytest.mark.parametrize(
    ("source", "libraries"),
    [
        (TORCH, {"cuda": "12.1", "cudnn": 8902, "nccl": [2, 20, 5]}),
        (WITHOUT_CUDA, {"cuda": None, "cudnn": None, "nccl": None}),
    ],
)
def test_pytorch_tells_what_it_brings(tmp_path, monkeypatch, source, libraries):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "torch.py").write_text(source, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = probes.probe_environment("main", ["torch"], None)["torch"]
    assert (answer["libraries"], answer["cuda_available"]) == (libraries, False)


HOROVOD = """
def extension_available(name): return {"torch": True, "tensorflow": False, "mxnet": True}[name]
gloo_built = nccl_built = lambda: True
def mpi_built(): raise OSError("the process that loads it has ended")
ddl_built = ccl_built = mpi_built
"""


def test_horovod_tells_what_it_was_compiled_with(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "horovod" / "common").mkdir(parents=True)
    (tmp_path / "horovod" / "__init__.py").write_text("__version__ = '0.28.1'\n", encoding="utf-8")
    (tmp_path / "horovod" / "common" / "util.py").write_text(HOROVOD, encoding="utf-8")
    # What was compiled is a library; Horovod calls a framework built whose part can be imported without it.
    for name in ("torch", "tensorflow"):
        (tmp_path / "horovod" / name).mkdir()
        (tmp_path / "horovod" / name / "mpi_lib_v2.cpython-310-x86_64-linux-gnu.so").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = probes.probe_environment("main", ["horovod"], None)["horovod"]
    assert answer == {
        "version": "0.28.1",
        "build": {"frameworks": ["torch"], "controllers": ["gloo"], "operations": ["nccl", "gloo"]},
    }


MPI4PY = """
__version__ = "4.1.2"
class rc: initialize = True
"""
# As mpi4py 4.1.2 does with Debian's Open MPI, and without any.
MPI = """
from mpi4py import rc
assert rc.initialize is False, "it would start to communicate"
def Get_library_version(): return "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022\\0"
"""
NO_MPI = r"raise RuntimeError('cannot load MPI library\nlibmpi.so: cannot open shared object file')"


@pytest.mark.parametrize(
    ("source", "launcher", "expected"),
    [
        (MPI, "echo 'mpirun (Open MPI) 4.1.4'; echo; echo Report", {"library": "Open MPI v4.1.4", "launcher": "mpirun (Open MPI) 4.1.4"}),
        (MPI, None, {"library": "Open MPI v4.1.4", "launcher": None}),
        (MPI, "exit 1", {"library": "Open MPI v4.1.4", "launcher": None}),
        (NO_MPI, None, {"error": "RuntimeError: cannot load MPI library"}),
    ],
)  # fmt: skip
def test_mpi4py_tells_which_mpi_it_loads(tmp_path, monkeypatch, source, launcher, expected):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    place = tmp_path / "openmpi" / "bin" / "mpirun"
    monkeypatch.setattr(probes, "IMPORTS", probes.IMPORTS.replace("/usr/bin/mpirun", str(place)))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    for name, text in {"__init__": MPI4PY, "MPI": source}.items():
        (tmp_path / "mpi4py").mkdir(exist_ok=True)
        (tmp_path / "mpi4py" / f"{name}.py").write_text(text, encoding="utf-8")
    if launcher:
        place.parent.mkdir(parents=True)
        place.write_text(f"#!/bin/sh\n{launcher}\n", encoding="utf-8")
        place.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = probes.probe_environment("main", ["mpi4py"], None)["mpi4py"]
    assert {key: answer.get(key) for key in expected} == expected


@pytest.mark.parametrize("modules", [[], ["torch"]])
@pytest.mark.parametrize(
    ("name", "program"), [("gone", None), ("silent", "exit 1"), ("damaged", "echo not found; exit 127")]
)
def test_an_environment_that_cannot_answer_says_why(tmp_path, monkeypatch, name, program, modules):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    if program:
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / name / "bin" / "python").chmod(0o755)
    assert name in probes.probe_environment(name, modules, None)["error"]


def test_names_and_unknown_users():
    assert "127.0.0.1" in probes.resolve("localhost")
    assert probes.resolve("no-such-host.invalid") == []
    peer = probes.probe_peer("localhost", "127.0.0.1", "no-such-user-here")
    assert peer["reason"] == "there is no user no-such-user-here on this node"
    assert "ssh" not in peer


def test_no_peers():
    assert probes.probe_peers({}, "nobody") == {}


# Exit codes and output of nvidia-smi -L; its wording differs between releases.
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)
MIG = [
    "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)",
    "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)",
    "  MIG 3g.20gb     Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)",
    "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-7ed6b4a1-6b8b-4a5e-9f9c-0d6c2f0f9a31)",
]


@pytest.mark.parametrize(
    ("code", "lines", "state", "count"),
    [
        (0, MIG, "listed", 2),
        (0, ["GPU 0: NVIDIA A40 (UUID: GPU-f7a8d1c2)"], "listed", 1),
        (0, [], "listed", 0),
        (0, ["GPU utilisation is not a GPU"], "listed", 0),
        (0, ["No devices found."], "no_device", 0),
        (6, ["No devices were found"], "no_device", 0),
        (6, [], "no_device", 0),
        (9, [NO_DRIVER], "no_driver", 0),
        (1, [NO_DRIVER], "no_driver", 0),
        (9, [], "no_driver", 0),
        (18, ["Failed to initialize NVML: Driver/library version mismatch", "NVML library version: 535.161"], "version_mismatch", 0),
        (255, ["Failed to initialize NVML: Driver/library version mismatch"], "version_mismatch", 0),
        (15, ["Unable to determine the device handle for GPU0000:17:00.0: GPU is lost."], "failed", 0),
        (255, ["Mismatch in versions between nvidia-smi and NVML."], "failed", 0),
        (None, ["nvidia-smi does not start: No such file or directory"], "not_started", 0),
        (None, ["nvidia-smi took longer than 60 seconds"], "not_started", 0),
    ],
)  # fmt: skip
def test_nvidia_smi_is_understood(code, lines, state, count):
    assert probes.parse_nvidia_smi(code, lines) == {"state": state, "count": count}


def test_nvidia_smi_is_run_and_understood(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA A40 (UUID: GPU-f7a8d1c2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert probes.probe_nvidia_smi() == {
        "state": "listed", "count": 1, "exit_code": 0, "lines": ["GPU 0: NVIDIA A40 (UUID: GPU-f7a8d1c2)"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "ahead"),
    [
        (["1000020.500000000"], {"least": 19.5, "most": 20.5}),
        (["Authorized use only.", "999990.000000000"], {"least": -11.0, "most": -10.0}),
        (["it is noon"], None),
        ([], None),
    ],
)
def test_how_far_a_clock_is_ahead(lines, ahead):
    """It was read some time between 1000000 and 1000001."""
    assert probes.clock_ahead(lines, 1000000.0, 1000001.0) == ahead


def test_the_clock_comes_with_ssh(monkeypatch, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nfor last; do :; done\nexec date "$last"\n')
    ssh.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(probes, "SSH", [str(ssh)])
    monkeypatch.setattr(probes, "as_user", lambda arguments, user: arguments)
    peer = probes.probe_peer("localhost", "127.0.0.1", "root")
    assert peer["ssh"] is None and -30 < peer["clock"]["least"] <= 0 <= peer["clock"]["most"] < 30


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Permission denied (publickey).' >&2; exit 255", "Permission denied (publickey)."),
        ("exit 1", "ssh ended with 1"),
    ],
)
def test_a_failed_ssh_is_no_connection(monkeypatch, tmp_path, script, why):
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n{script}\n")
    ssh.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(probes, "SSH", [str(ssh)])
    monkeypatch.setattr(probes, "as_user", lambda arguments, user: arguments)
    peer = probes.probe_peer("localhost", "127.0.0.1", "root")
    assert peer["ssh"] == why and "clock" not in peer
