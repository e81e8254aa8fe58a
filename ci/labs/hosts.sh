#!/usr/bin/env bash
# A laboratory of hosts on one machine: namespaces, each with an sshd, a management network and rails.
#
#   ci/labs/hosts.sh HOSTS RAILS COMMAND...   runs the command beside hosts n0, n1, ...; `ssh n0` reaches them
#
# The command gets, in $LAB: pid/n0, ... (the first process of each host, for nsenter), ssh_config and
# hosts (the file for --cluster with ssh as the launcher). Of a host n: 10.0.0.(n+1) is the management
# network, on mgmt; 10.(r+1).0.(n+1) is rail r, on rail<r>. Exit code: that of the command; 77 with a
# reason where this machine cannot make it.
#
#   LAB_SSHD      lines for the configuration of every sshd: LAB_SSHD='MaxStartups 10'
#   LAB_CLOCKS    seconds by which the monotonic clocks of n0, n1, ... are ahead of this machine's:
#                 LAB_CLOCKS='0 1000 -5'
#   FAULTLINE_LAB_POLICY  file: each host has that policy, and a fault service, FAULTLINE_LAB_PROGRAM, that
#                 is started again when it ends; what it says is in $LAB/faultd.n0.log, ...
#
# All of it lives in a process namespace whose first process is this script: however it ends, the
# kernel ends everything, and nothing of it has a name outside. /etc is a copy, and so is what sshd is told.
set -euo pipefail

skip() {
  echo "hosts.sh: $*" >&2
  exit 77
}

