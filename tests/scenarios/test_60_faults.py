# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong while packages are installed: a clear sentence, no half-configured host, and the next run converges."""

import os
import time

import pytest
from cluster import CHECKOUT, KEEP
from fault_host import QUICK_LOCKS, FaultHost, stopped

pytestmark = pytest.mark.lab

KEYS = CHECKOUT / ".cache" / "lab" / "mirror" / "keys"
LAB = os.environ.get("ALLREDUCE_FAULTS", "faults")  # another name lets two run beside each other
OURS = "*compute/cuda*"  # the repository of the CUDA packages alone; the distribution's archive stays well


@pytest.fixture(scope="class")
def host(request):
    """The class's host; the one of the class before is gone."""
    made = FaultHost(
        f"{LAB}-{request.cls.distribution}", request.cls.distribution, request.cls.machine, request.cls.wanted
    )
    yield made
    if not KEEP:
        made.down()


class Repository:
    """The repository is refused, its entry goes, and a repaired one is taken."""

    @pytest.fixture
    def fresh(self, host):
        host.forget_repository()
        return host

    def refuses(self, host, fault, *words):
        with host.fault(fault):
            message = stopped(host.stack("repository"), "/compute/cuda/repos/", host.host, *words)
        assert message.startswith("The repository http"), message
        left = host.run("ls /etc/apt/sources.list.d /etc/yum.repos.d 2>/dev/null", check=False)
        assert "allreduce-cuda" not in left, left
        host.is_sound()
        again = host.stack("repository")
        assert again.status == 0, again.output[-4000:]
        assert again.recap[host.host]["changed"] > 0


class Driver(Repository):
    """What is installed from it, too."""

    @pytest.fixture
    def without_driver(self, host):
        host.forget_driver()
        yield host
        host.behave()

    def test_00_the_host_is_ready(self, host):
        """What the cases need: a host with all but the driver."""
        run = host.stack("base,repository")
        assert run.status == 0, run.output[-6000:]


def unknown_key():
    return (KEYS / "unknown.fingerprint").read_text(encoding="utf-8").strip()[-16:]


