#!/bin/sh
# As before the driver came: for the next case. Run on the host by sh.
rm -f /etc/dnf/plugins/versionlock.list.d/* /etc/lab/dkms-build-fails /var/lib/allreduce/reboot-pending
dnf versionlock clear
rpm -qa '*nvidia*' 'cuda-drivers*' | xargs -r rpm -e --nodeps
dnf -y module reset nvidia-driver
rm -rf /var/lib/dkms/nvidia* /var/cache/dnf
