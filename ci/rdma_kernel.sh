#!/usr/bin/env bash
# The kernel of the soft-RoCE laboratory's guests (docs/rdma_lab.md): Debian's stock kernel, because
# the machine's own may lack RDMA. It is unpacked into a folder of the user's cache and never
# installed. Does nothing when it is there; prints the folder.
#
#   ci/rdma_kernel.sh           make it if it is missing
#   ci/rdma_kernel.sh --fresh   and if a newer package may have come
#
# FAULTLINE_RDMA_KERNEL names another folder. Debian 12; needs no root.
set -euo pipefail

folder=${FAULTLINE_RDMA_KERNEL:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/faultline/rdma_kernel}
say() { echo "rdma_kernel: $*" >&2; }

case "${1:-}" in
  "") if [[ -e $folder/vmlinuz && -e $folder/modules/modules.dep ]]; then echo "$folder"; exit 0; fi ;;
  --fresh) ;;
  *) echo "usage: $0 [--fresh]" >&2; exit 2 ;;
esac

for program in apt-get apt-cache dpkg depmod; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || {
    say "needs $program, which is missing (depmod comes with kmod)"
    exit 3
  }
done
# The cloud flavour has no rdma_rxe. Ubuntu has no package of this name: its modules are elsewhere.
package=$(apt-cache depends linux-image-amd64 2>/dev/null |
  grep -oE 'linux-image-[0-9][^ ]*-amd64$' | grep -v cloud | head -n 1 || true)
if [[ -z $package ]]; then
  say "apt knows no linux-image-amd64 (apt-get update? on other systems than Debian: put vmlinuz, and" \
    "modules/ with modules.dep, into a folder and name it in FAULTLINE_RDMA_KERNEL)"
  exit 3
fi

# Beside its place, so that it gets there in one step, and two of these do not disturb each other.
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "fetching $package"
(cd "$work" && apt-get -q -o Acquire::Retries=3 download "$package" >&2)
dpkg -x "$work"/"$package"_*.deb "$work/tree"
version=${package#linux-image-}
mkdir "$work/made"
mv "$work/tree/boot/vmlinuz-$version" "$work/made/vmlinuz"
# A guest has no such devices; without them the folder is a third of the size.
modules="$work/tree/lib/modules/$version"
rm -rf "$modules"/kernel/{sound,drivers/{gpu,media,scsi,staging,usb,iio,infiniband/hw,net/{wireless,ethernet}}}
PATH=$PATH:/usr/sbin:/sbin depmod -b "$work/tree" "$version"
mv "$modules" "$work/made/modules"
rm -f "$work/made/modules"/{build,source}
echo "$version" >"$work/made/version"
chmod 755 "$work/made"
rm -rf "$folder"
mv -T "$work/made" "$folder"
say "$version is in $folder"
echo "$folder"