class TestUbuntu(Driver):
    """apt and dpkg."""

    distribution, machine, wanted = "ubuntu2204", "dgx-a100", {"driver": "550"}

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (f"unavailable:{OURS}", ["answers 503", "wait until", "cuda_repository_mirror"]),
            (f"missing:{OURS}", ["there is no repository at", "correct cuda_repository_mirror"]),
            ("truncated", ["do not match", "repeat its synchronisation"]),
            (f"wrong-signature:{OURS}", ["signature", "does not match its index", "repeat its synchronisation"]),
            (f"unknown-key:{OURS}", ["signed with a key", "cuda_repository_key_fingerprint"]),
            (f"expired:{OURS}", ["has expired", "clock"]),
        ],
        ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
    )
    def test_repository(self, fresh, fault, words):
        words = [*words, unknown_key()] if "unknown" in fault else words
        self.refuses(fresh, fault, *words)

    def test_repository_is_signed_anew_while_the_host_has_old_lists(self, host):
        host.run("rm -f /etc/apt/sources.list.d/allreduce-*")
        self.refuses(host, f"unknown-key:{OURS}", "signed with a key", unknown_key())

    def test_one_of_two_suites_breaks_off(self, host):
        """This apt's own default waits forever, see the role's README."""
        assert host.stack("base,repository").status == 0
        ended = {}
        with host.fault("broken-connection:*jammy-updates/InRelease"):
            for delay in "true", "":
                option = f"-o Acquire::Retries::Delay={delay}" if delay else ""
                read = f"timeout 20 apt-get {option} -q update >/dev/null 2>&1; echo $?"
                ended[delay] = host.run(f"rm -rf /var/lib/apt/lists/*; {read}").strip()
        assert ended["true"] == "124"
        assert ended[""] != "124"

    def test_package_vanished_between_index_and_download(self, without_driver):
        host = without_driver
        with host.fault("vanished:*libnvidia-compute*"):
            stopped(host.stack("driver"), "libnvidia-compute-550", "no longer in the repository", "synchronisation")
        host.is_sound()
        assert host.driver() is None
        host.converges()

    def test_headers_vanished_from_the_archive(self, without_driver):
        host = without_driver
        host.run("apt-get -y -q purge 'linux-headers-*' >/dev/null 2>&1; rm -f /var/cache/apt/archives/*.deb")
        with host.fault("vanished:*linux-headers*"):
            stopped(host.stack("base"), host.host, "linux-headers", "no longer in the repository")
        host.is_sound()

    def test_kernel_without_headers(self, without_driver):
        host = without_driver
        host.run("apt-get -y -q purge 'linux-headers-*' >/dev/null 2>&1")
        run = host.stack("driver", base_kernel_headers=False)
        stopped(run, "kernel module could not be built", "no headers", "set base_kernel_headers to true")
        assert host.built() == []
        host.converges()

    def test_lock_is_held(self, without_driver):
        host = without_driver
        hold = "import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep({})"
        host.run(f'systemd-run --quiet --unit=holder python3 -c "{hold.format(600)}"')
        pid = host.run("systemctl show --value -p MainPID holder").strip()
        run = host.stack("driver", **QUICK_LOCKS)
        stopped(run, "another package manager holds the lock", f"process {pid}, ", "python3", "let it finish")
        assert host.driver() is None
        host.run("systemctl stop holder")
        # Held for a while only, nothing is said: it waits.
        host.run(f'systemd-run --quiet --unit=holder2 python3 -c "{hold.format(25)}"')
        began = time.monotonic()
        host.converges()
        assert time.monotonic() - began > 10

    def test_compiler_fails(self, without_driver):
        host = without_driver
        host.run(
            "mkdir -p /etc/lab; printf 'nv.c:12: error: too few arguments\\nmake: *** nv.o Error 1\\n' > /etc/lab/dkms-build-fails"
        )
        stopped(
            host.stack("driver"),
            "kernel module could not be built",
            "make.log",
            "nv.c:12: error: too few arguments",
            "nv.o Error 1",
        )
        assert host.built() == []
        stopped(host.stack("base"), "kernel module could not be built", "make.log")
        host.run("rm /etc/lab/dkms-build-fails")
        host.converges()

    @pytest.mark.parametrize("place", ["/var/cache/apt/archives", "/usr/src"])
    def test_full_disk(self, without_driver, place):
        host = without_driver
        with host.full(place):
            stopped(host.stack("driver"), "the disk is full", "free some space")
        host.converges()

    def test_power_cut_in_the_middle_of_dpkg(self, without_driver):
        host = without_driver
        host.run("mkdir -p /etc/lab; mkfifo /etc/lab/dkms-build-fails")  # the build waits until somebody writes into it
        process = host.start_stack("driver")
        host.wait_for("pgrep -f '[b]uild.sh'")
        host.cut_the_power(process)
        host.run("rm /etc/lab/dkms-build-fails")
        assert host.run("dpkg --audit; ls /var/lib/dpkg/updates").strip(), "the kill came too late"
        host.converges()

    def test_another_branch_installed_by_hand(self, without_driver):
        host = without_driver
        by_hand = "nvidia-headless-535-server nvidia-utils-535-server"
        host.run(f"(apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -y -q install {by_hand}) >/dev/null 2>&1")
        assert host.driver().startswith("535.")
        host.converges()
        assert host.driver().startswith("550.")
        assert (
            host.run(
                "dpkg-query -W -f '${Package} ${db:Status-Abbrev}\\n' '*nvidia*535*' 2>/dev/null | grep ' ii'",
                check=False,
            )
            == ""
        )

    def test_runfile_installed_by_hand(self, without_driver):
        host = without_driver
        uninstall = "#!/bin/sh\\nrm -f /usr/bin/nvidia-uninstall /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03\\n"
        host.run(f"printf '{uninstall}' > /usr/bin/nvidia-uninstall; chmod 755 /usr/bin/nvidia-uninstall")
        host.run("touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.54.03")
        host.converges()
        assert (
            host.run("ls /usr/bin/nvidia-uninstall /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535*", check=False) == ""
        )

    def test_repositories_out_of_step(self, without_driver):
        """The driver has arrived, its fabric manager has not: the host is not fine, and says why."""
        host, newest = without_driver, {"driver": "535"}
        with host.fault("lagging"):
            host.run("apt-get -q update > /dev/null")
            run = host.stack("driver,fabric", gpu_stack_request=newest)
            stopped(
                run, "fabric manager packages", "no repository of the host has", "fabricmanager", "complete the mirror"
            )
        assert host.run("systemctl is-enabled nvidia-fabricmanager 2>/dev/null", check=False).strip() != "enabled"
        host.converges(gpu_stack_request=newest)
        assert host.run("systemctl is-enabled nvidia-fabricmanager", check=False).strip() == "enabled"


