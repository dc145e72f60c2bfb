# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Debian that answers like an Enterprise Linux: with dnf and an RPM database of its own."""

from pathlib import Path

import yaml

from ..mirror.model import table

# dkms is set aside, see SCRIPT. Enterprise Linux's python3-libs has venv and ensurepip.
PACKAGES = ["dnf", "rpm", "python3-dnf", "python3-rpm", "python3-venv", "dnf-plugins-core", "dkms", "gnupg"]

# EL8's modules run on this Python; it is copied from where pyenv has one.
PYTHON36 = Path.home() / ".pyenv" / "versions"

REPOSITORIES = Path(__file__).with_name("el_repositories.yml")

# Of a registered host: switches repositories in the file that is its own, and refuses others.
SUBSCRIPTION = """\
cat > /usr/sbin/subscription-manager <<'END'
#!/bin/sh
set -e
file=/etc/yum.repos.d/redhat.repo
[ "$1" = repos ] || exit 64
shift
for option; do
  id=${option#--enable=}
  grep -qxF "[$id]" $file || { echo "Error: '$id' does not match a valid repository ID." >&2; exit 1; }
  sed -i "/^\\[$id\\]/,/^enabled=/s/^enabled=.*/enabled=1/" $file
  echo "Repository '$id' is enabled for this system."
done
END
chmod 755 /usr/sbin/subscription-manager
"""

SCRIPT = """\
printf '%s\\n' '{release}' > "$root/etc/redhat-release"
ln -sf redhat-release "$root/etc/system-release"
rm -f "$root/etc/debian_version" "$root/etc/lsb-release"
# RPMs bring 64-bit libraries there.
echo /usr/lib64 > "$root/etc/ld.so.conf.d/lib64.conf"
mkdir -p "$root/etc/yum.repos.d" "$root/etc/dnf/vars" "$root/usr/libexec/lab" "$root/etc/pki/rpm-gpg"
# The package dkms brings it back (tests/lab/mirror/data/distribution_el.yml).
mv "$root/usr/sbin/dkms" "$root/usr/libexec/lab/dkms"
# Debian's Python serves dnf and Ansible's modules, as /usr/bin/python3; its own name is left to the distribution's packages.
for program in "$root"/usr/bin/python3.[0-9]*; do
  case $program in *-*) rm "$program" ;; *) mv "$program" "$root/usr/libexec/lab/" && name=${{program##*/}} ;; esac
done
ln -sf "../libexec/lab/$name" "$root/usr/bin/python3"
ln -sf /usr/bin/update-alternatives "$root/usr/sbin/alternatives"
ln -sf dnf "$root/usr/bin/yum"
# Debian's rpm keeps the database in the home directory, dnf finds no release there, and a plugin wants a repository.
mkdir -p "$root/etc/rpm"
echo '%_dbpath /var/lib/rpm' > "$root/etc/rpm/macros"
echo '{version}' > "$root/etc/dnf/vars/releasever"
rm -f "$root/etc/dnf/plugins/local.conf" "$root/usr/lib/python3/dist-packages/dnf-plugins/local.py"
mkdir -p "$root/etc/pki/ca-trust/source/anchors"
cat > "$root/usr/bin/update-ca-trust" <<'END'
#!/bin/sh
cp /etc/pki/ca-trust/source/anchors/* /usr/local/share/ca-certificates/ 2>/dev/null
exec update-ca-certificates
END
chmod 755 "$root/usr/bin/update-ca-trust"
cat > "$root/etc/dnf/dnf.conf" <<'END'
[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=True
best=True
skip_if_unavailable=False
END
"""


def disguise(distribution) -> str:
    """Shell lines, see replicas.Distribution.disguise."""
    version = distribution.archive.removeprefix("el")
    return SCRIPT.format(release=distribution.release, version=version) + _python36(version == "8")


def _python36(is_el8: bool) -> str:
    """Python 3.6 as the platform's, as on EL8; python3 where this machine has none, and on EL9."""
    found = is_el8 and sorted(PYTHON36.glob("3.6.*"))
    if not found:
        return 'ln -sf ../bin/python3 "$root/usr/libexec/platform-python"\n'
    return (
        f'mkdir -p "$root/usr/libexec/python36" && cp -a \'{found[-1]}/.\' "$root/usr/libexec/python36/"\n'
        'rm -rf "$root/usr/libexec/python36/lib/python3.6/test"\n'
        'echo /usr/libexec/python36/lib > "$root/etc/ld.so.conf.d/python36.conf" && chroot "$root/" ldconfig\n'
        'ln -sf python36/bin/python3.6 "$root/usr/libexec/platform-python"\n'
    )


def sources(distribution, url: str, key: str) -> str:
    """Shell lines, see replicas.sources: files and repositories as the distribution ships them, with the lab's packages.

    What exists is left alone: roles may have changed it.
    """
    row = yaml.safe_load(REPOSITORIES.read_text(encoding="utf-8"))[distribution.name]
    lines = (
        f"cat > /etc/pki/rpm-gpg/{row['key']} <<'END'\n{key}END\nln -sf {row['key']} /etc/pki/rpm-gpg/RPM-GPG-KEY-lab\n"
    )
    lines += f"echo '{url}' > /etc/dnf/vars/lab\n"
    for file, repositories in row["files"].items():
        text = "".join(_repository(row, name, repositories) for name in repositories)
        lines += f"[ -e /etc/yum.repos.d/{file}.repo ] || cat > /etc/yum.repos.d/{file}.repo <<'END'\n{text}END\n"
    return lines + (SUBSCRIPTION if "redhat" in row["files"] else "")


def _repository(row: dict, name: str, repositories: dict | list) -> str:
    kind = repositories[name] if isinstance(repositories, dict) else name
    directory = table("distribution_el")["directories"][kind].partition("/")[0]
    listed = f"mirrorlist={row['mirrorlist'].format(directory)}" if "mirrorlist" in row else None
    place = listed or f"baseurl=$lab/{directory}/$basearch/os/"
    enabled = 0 if kind in ("powertools", "crb") else 1
    key = f"gpgkey=file:///etc/pki/rpm-gpg/{row['key']}"
    return f"[{name}]\nname={directory}\n{place}\ngpgcheck=1\nenabled={enabled}\n{key}\n\n"
