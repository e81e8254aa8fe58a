#!/usr/bin/env bash
# What hosts_test.cc does in a laboratory of three hosts (ci/labs/hosts.sh): laboratory.sh PROGRAM CASE,
# in a folder with scenario.yaml. Prints what it saw, as "NAME VALUE"; results are in `result`.
set -euo pipefail
set -m # or what runs in the background would not see SIGINT

readonly program=$1 what=$2
source=$(cd "$(dirname "$0")/../../.." && pwd)
readonly source

on() { nsenter --target "$(<"$LAB/pid/$1")" --net --mount --uts --ipc --pid -- "${@:2}"; }

# How many agents and ranks all hosts have.
left() {
  local host count=0
  for host in n0 n1 n2; do
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
# Far above what it takes, and far below the lease of patient().
until_left() { until_so 45 "$1 agents and ranks" are_left "$1"; }
no_ssh_runs() { ! pgrep -x -r R,S,D,T ssh >/dev/null; } # zombies are over

# Whether so many iterations are over: one carries 8 MiB, with all that is besides less than 10.
has_done() { (($(sent rail0) + $(sent rail1) - base >= $1 * (10 << 20))); }

# start FOLDER: a run that does not end by itself, past its warm-up of two iterations.
start() {
  base=$(($(sent rail0) + $(sent rail1)))
  "${run[@]}" --out "$1" >log 2>&1 &
  controller=$!
  if ! until_so 45 "the run is past its warm-up" has_done 6; then
    cat log >&2
    exit 1
  fi
}
# Until the controller has ended, and all that it had started on hosts.
expect_the_end() {
  local status=0
  wait "$controller" || status=$?
  echo "exit $status"
  until_left 0
}
# What all hosts have sent over a port.
sent() {
  local host sum=0
  for host in n0 n1 n2; do
    sum=$((sum + $(on "$host" cat "/sys/class/net/$1/statistics/tx_bytes")))
  done
  echo "$sum"
}
# attempt NAME: how a run that cannot be begun ends.
attempt() {
  local status=0
  timeout 30 "${run[@]}" --out "result-$1" >log 2>&1 || status=$?
  echo "$1 $status: $(grep '^faultline' log)"
}

cp "$LAB/hosts" hosts.yaml
run=("$program" run --cluster hosts.yaml scenario.yaml)
# What ends earlier than this has not ended for want of a word.
patient() { echo "  lease: 10min" >>hosts.yaml; }

case $what in
  run)
    before=("$(sent rail0)" "$(sent rail1)" "$(sent mgmt)")
    "${run[@]}" --out result 2>said >log || {
      cat said log >&2
      exit 1
    }
    echo "rail0 $(($(sent rail0) - before[0])) rail1 $(($(sent rail1) - before[1]))" \
      "mgmt $(($(sent mgmt) - before[2]))"
    until_left 0
    cat said
    ;;
  agent)
    patient
    start result
    on n1 pkill -KILL -f 'faultline agent'
    expect_the_end
    ;;
  session)
    patient
    start result
    on n2 pkill -KILL -f 'sshd: root@notty' # and not the one that listens
    expect_the_end
    ;;
  silence)
    echo "  lease: 2s" >>hosts.yaml
    start result
    ip link set n1-mgmt down
    expect_the_end
    ;;
  ports)
    # Ranks give up before the lease is over.
    echo "  lease: 25s" >>hosts.yaml
    sed -i 's/\[fault_free\]/[hot_repair]/' scenario.yaml
    start result
    for port in mgmt rail0 rail1; do ip link set "n1-$port" down; done
    expect_the_end
    ;;
  document)
    # The command of docs/hosts.md, as it stands there, with the hosts of the laboratory.
    command=$(grep -o 'faultline run --cluster [^`]*' "$source/docs/hosts.md" | head -1)
    cp "$LAB/hosts" my_hosts.yaml
    ln -s "$source/scenarios" scenarios
    PATH=$(dirname "$program"):$PATH bash -c "$command --out result" >log 2>&1 || {
      echo "$command: exit code $?" >&2
      cat log >&2
      exit 1
    }
    "$program" run --help | grep -F "$command"
    ;;
  interrupt)
    patient
    start result
    kill -INT "$controller"
    expect_the_end
    ;;
  crash)
    patient
    start result
    kill -KILL "$controller"
    expect_the_end
    until_so 45 "the end of every ssh" no_ssh_runs
    ;;
  trouble)
    echo 'echo Welcome' >"$HOME/.bashrc"
    attempt banner
    rm "$HOME/.bashrc"
    sed -i 's/hosts: .*/hosts: [n0, n9]/' hosts.yaml
    attempt unknown
    { cat "$LAB/hosts" && echo '  program: /nowhere/faultline'; } >hosts.yaml
    attempt missing
    { cat "$LAB/hosts" && echo '  rails: [rail0, rail7]'; } >hosts.yaml
    attempt rail
    until_left 0
    ;;
  two)
    start result
    attempt second
    echo "left $(left)"
    kill -INT "$controller"
    expect_the_end
    ;;
  *) source "$source/tests/netns/hosts/faults.sh" ;;
esac
