#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks. Debian 12 and Ubuntu 24.04, as root
# or with sudo. Does nothing when nothing is missing.
#
#   ci/setup.sh               everything: build, tests, sanitizers, fuzzers, browser test
#   ci/setup.sh --build-only  what `ci/quickstart.sh` needs
#   ci/setup.sh --scenarios   that, and the programs with which scenarios measure (iperf3: without it
#                             there is no ideal, and so no time_over_ideal and time_over_bound)
set -euo pipefail

build=(git g++ cmake ninja-build ccache pkg-config
  libnl-3-dev libnl-route-3-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libspdlog-dev
  libfmt-dev libtinyxml2-dev libsqlite3-dev libre2-dev libssl-dev libgtest-dev libgmock-dev libbenchmark-dev libhwloc-dev
  libibverbs-dev)
scenarios=(iproute2 iperf3)
# Of other versions clang-format breaks other lines, and clang-tidy finds other things.
tests=(clang clang-format-14 clang-tidy-14 lld procps nodejs python3)
# Of the laboratories of hosts (ci/labs/hosts.sh, slurm.sh).
hosts=(openssh-server openssh-client slurmctld slurmd slurm-client munge openmpi-bin)
# Of the soft-RoCE laboratory (docs/rdma_lab.md): guests, and programs that run in them.
laboratory=(qemu-system-x86 busybox kmod rdma-core ibverbs-providers ibverbs-utils rdmacm-utils perftest)

say() { echo "setup: $*"; }

wanted=("${build[@]}")
case "${1:-}" in
  --build-only) ;;
  --scenarios) wanted+=("${scenarios[@]}") ;;
  "") wanted+=("${scenarios[@]}" "${tests[@]}" "${hosts[@]}" "${laboratory[@]}") ;;
  *)
    echo "usage: $0 [--build-only|--scenarios]" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null; then
  say "this is not Debian or Ubuntu; install the equivalents of: ${wanted[*]}" >&2
  exit 3
fi

# Ubuntu's chromium package is a snap, which cannot open files of a build directory.
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "${ID:-unknown}")
if [[ -z ${1:-} ]]; then
  if [[ $distribution == ubuntu ]]; then
    say "chromium is only a snap on Ubuntu: the browser test will be skipped (or set CHROMIUM to a browser)"
  else
    wanted+=(chromium)
  fi
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done

# Guests need a kernel with RDMA; where there is none to be had, their tests say so and are skipped.
fetch_kernel() {
  [[ -z ${1:-} ]] || return 0
  "$(dirname "$0")/rdma_kernel.sh" >/dev/null || say "no kernel for soft-RoCE guests"
}

if ((${#missing[@]} == 0)); then
  say "nothing to install"
  fetch_kernel "${1:-}"
  exit 0
fi
say "installing ${missing[*]}"

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    say "needs root, and there is no sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 "$@"
}
apt update
# The laboratories start their own services in their own namespaces: the machine's are neither started now
# nor at the next boot, unless they were installed before.
declare -A units_of=([openssh-server]="ssh.service ssh.socket" [slurmctld]=slurmctld.service
  [slurmd]=slurmd.service [munge]=munge.service)
hushed=()
if [[ -d /run/systemd/system ]]; then
  for package in "${missing[@]}"; do
    read -ra units <<<"${units_of[$package]:-}"
    hushed+=("${units[@]}")
  done
fi
((${#hushed[@]} == 0)) || "${as_root[@]}" systemctl mask --runtime "${hushed[@]}"
installed=0
apt install -y --no-install-recommends "${missing[@]}" || installed=$?
if ((${#hushed[@]} > 0)); then
  "${as_root[@]}" systemctl disable "${hushed[@]}" || true
  "${as_root[@]}" systemctl unmask --runtime "${hushed[@]}"
fi
((installed == 0)) || exit "$installed"
fetch_kernel "${1:-}"
say "done"
