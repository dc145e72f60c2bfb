# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""UEFI with Secure Boot on a lab host: firmware variables as files, which the real mokutil reads and writes.

Keys, signatures and the request to enrol are real; the console (MokManager) and the kernel's refusal are stand-ins.
"""

from pathlib import Path

from ..podman import podman

FILES = Path(__file__).parent / "files"
SETUP = """
set -eu
install -d /var/lib/lab-firmware/efi/efivars
cd /var/lib/lab-firmware/efi/efivars
printf '\\006\\000\\000\\000\\001' > SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
printf '\\006\\000\\000\\000\\000' > SetupMode-8be4df61-93ca-11d2-aa0d-00e098032b8c
{shim}
sed -i '1i #!/usr/bin/python3' /usr/local/sbin/lab-firmware
chmod 755 /usr/local/sbin/lab-firmware /usr/local/bin/mokutil
systemctl daemon-reload
systemctl enable -q --now lab-firmware.service
"""
# What shim hands over where nothing was enrolled yet: its vendor's certificate, here an empty list.
SHIM = "printf '\\006\\000\\000\\000' > MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
PLACES = {
    "lab-firmware": "/usr/local/sbin/lab-firmware",
    "mokutil": "/usr/local/bin/mokutil",
    "lab-firmware.service": "/etc/systemd/system/lab-firmware.service",
}


def install(host, shim=True):
    """Give a running host Secure Boot, from now on and after every boot; without shim, no key can be enrolled."""
    for name, place in PLACES.items():
        podman("cp", FILES / name, f"{host}:{place}")
    podman("exec", "--interactive", host, "sh", input_text=SETUP.format(shim=SHIM if shim else ":"))
