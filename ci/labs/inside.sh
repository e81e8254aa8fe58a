# shellcheck shell=bash
# For what runs in a laboratory of hosts (hosts.sh, slurm.sh): to be sourced there.

# on NAME COMMAND...: runs it on that host.
on() { nsenter --target "$(<"$LAB/pid/$1")" --net --mount --uts --ipc --pid -- "${@:2}"; }

# The names of all hosts.
all_hosts() { ls "$LAB/pid"; }

# How many agents and ranks of faultline all hosts have.
left() {
  local host count=0
  for host in $(all_hosts); do
    count=$((count + $(on "$host" pgrep -c -f 'faultline (agent|rank)' || true)))
  done
  echo "$count"
}
# until_so SECONDS WHAT COMMAND...: waits until the command succeeds; fails with what was awaited.
until_so() {
  local limit=$((SECONDS + $1)) awaited=$2
  shift 2
  until "$@"; do
    if ((SECONDS >= limit)); then
      echo "not within the bound: $awaited; there are $(left) agents and ranks" >&2
      return 1
    fi
    sleep 0.02
  done
}
are_left() { [[ $(left) == "$1" ]]; }
# Far above what it takes.
until_left() { until_so 45 "$1 agents and ranks" are_left "$1"; }

# What all hosts have sent over a port.
sent() {
  local host sum=0
  for host in $(all_hosts); do
    sum=$((sum + $(on "$host" cat "/sys/class/net/$1/statistics/tx_bytes")))
  done
  echo "$sum"
}
