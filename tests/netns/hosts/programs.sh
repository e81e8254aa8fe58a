# Cases of laboratory.sh for programs that are not ours, and for folders that hosts share; it reads this file.
# shellcheck shell=bash disable=SC2154
# Folders for what is soon over are in the laboratory: nothing else is there.
mkdir "$LAB/tmp"
echo "export TMPDIR=$LAB/tmp HOSTED=yes" >"$HOME/.bashrc"
readonly mark=86397 # seconds, in the arguments of what programs leave behind

# The rest of a scenario with a program on all hosts: command_of KEYS...
command_of() {
  printf 'version: 1\nname: program\nworkload:\n  kind: command\n  command:\n'
  printf '    %s\n' "$@"
  printf 'strategies: [fault_free]\nseed: 7\n'
}
# Whether no host has a process of ours or of a program, and no folder of a run.
is_clean() { [[ $(left) == 0 ]] && ! pgrep -f "sleep $mark" >/dev/null && [[ -z $(ls "$LAB/tmp") ]]; }
expect_clean() { until_so 45 "no process and no folder is left: $(ls "$LAB/tmp")" is_clean; }
run_it() {
  local status=0
  "${run[@]}" --out result >log 2>&1 || status=$?
  echo "exit $status"
  cat log
}
# How many hosts' programs have begun, each with all that it starts.
begun() { pgrep -c -f "^sleep $mark" || true; }
have_begun() { (($(begun) >= $1)); }
# Programs that do not end and leave nothing undone to stay: a background process in a session of its own,
# SIGTERM ignored, and output without end.
stubborn() {
  command_of "run: [sh, -c, 'trap \"\" TERM; setsid sleep $mark & yes {node}']" "$@"
}
begin() {
  "${run[@]}" --out result >log 2>&1 &
  controller=$!
  until_so 45 "all programs have begun" have_begun 3 || {
    cat log >&2
    exit 1
  }
  [[ $(ls "$LAB/tmp" | wc -l) == 3 ]]
}
end_of() {
  local status=0
  wait "$controller" || status=$?
  echo "exit $status"
}
# hide HOST FOLDER: the host sees an empty one there.
hide() { on "$1" mount -t tmpfs none "$2"; }

