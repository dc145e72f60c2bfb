# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What starts the ranks of one training on two hosts: torchrun of playbook train, Open MPI's mpirun, and horovodrun."""

import json
import subprocess

from cluster import CHECKOUT, LAB

from tests.lab import services, wheels

LAUNCHERS = ("torchrun", "elastic", "mpirun", "horovodrun")
PYTHON = "/opt/allreduce/envs/main/bin/python"
UV = "/opt/allreduce/uv/bin/uv --no-config"
FROM = "--no-index --find-links {url}"
VERSION = "0.28.1"
HOROVOD = "/opt/horovod"
HOME = "/home/trainer"
BEGAN = f"{HOME}/began"
# Each rank sums something with the others until rank 0's clock says 40 seconds, and says so.
SCRIPT = f"""
import ctypes, os, pathlib, sys, time
import torch

launcher, once = sys.argv[1], os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
if launcher == "elastic" and (os.environ["RANK"], once) == ("1", "0"):
    sys.exit("this rank fails once")
if launcher == "horovodrun":
    import horovod.torch as hvd
    hvd.init()
    rank, size = hvd.rank(), hvd.size()

    def total(one):
        return hvd.allreduce(one, op=hvd.Sum)
else:
    import torch.distributed as dist
    if launcher == "mpirun":
        os.environ.update(RANK=os.environ["OMPI_COMM_WORLD_RANK"], WORLD_SIZE=os.environ["OMPI_COMM_WORLD_SIZE"])
        mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        mpi.MPI_Init(None, None)
        double, add, world = (ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_" + name))
                              for name in ("double", "op_sum", "comm_world"))
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()

    def total(one):
        if launcher == "mpirun":
            out = torch.empty_like(one)
            pointers = (ctypes.c_void_p(one.data_ptr()), ctypes.c_void_p(out.data_ptr()))
            mpi.MPI_Allreduce(*pointers, one.numel(), double, add, world)
            dist.barrier()
            return out
        dist.all_reduce(one)
        return one

ends = None
while True:
    mine = torch.full((65536,), float(rank + 1), dtype=torch.float64)
    mine[0] = 0.0 if rank or ends is None or time.monotonic() < ends else 1.0
    summed = total(mine)
    assert summed[1:].eq(size * (size + 1) / 2).all()
    if ends is None:
        ends = time.monotonic() + 40
        pathlib.Path("{BEGAN}").touch()
    if summed[0]:
        break
    time.sleep(0.2)
pathlib.Path("{BEGAN}").write_text(f"{{size}} ranks, {{once or 0}} restarts")
if launcher == "mpirun":
    mpi.MPI_Finalize()
if launcher != "horovodrun":
    dist.destroy_process_group()  # a rank that only ends may abort over the threads of gloo
"""


def start(launcher, three, folder, strict):
    """The launcher as a running process, its ranks on both nodes; ``began`` tells when they have found each other."""
    for node in three.nodes:
        three.ask(node, f"rm -f {BEGAN}")
    script = folder / "reduce.py"
    script.write_text(SCRIPT, encoding="utf-8")
    if launcher in ("torchrun", "elastic"):
        more = {"train_script": str(script), "train_args": [launcher], "train_max_restarts": int(launcher == "elastic")}
        return three.cluster.start("playbooks/train.yml", "-e", json.dumps(more), inventory=three.inventory)
    first = three.nodes[0]
    for node in three.nodes:
        three.ask(node, f"cat > {HOME}/reduce.py <<'END'\n{SCRIPT}END")
    command = mpirun(three, strict) if launcher == "mpirun" else horovodrun(three)
    argv = [*LAB, "exec", first, "--", "runuser", "-l", "trainer", "-c", f"{command} reduce.py {launcher}"]
    return subprocess.Popen(argv, cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def began(three, node):
    """Whether the ranks have found each other."""
    return three.ask(node, f"test ! -e {BEGAN} || echo yes").strip() == "yes"


def finished(launcher, three):
    """Whether the ranks of both nodes got to their end, one of them after the restart that its launcher was asked for."""
    said = sorted(three.ask(node, f"cat {BEGAN}") for node in three.nodes)
    return said == ["2 ranks, 0 restarts", f"2 ranks, {int(launcher == 'elastic')} restarts"]


def ended(three, process):
    """The end of what it printed, and no process left of a training that has not ended by itself."""
    if process.poll() is None:
        for node in three.nodes:
            three.ask(node, "pkill -KILL -u trainer || true")
    return (process.communicate(timeout=120)[0] or "")[-4000:]


def mpirun(three, strict):
    """As README of role firewall says; the process group's store is on the first node."""
    store = f"-x MASTER_ADDR={three.addresses[three.nodes[0]]} -x MASTER_PORT=29500 -x GLOO_SOCKET_IFNAME=eth0"
    options = {
        f"btl_tcp_port_{what}_v{family}": value
        for what, value in (("min", 50000), ("range", 1000))
        for family in (4, 6)
    }
    ports = " ".join(f"--mca {name} {value}" for name, value in options.items()) if strict else ""
    return f"mpirun --host {','.join(three.nodes)} -np 2 --map-by node {ports} {store} {PYTHON}"


def horovodrun(three):
    hosts = ",".join(f"{node}:1" for node in three.nodes)
    return f"{HOROVOD}/bin/horovodrun -np 2 -H {hosts} {HOROVOD}/bin/python"


def install(three):
    """Open MPI of the distribution; Horovod in an environment that sees the one the roles made, compiled where it never was."""
    served = wheels.get("horovod")
    wheel = served.directory / f"horovod-{VERSION}-cp311-cp311-linux_x86_64.whl"
    wheels.ensure("horovod")
    url = services.wheels_url(served.view)
    for node in three.nodes:
        three.install(node, "openmpi-bin")
        if not wheel.exists():
            compile_horovod(three, node, url, wheel)
        three.ask(
            node,
            f"""set -e
{UV} venv -q --clear --python {PYTHON} {HOROVOD}
{PYTHON} -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $(echo {HOROVOD}/lib/python3*/site-packages)/main.pth
{UV} pip install -q --python {HOROVOD}/bin/python {FROM.format(url=url)} --only-binary :all: horovod=={VERSION}
""",
        )


def compile_horovod(three, node, url, wheel):
    """The wheel as published but for the C++ standard, which PyTorch's headers ask for: several minutes."""
    three.install(node, "g++ cmake make python3-dev")
    tools = "/opt/horovod-build"
    three.ask(
        node,
        f"""set -e
{UV} pip install -q --python {PYTHON} {FROM.format(url=url)} --target {tools} cffi cloudpickle packaging psutil pyyaml 'setuptools<81' wheel
cd "$(mktemp -d)"
{PYTHON} -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' {url}horovod-{VERSION}.tar.gz source
tar -xzf source --strip-components=1
sed -i 's/CMAKE_CXX_STANDARD 14/CMAKE_CXX_STANDARD 20/' CMakeLists.txt horovod/torch/CMakeLists.txt
export PYTHONPATH={tools} HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITHOUT_TENSORFLOW=1
export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_CPU_OPERATIONS=GLOO
{PYTHON} setup.py -q bdist_wheel -d /root/horovod >build.log 2>&1 || {{ tail -20 build.log; exit 1; }}
""",
    )
    argv = [*LAB, "exec", node, "--", "cat", f"/root/horovod/{wheel.name}"]
    built = subprocess.run(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, check=True).stdout
    part = wheel.with_suffix(".part")
    part.write_bytes(built)
    part.rename(wheel)
