# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true on a converged Debian 12 host."""

import json

import pytest

DRIVER = (
    "nvidia-kernel-dkms",
    "nvidia-smi",
    "libcuda1",
    "libnvidia-ml1",
    "nvidia-persistenced",
)


@pytest.mark.parametrize("name", DRIVER)
def test_driver_packages_are_of_branch_535(host, name):
    package = host.package(name)
    assert package.is_installed
    assert package.version.startswith("535.")


def test_kernel_module_is_built(host):
    status = host.check_output("dkms status")
    assert "535." in status
    assert ": installed" in status
    modules = host.check_output("find /lib/modules -name 'nvidia*.ko*' -printf '%f '")
    for module in ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-peermem"):
        assert any(
            name in modules
            for name in (f"{module}.ko", f"{module}-current.ko", f"{module.replace('nvidia', 'nvidia-current')}.ko")
        )


def test_the_first_host_compiles_for_both(host):
    compiled = host.check_output("find /var/lib/dkms -path '*/log/make.log'")
    assert bool(compiled) == host.check_output("hostname").endswith("-1")
    left = host.check_output("find /etc/dkms -name 'nvidia*' ; find /var/lib/allreduce -name 'kernel-module*'")
    assert left == ""


def test_nvidia_smi_is_the_real_one(host):
    """NVIDIA's program notices that the NVML of a simulated machine is not its own."""
    said = host.check_output("/usr/bin/nvidia-smi || echo ended with $?")  # 255: testinfra would take it for ssh's own
    assert "Mismatch in versions between nvidia-smi and NVML" in said
    assert "ended with" in said


def test_the_loaded_driver_is_the_installed_one(host):
    installed = host.package("nvidia-kernel-dkms").version.partition("-")[0]
    assert installed in host.file("/proc/driver/nvidia/version").content_string


def test_gpu_facts_measure_the_machine(gpu_node):
    assert gpu_node["driver"]["nvml"] == "ok"
    assert [gpu["name"] for gpu in gpu_node["gpus"]] == ["NVIDIA A100-SXM4-40GB"] * 4
    assert [gpu["seen_by"] for gpu in gpu_node["gpus"]] == [["pci", "nvml"]] * 4
    assert gpu_node["topology"]["GPU0"]["GPU1"] == "NV4"
    assert [nic["name"] for nic in gpu_node["nics"]] == ["mlx5_0", "mlx5_1"]


def test_gpus_have_the_declared_settings(host, gpu_node):
    assert [gpu["power_limit_watts"]["current"] for gpu in gpu_node["gpus"]] == [250] * 4
    assert all(gpu["persistence_mode"] for gpu in gpu_node["gpus"])
    assert host.service("allreduce-gpu-settings").is_enabled
    # As at the next boot, within its sandbox.
    host.check_output("systemctl restart allreduce-gpu-settings")
    assert host.check_output("systemctl show -P ConditionResult allreduce-gpu-settings") == "yes"


def test_the_timer_finds_the_node_well(host):
    """Within its sandbox; the timer runs the same unit."""
    assert host.service("allreduce-health.timer").is_running
    host.check_output("systemctl start allreduce-health")
    found = json.loads(host.file("/var/lib/allreduce/health/health.json").content_string)
    assert (found["verdict"], found["findings"]) == ("ok", [])


def test_pin_wins_over_a_newer_branch(host):
    policy = host.check_output("apt-cache policy nvidia-kernel-dkms")
    assert "535." in policy.split("Candidate:")[1].splitlines()[0]
    assert "Pin" in host.check_output("cat /etc/apt/preferences.d/*")


def test_unattended_upgrades_leave_the_stack_alone(host):
    listed = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert "nvidia" in listed


def test_time_is_kept(host):
    service = host.service("chrony")
    assert service.is_enabled
    assert service.is_running


def test_modules_find_nvml_binding(host):
    said = host.check_output("PYTHONPATH=/opt/allreduce/lib python3 -c 'import pynvml; print(pynvml.__file__)'")
    assert said == "/opt/allreduce/lib/pynvml.py"


def test_torch_computes(host):
    program = "import torch; print(torch.__version__, (torch.ones(3) @ torch.ones(3)).item())"
    said = host.check_output(f"/opt/allreduce/envs/main/bin/python -c '{program}'")
    assert said == "2.13.0+cpu 3.0"


@pytest.mark.parametrize(
    ("path", "user", "mode"),
    [
        ("/etc/allreduce", "root", 0o755),
        ("/opt/allreduce", "root", 0o755),
        ("/opt/allreduce/envs/main/.", "root", 0o755),
        ("/opt/allreduce/cache/uv", "root", 0o700),
        ("/var/lib/allreduce", "root", 0o755),
        ("/opt/allreduce/lib/pynvml.py", "root", 0o644),
        ("/home/trainer/.bashrc", "trainer", 0o640),
        ("/home/trainer/.ssh", "trainer", 0o700),
        ("/home/trainer/.ssh/id_ed25519", "trainer", 0o600),
    ],
)
def test_owner_and_mode(host, path, user, mode):
    entry = host.file(path)
    assert entry.user == user
    assert entry.mode == mode


def test_training_user_has_no_privileges(host):
    user = host.user("trainer")
    assert user.exists
    assert user.groups == ["trainer"]
    assert (
        host.run("sudo -l -U trainer")
        .stdout.strip()
        .endswith("is not allowed to run sudo on " + host.check_output("hostname") + ".")
    )
