#!/bin/sh
# As before the driver came: for the next case. Run on the host by sh.
export DEBIAN_FRONTEND=noninteractive
apt-mark showhold | xargs -r apt-mark unhold
rm -f /etc/apt/preferences.d/allreduce-* /etc/lab/dkms-build-fails /usr/bin/nvidia-uninstall /var/lib/allreduce/reboot-pending
dpkg-query -W -f '${Package}\n' '*nvidia*' 'libcuda*' 'cuda-drivers*' | xargs -r apt-get -y -q purge
rm -rf /var/lib/dkms/nvidia* /var/cache/apt/archives/*.deb
