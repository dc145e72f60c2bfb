#!/bin/sh
# In the place of NVIDIA's installer, which cannot be passed on: takes its options, and leaves what it leaves. The module is
# compiled by DKMS, the uninstaller removes all of it.
set -eu
version=@VERSION@
library=/usr/lib/x86_64-linux-gnu/libnvidia-ml.so
case " $* " in *" --silent --dkms "*) ;; *) echo "it would ask"; exit 1 ;; esac
[ ! -x /usr/bin/nvidia-uninstall ] || /usr/bin/nvidia-uninstall --silent
echo "$*" > /var/log/nvidia-installer.log
source=/usr/src/nvidia-$version
mkdir -p "$source"
printf 'obj-m := nvidia.o\n' > "$source/Makefile"
cat > "$source/nvidia.c" <<C
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_VERSION("$version");
C
cat > "$source/dkms.conf" <<C
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="$version"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/kernel/drivers/video"
MAKE[0]="make -C /lib/modules/\${kernelver}/build M=\${dkms_tree}/nvidia/$version/build modules"
AUTOINSTALL="yes"
C
for headers in /lib/modules/*/build; do
  kernel=$(basename "$(dirname "$headers")")
  dkms install "nvidia/$version" -k "$kernel" --force >> /var/log/nvidia-installer.log 2>&1
done
cp "$(readlink -f /usr/lib/x86_64-linux-gnu/libm.so.6)" "$library.$version"
ln -sf "libnvidia-ml.so.$version" "$library.1"
cat > /usr/bin/nvidia-uninstall <<C
#!/bin/sh
dkms remove nvidia/$version --all
rm -rf $source $library.$version $library.1 /usr/bin/nvidia-uninstall
/srv/machine/files/lab-machine library
C
chmod 755 /usr/bin/nvidia-uninstall
/srv/machine/files/lab-machine library
