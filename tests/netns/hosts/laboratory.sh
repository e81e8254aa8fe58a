#!/usr/bin/env bash
# What the tests beside it do in a laboratory of three hosts or more (ci/labs/hosts.sh, slurm.sh):
# laboratory.sh PROGRAM CASE [LAUNCHER], in a folder with scenario.yaml; with slurm in an allocation of all of
# them. Prints what it saw, as "NAME VALUE"; results are in `result`.
set -euo pipefail
set -m # or what runs in the background would not see SIGINT

readonly program=$1 what=$2 launcher=${3:-ssh}
source=$(cd "$(dirname "$0")/../../.." && pwd)
readonly source

# shellcheck source=ci/labs/inside.sh
source "$source/ci/labs/inside.sh"

# What leads to the hosts; zombies are over.
declare -A command_of=([ssh]=ssh [slurm]=srun [mpirun]=mpirun)
command -v "${command_of[$launcher]}" >/dev/null || {
  echo "there is no ${command_of[$launcher]}" >&2
  exit 77
}
none_runs() { ! pgrep -x -r R,S,D,T "${command_of[$launcher]}" >/dev/null; }

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
# attempt NAME: how a run that cannot be begun ends.
attempt() {
  local status=0
  timeout 30 "${run[@]}" --out "result-$1" >log 2>&1 || status=$?
  echo "$1 $status: $(grep '^faultline' log)"
}

cp "$LAB/hosts" hosts.yaml
[[ $launcher == ssh ]] || echo "  launcher: $launcher" >>hosts.yaml
[[ $launcher != slurm ]] || sed -i '/hosts: /d' hosts.yaml # those of the allocation
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
    until_so 45 "the end of what leads to the hosts" none_runs
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
  endless)
    "${run[@]}" --out result >log 2>&1 &
    controller=$!
    rank_runs() { rank=$(on n1 pgrep -o -f 'faultline rank'); }
    until_so 45 "a rank of n1" rank_runs
    # Into what the rank logs to, as if it did; ends with the pipe.
    # shellcheck disable=SC2016 # for the shell there
    on n1 sh -c 'exec yes "$0" >"/proc/$1/fd/2"' $'a rank prints \e[31m without end' "$rank" &
    printer=$!
    expect_the_end
    wait "$printer" || true
    ;;
  early)
    # The second time that n1 is asked for its agent the way there ends after the greeting.
    cat >broken_ssh <<'END'
#!/bin/bash
host=${*: -2:1}
touch "$(mktemp asked.$host.XXXXXX)"
if [[ $host == n1 ]] && (($(ls | grep -c '^asked[.]n1[.]') > 1)); then
  ssh "$@" | head -n 1
  exit 9
fi
exec ssh "$@"
END
    chmod +x broken_ssh
    printf '  lease: 2s\n  ssh: %s\n' "$PWD/broken_ssh" >>hosts.yaml
    attempt early
    until_left 0
    ;;
  jump)
    # All but the first are behind it, and those that it turns away see the end of their connection.
    { cat "$LAB/ssh_config" && echo '  ConnectTimeout 20'; } >jump_config
    sed -i '1i Host n1 n2 n3 n4 n5 n6 n7 n8 n9 n1?\n  ProxyJump n0\n' jump_config
    sed -i "s/\[n0, /[/; \$a\\  ssh: [ssh, -F, $PWD/jump_config]" hosts.yaml
    "$program" doctor --cluster hosts.yaml
    ;;
  cut)
    # Ctrl-C while most of them are on their way, which leads nowhere.
    sed -i 's/hosts: .*/hosts: [n0, n1, n2, 10.0.0.77, 10.0.0.78, 10.0.0.79]/' hosts.yaml
    "${run[@]}" --out result >log 2>&1 &
    controller=$!
    on_their_way() { [[ $(pgrep -c -x ssh) -ge 5 && $(left) == 3 ]]; }
    until_so 45 "all are on their way" on_their_way
    kill -INT "$controller"
    expect_the_end
    until_so 45 "the end of every ssh" none_runs
    ;;
  flood)
    "${run[@]}" --out result >log 2>&1 &
    controller=$!
    status=0
    nsenter --net --target "$(<"$LAB/pid/n2")" python3 "$source/tests/netns/hosts/half_open.py" \
      "$controller" 10000 "10.0.0.1=$(<"$LAB/pid/n0")" "10.1.0.1=$(<"$LAB/pid/n0")" "10.2.0.1=$(<"$LAB/pid/n0")" || status=$?
    ((status == 0)) || kill -INT "$controller"
    expect_the_end
    cat log >&2
    exit "$status"
    ;;
  look)
    sed -i 's/n0, /n0, n9, /' hosts.yaml
    "$program" doctor --cluster hosts.yaml --json >look.json || echo "exit $?"
    "$program" doctor --cluster hosts.yaml || true
    until_left 0
    ;;
  killed)
    patient
    start result
    pkill -KILL -x -o "${command_of[$launcher]}" # the oldest: that of the first host
    expect_the_end
    ;;
  cancel)
    patient
    start result
    scancel "$SLURM_JOB_ID"
    expect_the_end
    ;;
  step)
    # The lease is what ends it here: srun does not see it.
    echo "  lease: 2s" >>hosts.yaml
    start result
    on n1 pkill -KILL slurmstepd
    expect_the_end
    ;;
  daemon)
    # Slurm takes the host for dead some seconds later, and what runs there for lost.
    start result
    on n1 pkill -KILL -x slurmd
    has_done_more() { has_done 20; }
    until_so 45 "the run goes on without a slurmd" has_done_more
    kill -INT "$controller"
    expect_the_end
    ;;
  two)
    start result
    attempt second
    echo "left $(left)"
    kill -INT "$controller"
    expect_the_end
    ;;
  faults*) . "$source/tests/netns/hosts/faults.sh" ;;
  *) . "$source/tests/netns/hosts/programs.sh" ;;
esac
