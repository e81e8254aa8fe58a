# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# Cases of laboratory.sh about faults, which sources it. scenario.yaml strikes rail0 of n1, or its processes.

# All of the network of n1, as iproute2 tells it, without what changes by itself.
state() {
  local table
  {
    for table in addr 'route show table all' '-6 route show table all' rule 'neigh show nud permanent' nexthop; do
      # shellcheck disable=SC2086  # words of a command
      on n1 ip -d $table
    done
    on n1 tc qdisc
    on n1 tc filter show dev rail0 egress
  } | sed -E 's/(valid|preferred)_lft [0-9a-z]+|refcnt [0-9]+|expires [0-9]+sec//g' | sort
}
# The kernel needs a while to be sure of its own IPv6 addresses.
is_sure() { [[ $(state) != *tentative* ]]; }
until_so 45 "n1 is sure of its addresses" is_sure
before=$(state)
is_again() { [[ $(state) == "$before" ]]; }
# Far above lease and undo together.
expect_undone() {
  if ! until_so 45 "n1 is as before" is_again; then
    diff <(echo "$before") <(state) >&2
    cat "$LAB/faultd.n1.log" >&2
    return 1
  fi
  echo "undone 1"
}
is_down() { [[ $(on n1 cat /sys/class/net/rail0/operstate) == down ]]; }
# A run that does not end by itself, once it has struck.
strike() {
  echo "  lease: 2s" >>hosts.yaml
  start result
  if ! until_so 45 "rail0 of n1 is down" is_down; then
    kill -INT "$controller"
    wait "$controller" || true
    cat log "$LAB/faultd.n1.log" >&2
    return 1
  fi
}

case $what in
  faults)
    status=0
    "${run[@]}" --out result >log 2>&1 || status=$?
    echo "exit $status"
    cat log
    expect_undone
    until_left 0
    ;;
  faults-refused)
    attempt first
    cat log
    expect_undone
    until_left 0
    ;;
  faults-agent)
    strike
    on n1 pkill -KILL -f 'faultline agent'
    expect_undone
    expect_the_end
    ;;
  faults-agent-stopped)
    strike
    on n1 pkill -STOP -f 'faultline agent'
    expect_undone
    status=0
    wait "$controller" || status=$?
    echo "exit $status"
    on n1 pkill -KILL -f 'faultline agent' # it would go on, and end
    until_left 0
    ;;
  faults-controller)
    strike
    kill -KILL "$controller"
    expect_undone
    expect_the_end
    ;;
  faults-interrupt)
    strike
    kill -INT "$controller"
    expect_the_end
    expect_undone
    ;;
  faults-damaged)
    # The entry in the journal is cut, and then nobody is left who knows what was struck.
    strike
    entry=$(on n1 bash -c 'ls /var/lib/faultline/journal/*.json')
    holder=$(on n1 python3 -c "import json; print(json.load(open('$entry'))['faultline_strike']['holder']['pid'])")
    on n1 truncate -s 100 "$entry"
    on n1 kill -KILL "$holder"
    status=0
    wait "$controller" || status=$?
    echo "exit $status"
    cat log
    if is_down; then echo "down 1"; fi
    ;;
  faults-service)
    strike
    on n1 pkill -KILL -f 'faultline faultd'
    expect_undone
    expect_the_end
    ;;
  *) exit 2 ;;
esac