if (($# < 3)); then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
  exit 2
fi

if [[ -z ${FAULTLINE_LAB_ENTERED:-} ]]; then
  PATH=$PATH:/usr/sbin:/sbin
  for program in sshd ssh ssh-keygen ip nsenter unshare setpriv; do
    command -v "$program" >/dev/null || skip "there is no $program: install openssh-server, openssh-client, iproute2"
  done
  ((EUID == 0)) || skip "needs root: sshd changes users"
  export PATH FAULTLINE_LAB_ENTERED=1
  # unshare holds signals back while it waits: they are passed on here, as an end of all. What runs in
  # the background has SIGINT ignored, and so would all inside.
  env --default-signal=INT,QUIT setpriv --pdeathsig KILL unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL \
    --mount-proc "$0" "$@" &
  inside=$!
  trap 'kill -KILL "$inside" 2>/dev/null || true' EXIT
  trap 'exit 143' TERM INT HUP
  status=0
  wait "$inside" || status=$?
  exit "$status"
fi

# What follows writes to /etc, which must be a copy: only inside.
[[ $$ == 1 ]] || skip "FAULTLINE_LAB_ENTERED is set outside of a laboratory"
readonly hosts=$1 rails=$2
shift 2

export LAB=/run/faultline-lab
mount -t tmpfs lab /run
mkdir -p "$LAB/pid" "$LAB/etc" "$LAB/home" /run/sshd
cp -a /etc/. "$LAB/etc"
mount --bind "$LAB/etc" /etc
# An empty home: whatever root's shell says and does at a login is not a host's.
sed -i "s|^root:.*|root:x:0:0:root:$LAB/home:/bin/bash|; /^sshd:/d" /etc/passwd
echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >>/etc/passwd
(umask 077 && sed 's/:.*/:*:19000::::::/' /etc/passwd >/etc/shadow)
chmod 700 "$LAB/home"
export HOME=$LAB/home
# Daemons of Open MPI leave folders when they are killed: not in the machine's /tmp.
install -d -m 1777 "$LAB/mpi"
export OMPI_MCA_orte_tmpdir_base=$LAB/mpi
ip link set lo up

ssh-keygen -q -t ed25519 -N '' -f "$LAB/key"
cat >"$LAB/ssh_config" <<END
Host *
  User root
  IdentityFile $LAB/key
  IdentitiesOnly yes
  UserKnownHostsFile $LAB/known_hosts
  StrictHostKeyChecking yes
END
cat >"$LAB/sshd_config" <<END
AuthorizedKeysFile $LAB/key.pub
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
PidFile none
${LAB_SSHD:-}
END
read -ra clocks <<<"${LAB_CLOCKS:-}"
cp "$LAB/ssh_config" /etc/ssh/ssh_config

for bridge in mgmt $(seq -f 'rail%g' 0 $((rails - 1))); do
  ip link add "br-$bridge" type bridge
  ip link set "br-$bridge" up
done
ip address add 10.0.0.254/24 dev br-mgmt
echo "127.0.0.1 localhost" >/etc/hosts

# within SECONDS WHAT COMMAND...: until the command succeeds; ends all with what was awaited where it does not.
within() {
  local limit=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    if ((SECONDS >= limit)); then
      echo "hosts.sh: $what" >&2
      exit 1
    fi
    sleep 0.005
  done
}

with_clocks=()
((${#clocks[@]} == 0)) || with_clocks=(--time)
# on NAME COMMAND...
on() {
  nsenter --target "$(<"$LAB/pid/$1")" --net --mount --uts --ipc --pid "${with_clocks[@]}" -- "${@:2}"
}

# port NAME PORT ADDRESS
port() {
  ip link add "$1-$2" type veth peer name "$2" netns "$(<"$LAB/pid/$1")"
  ip link set "$1-$2" master "br-$2" up
  on "$1" ip address add "$3" dev "$2"
  on "$1" ip link set "$2" up
}

# Whether the first process of a host waits: `outer` has made its namespaces. Fails for good with `outer`.
is_there() {
  kill -0 "$outer" 2>/dev/null || within 0 "the namespaces of $name cannot be made" false
  first=$(tr -d ' ' 2>/dev/null <"/proc/$outer/task/$outer/children")
  [[ -n $first && $(readlink "/proc/$first/exe") == */bash ]]
}
# Whether somebody listens on port 22 of a host.
is_served() { grep -q ': 00000000:0016 00000000:0000 0A ' "/proc/$first/net/tcp"; }

for ((host = 0; host < hosts; ++host)); do
  name=n$host
  clock=()
  [[ -z ${clocks[host]:-} ]] || clock=(--time --monotonic "${clocks[host]}")
  # Its first process waits, and reaps what is left to it.
  unshare --net --mount --uts --ipc --pid "${clock[@]}" --fork --kill-child=KILL --mount-proc \
    bash -c 'sleep infinity & while :; do wait; done' >/dev/null 2>&1 </dev/null &
  outer=$!
  within 30 "the first process of $name does not come" is_there
  echo "$first" >"$LAB/pid/$name"
  on "$name" hostname "$name"
  on "$name" mount -t sysfs sys /sys
  on "$name" ip link set lo up
  port "$name" mgmt "10.0.0.$((host + 1))/24"
  for ((rail = 0; rail < rails; ++rail)); do
    port "$name" "rail$rail" "10.$((rail + 1)).0.$((host + 1))/24"
  done
  ssh-keygen -q -t ed25519 -N '' -f "$LAB/host.$name"
  echo "$name,10.0.0.$((host + 1)) $(<"$LAB/host.$name.pub")" >>"$LAB/known_hosts"
  echo "10.0.0.$((host + 1)) $name" >>/etc/hosts
  # By its full path: it executes itself again.
  on "$name" "$(command -v sshd)" -f "$LAB/sshd_config" -h "$LAB/host.$name" -E "$LAB/sshd.$name.log"
  within 30 "sshd of $name does not listen" is_served
done

# serve NAME: the fault service of a host, with folders of its own.
serve() {
  local folder
  for folder in /etc/faultline /run/faultline /var/lib; do
    on "$1" mount -t tmpfs -o mode=755 "lab$folder" "$folder"
  done
  on "$1" install -m 644 "$FAULTLINE_LAB_POLICY" /etc/faultline/policy.yaml
  on "$1" bash -c 'while :; do "$0" faultd; sleep 0.1; done' "$FAULTLINE_LAB_PROGRAM" \
    </dev/null >"$LAB/faultd.$1.log" 2>&1 &
}
if [[ -n ${FAULTLINE_LAB_POLICY:-} ]]; then
  mkdir -p /etc/faultline /run/faultline
  for ((host = 0; host < hosts; ++host)); do serve "n$host"; done
  for ((host = 0; host < hosts; ++host)); do
    within 30 "the fault service of n$host does not come: $(tail -3 "$LAB/faultd.n$host.log")" \
      on "n$host" test -S /run/faultline/faultd.sock
  done
fi

{
  echo "cluster:"
  echo "  kind: hosts"
  echo "  hosts: [$(seq -s ', ' -f 'n%g' 0 $((hosts - 1)))]"
} >"$LAB/hosts"
export PS1='lab \$ '
"$@"