class TestUbuntu2404(Repository):
    """An apt whose policy takes no key that only SHA-1 binds."""

    distribution, machine, wanted = "ubuntu2404", "a40-pcie", {"driver": "580"}

    def test_key_rejected_by_policy(self, fresh):
        run = fresh.stack("repository", cuda_repository_key=str(KEYS / "sha1.pub"))
        stopped(run, "only SHA-1 binds", "cuda_repository_key", "driver_source: distribution")
        assert run.recap[fresh.host]["changed"] == 0
        again = fresh.stack("repository")
        assert again.status == 0, again.output[-4000:]


class TestRocky(Driver):
    """dnf and rpm."""

    distribution, machine, wanted = "rocky9", "a40-pcie", {"driver": "550"}

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (f"unavailable:{OURS}", ["answers 503", "wait until"]),
            (f"missing:{OURS}", ["there is no repository at", "correct cuda_repository_mirror"]),
            ("truncated", ["do not match", "repeat its synchronisation"]),
            (f"wrong-signature:{OURS}", ["signature", "does not match its index"]),
            (f"unknown-key:{OURS}", ["signed with a key", "cuda_repository_key_fingerprint"]),
            ("missing:*/repomd.xml.asc", ["carries no signed metadata", "cuda_repository_signed_metadata: false"]),
        ],
        ids=lambda value: value.partition(":")[0] if isinstance(value, str) else "",
    )
    def test_repository(self, fresh, fault, words):
        self.refuses(fresh, fault, *words)

    def test_mirror_without_signed_metadata(self, fresh):
        with fresh.fault("missing:*/repomd.xml.asc"):
            run = fresh.stack("repository", cuda_repository_signed_metadata=False)
        assert run.status == 0, run.output[-4000:]

    def test_package_vanished_between_index_and_download(self, without_driver):
        host = without_driver
        with host.fault("vanished:*nvidia-driver-cuda*"):
            stopped(host.stack("driver"), "nvidia-driver-cuda", "no longer in the repository", "synchronisation")
        host.is_sound()
        host.converges()

    def test_lock_is_held(self, without_driver):
        """dnf writes its process number into a file; whoever does that holds the lock while it lives."""
        host = without_driver
        host.run("systemd-run --quiet --unit=holder sleep 600")
        pid = host.run("systemctl show --value -p MainPID holder").strip()
        host.run(f"mkdir -p /var/cache/dnf; printf {pid} > /var/cache/dnf/metadata_lock.pid")
        run = host.stack("driver", **QUICK_LOCKS)
        stopped(run, "another package manager holds the lock", f"process {pid}, ", "sleep 600", "let it finish")
        assert host.driver() is None
        host.run("systemctl stop holder")
        host.converges()

    @pytest.mark.parametrize("place", ["/var/cache/dnf", "/usr/src"])
    def test_full_disk(self, without_driver, place):
        host = without_driver
        with host.full(place):
            stopped(host.stack("driver"), "the disk is full", "free some space")
        host.is_sound()
        host.converges()

    def test_compiler_fails(self, without_driver):
        host = without_driver
        host.run("mkdir -p /etc/lab; printf 'nv.c:12: error: too few arguments\\n' > /etc/lab/dkms-build-fails")
        stopped(
            host.stack("driver"), "kernel module could not be built", "make.log", "nv.c:12: error: too few arguments"
        )
        assert host.built() == []
        host.run("rm /etc/lab/dkms-build-fails")
        host.converges()

    def test_power_cut_in_the_middle_of_rpm(self, without_driver):
        host = without_driver
        host.run("mkdir -p /etc/lab; mkfifo /etc/lab/dkms-build-fails")
        process = host.start_stack("driver")
        host.wait_for("pgrep -f '[b]uild.sh'")
        host.cut_the_power(process)
        host.run("rm /etc/lab/dkms-build-fails")
        assert host.built() == [], "the kill came too late"
        host.converges()