case $what in
  ring)
    command_of "run: [python3, $source/tests/netns/hosts/ring.py]" 'per_node: 2' 'progress: progress' \
      "env: {CUDA_VISIBLE_DEVICES: '{local_rank}'}" \
      "metrics: {rounds: {regex: 'rounds ([0-9]+)'}, sum: {json: told.json, path: sum, take: min}}" >scenario.yaml
    python=$(python3 -c 'import sys; print(sys.executable)') # also where python3 is a script that asks for a home
    sed -i "s|\[python3,|[$python,|" scenario.yaml
    run_it
    expect_clean
    ;;
  iperf3)
    # The scenario of docs/command.md without its fault, on two of the hosts, for a second.
    sed -e '/^cluster:/d; /^faults:/,/duration:/d; /^  - unprotected/d; /^  - fault_free.metrics/d; /^  #/d' \
      -e 's/--time 3/--time 1/; s/^    run:$/    nodes: [0, 1]\n    run:/' \
      -e 's/^strategies:.*/strategies: [fault_free]/' "$source/scenarios/command-iperf3.yaml" >scenario.yaml
    run_it
    expect_clean
    ;;
  programs_agent)
    patient
    stubborn >scenario.yaml
    begin
    on n1 pkill -KILL -o -f 'faultline agent' # and not what it has started
    end_of
    expect_clean
    ;;
  programs_all)
    patient
    stubborn >scenario.yaml
    begin
    on n1 pkill -KILL -f 'faultline agent' # also who would have removed the folder
    end_of
    until_so 45 "the folders of the others are removed" eval '(($(ls "$LAB/tmp" | wc -l) == 1))'
    command_of 'run: [echo, done]' >scenario.yaml
    "${run[@]}" --out again >log 2>&1
    grep -o 'removed .*/faultline-run-.*' again/log.txt
    expect_clean
    ;;
  programs_interrupt)
    patient
    stubborn >scenario.yaml
    begin
    kill -INT "$controller"
    end_of
    expect_clean
    ;;
  programs_crash)
    patient
    stubborn >scenario.yaml
    begin
    kill -KILL "$controller"
    end_of
    expect_clean
    ;;
  programs_hung)
    stubborn 'time_limit: 1s' >scenario.yaml
    run_it
    expect_clean
    ls -l "result/$(ls result | grep command)/rank1"
    ;;
  programs_fast)
    # Faster than anybody reads: the agent must go on hearing its controller.
    command_of "run: [sh, -c, 'exec yes 1 >\$FAULTLINE_PROGRESS']" 'progress: progress' 'time_limit: 2s' >scenario.yaml
    run_it
    expect_clean
    echo "brought $(stat -c %s "result/$(ls result | grep command)/rank1/progress")"
    ;;
  programs_busy)
    # While something is mounted in it a folder is not removed, which is tried for longer than the lease.
    echo "  lease: 1s" >>hosts.yaml
    command_of "run: [sh, -c, 'mkdir busy; sleep 3']" >scenario.yaml
    "${run[@]}" --out result >log 2>&1 &
    controller=$!
    is_there() { [[ -n $(find "$LAB/tmp" -path '*-1/*' -name busy) ]]; }
    until_so 45 "the program of n1 has begun" is_there
    busy=$(find "$LAB/tmp" -path '*-1/*' -name busy)
    on n1 mount -t tmpfs none "$busy"
    end_of
    cat log
    on n1 umount "$(find "$LAB/tmp" -name busy)"
    rm -rf "$LAB"/tmp/faultline-run-*
    ;;
  programs_cut)
    command_of "run: [sh, -c, 'yes | head -c 17000000; echo v 1']" "metrics: {v: {regex: 'v (1)'}}" >scenario.yaml
    run_it
    expect_clean
    ;;
  programs_missing)
    mkdir own other
    printf '#!/bin/sh\n' >own/tool
    chmod +x own/tool
    touch other/lib.so
    command_of "run: [$PWD/own/tool]" "env: {LD_PRELOAD: $PWD/other/lib.so}" >scenario.yaml
    hide n1 "$PWD/own"
    hide n2 "$PWD/other"
    run_it
    expect_clean
    ;;
  programs_user)
    # Nobody's rights are enough: every host is this machine, and the agent nobody's.
    command_of "run: [sh, -c, 'setsid sleep $mark & id -u; exec id -u > uid.txt']" \
      "metrics: {uid: {regex: '^([0-9]+)$'}}" >scenario.yaml
    sed -i '1a cluster: {kind: hosts, launcher: local, hosts: [a, b]}' scenario.yaml
    mkdir nobody
    chmod 777 nobody "$LAB/tmp"
    chmod 755 .
    status=0
    TMPDIR=$LAB/tmp HOME=/ setpriv --reuid 65534 --regid 65534 --clear-groups \
      "$program" run scenario.yaml --out nobody/result >log 2>&1 || status=$?
    echo "exit $status"
    cat log
    mv nobody/result result
    expect_clean
    ;;
  checkpoints | checkpoints_interrupt)
    patient
    mkdir "$LAB/shared"
    echo "  folder: $LAB/shared" >>hosts.yaml
    sed -i 's/\[fault_free\]/[{fail_stop: {checkpoint_every: 2}}]/' scenario.yaml
    have_saved() { (($(ls "$LAB"/shared/faultline-shared-*/rank[012] 2>/dev/null | wc -l) == 3)); }
    "${run[@]}" --out result >log 2>&1 &
    controller=$!
    until_so 45 "all ranks have saved a checkpoint" have_saved || {
      cat log >&2
      exit 1
    }
    if [[ $what == checkpoints_interrupt ]]; then kill -INT "$controller"; fi
    end_of
    cat log
    until_left 0
    echo "shared $(ls "$LAB/shared" | wc -l)"
    ;;
  unshared)
    mkdir "$LAB/shared"
    echo "  folder: $LAB/shared" >>hosts.yaml
    sed -i 's/\[fault_free\]/[fail_stop]/' scenario.yaml
    hide n2 "$LAB/shared"
    attempt unshared
    on n2 umount "$LAB/shared"
    on n1 mount --bind -o ro "$LAB/shared" "$LAB/shared"
    on n1 mount -o remount,bind,ro "$LAB/shared"
    attempt readonly
    until_left 0
    echo "shared $(ls "$LAB/shared" | wc -l)"
    ;;
  *) exit 2 ;;
esac
