# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Debian that answers like Ubuntu."""

# Debian 11 still kept /lib apart from /usr/lib, which Ubuntu did not.
PACKAGES = {"bullseye": ["usrmerge"]}

SCRIPT = """\
cat > "$root/etc/lsb-release" <<'END'
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE={version}
DISTRIB_CODENAME={codename}
DISTRIB_DESCRIPTION="{description}"
END
# As Ubuntu's package has it: only what comes from its archive.
cat > "$root/etc/apt/apt.conf.d/50unattended-upgrades" <<'END'
Unattended-Upgrade::Allowed-Origins {{
  "${{distro_id}}:${{distro_codename}}";
  "${{distro_id}}:${{distro_codename}}-security";
  "${{distro_id}}:${{distro_codename}}-updates";
}};
END
"""


def disguise(distribution) -> str:
    """Shell lines, see replicas.Distribution.disguise."""
    release = distribution.os_release
    return SCRIPT.format(
        version=release["VERSION_ID"], codename=release["VERSION_CODENAME"], description=release["PRETTY_NAME"]
    )


def sources(distribution, url: str, key: str) -> str:
    """Shell lines, see replicas.sources."""
    return (
        f"cat > /usr/share/keyrings/lab-archive-keyring.asc <<'END'\n{key}END\n"
        "cat > /etc/apt/sources.list.d/ubuntu.sources <<'END'\n"
        f"Types: deb\nURIs: {url}\nSuites: {distribution.archive}-updates\nComponents: restricted\n"
        "Signed-By: /usr/share/keyrings/lab-archive-keyring.asc\nEND\n"
    )
