# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts behind a proxy that inspects: no route outside, a password, and certificates of an authority that is not known yet.

The proxy (squid) runs in the services container. What is outside is reached over https, by names that only the proxy can
resolve: the stub mirror and the wheels, behind a certificate of another authority, which only the proxy trusts. Debian's
archive is reached over http.
"""

import subprocess
import urllib.parse
from pathlib import Path

from .. import network, paths, services
from ..podman import podman
from ..progress import say

PORT = 3128
USER = "lab"
PASSWORD = "Open/Sesame@42%"  # characters that must be encoded in an address
MIRROR = "mirror.outside.test"
WHEELS = "wheels.outside.test"
HOME = paths.LAB / "proxy"
FILES = Path(__file__).parent
PLACE = "/etc/lab-proxy"  # in the services container

# {authority}: the one that inspects, whom the hosts are told to trust, and the one of the servers outside.
CERTIFICATES = f"""
set -eu
umask 077
for authority in inspecting outside; do
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/O=allreduce lab/CN=$authority authority" \\
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout $authority.key -out $authority.crt
done
openssl req -newkey rsa:2048 -nodes -subj /CN={MIRROR} -keyout server.key -out server.csr
printf 'subjectAltName=DNS:{MIRROR},DNS:{WHEELS}\\nextendedKeyUsage=serverAuth\\n' > server.ext
openssl x509 -req -in server.csr -CA outside.crt -CAkey outside.key -CAcreateserial -days 3650 -extfile server.ext -out server.crt
chmod 644 *.crt
"""

SETUP = f"""
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends squid-openssl >/tmp/squid.log 2>&1 || {{ tail -3 /tmp/squid.log >&2; exit 1; }}
printf '127.0.1.1 {MIRROR}\\n127.0.1.2 {WHEELS}\\n' > {PLACE}/hosts
printf '{USER}:%s\\n' "$(printf %s '{PASSWORD}' | openssl passwd -apr1 -stdin)" > {PLACE}/passwords
chown -R proxy: {PLACE}
[ -d /var/lib/squid/ssl_db ] || su -s /bin/sh proxy -c '/usr/lib/squid/security_file_certgen -c -s /tmp/ssl_db -M 4MB' >/dev/null
mkdir -p /var/lib/squid
[ -d /var/lib/squid/ssl_db ] || mv /tmp/ssl_db /var/lib/squid/
cp {PLACE}/squid.conf /etc/squid/squid.conf
systemctl restart squid
systemctl is-active -q outside-mirror || systemd-run --quiet --unit=outside-mirror \\
  python3 {PLACE}/tls.py 127.0.1.1 {services.MIRROR_PORT} {PLACE}/server.crt {PLACE}/server.key
systemctl is-active -q outside-wheels || systemd-run --quiet --unit=outside-wheels \\
  python3 {PLACE}/tls.py 127.0.1.2 {services.WHEELS_PORT} {PLACE}/server.crt {PLACE}/server.key
"""

# SSH and the other hosts stay in reach. Rules are of the protocols alone (6 and 17: TCP and UDP), so that the host still
# has a default route to tell others about, as behind a real firewall.
CONFINE = """
cat > /usr/local/sbin/lab-confine <<'END'
#!/bin/sh
set -eu
ip rule flush
ip rule add pref 100 to {services} ipproto 6 dport {port} lookup main
ip rule add pref 101 to {services} ipproto 6 unreachable
ip rule add pref 102 to {subnet} lookup main
ip rule add pref 103 ipproto 6 unreachable
ip rule add pref 104 ipproto 17 dport 1-65534 unreachable
ip rule add pref 32766 lookup main
ip rule add pref 32767 lookup default
END
chmod 755 /usr/local/sbin/lab-confine
cat > /etc/systemd/system/lab-confine.service <<'END'
[Unit]
Description=Keep this host from everything but its proxy and its neighbours
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-confine
[Install]
WantedBy=sysinit.target
END
systemctl daemon-reload
systemctl enable -q --now lab-confine.service
rm -f /etc/apt/apt.conf.d/01lab-cache
"""


def url():
    """Return the proxy's address with user and password, as an inventory has it."""
    return f"http://{USER}:{urllib.parse.quote(PASSWORD, safe='')}@{network.services_address()}:{PORT}"


def mirror_url(view):
    """URL of the stub repositories from behind the proxy; VIEW as in services.mirror_url."""
    return f"https://{MIRROR}/{view}"


def wheels_url(view):
    """URL of a wheel directory from behind the proxy; VIEW as in services.wheels_url."""
    return f"https://{WHEELS}/{view}"


def authority():
    """File with the certificate of the authority that inspects."""
    return HOME / "inspecting.crt"


def ensure():
    """Start the proxy, and what is outside, in the services container."""
    _make_certificates()
    running = podman(
        "exec", services.NAME, "systemctl", "is-active", "squid", "outside-mirror", "outside-wheels", check=False
    )
    if running.split() == ["active"] * 3:
        return
    say("starting the inspecting proxy")
    podman("exec", services.NAME, "mkdir", "-p", PLACE)
    for file in (
        *HOME.glob("*.crt"),
        HOME / "inspecting.key",
        HOME / "server.key",
        FILES / "squid.conf",
        FILES / "tls.py",
    ):
        podman("cp", str(file), f"{services.NAME}:{PLACE}/{file.name}")
    podman("exec", "--interactive", services.NAME, "sh", input_text=SETUP)


def confinement():
    """Shell lines that leave a host no way outside but the proxy, from now on and after every boot."""
    return CONFINE.format(services=network.services_address(), subnet=network.ensure(), port=PORT)


def variables(view):
    """Return the variables of the inventory of hosts behind the proxy about it."""
    return {
        "base_http_proxy": url(),
        "base_https_proxy": url(),
        "base_ca_certificates": [str(authority())],
        "python_env_find_links": [wheels_url(view)],
    }


def _make_certificates():
    if (HOME / "server.crt").exists():
        return
    HOME.mkdir(parents=True, exist_ok=True)
    subprocess.run(["sh"], input=CERTIFICATES, cwd=HOME, capture_output=True, text=True, check=True)
