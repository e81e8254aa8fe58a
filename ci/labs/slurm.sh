#!/usr/bin/env bash
# A laboratory of hosts under Slurm: those of hosts.sh, each with munged and slurmd, and a slurmctld on the
# machine between them, "ctl", which is the login node.
#
#   ci/labs/slurm.sh HOSTS RAILS COMMAND...   runs the command on the login node: `srun -N2 hostname`
#
# The command gets what hosts.sh gives, and the user alice, whose home $LAB/alice all hosts share:
# `setpriv --reuid=alice --regid=alice --init-groups COMMAND`. Exit code: that of the command; 77 with a
# reason where this machine cannot make it.
set -euo pipefail

skip() {
  echo "slurm.sh: $*" >&2
  exit 77
}

if (($# < 3)); then
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
  exit 2
fi

if [[ ${FAULTLINE_LAB_SLURM:-} != inside ]]; then
  PATH=$PATH:/usr/sbin:/sbin
  for program in slurmctld slurmd srun scancel munged; do
    command -v "$program" >/dev/null || skip "there is no $program: install slurmctld, slurmd, slurm-client, munge"
  done
  export PATH FAULTLINE_LAB_SLURM=inside
  exec "$(dirname "$0")/hosts.sh" "$1" "$2" "$0" "$@"
fi

# What follows writes to /etc: only where hosts.sh has made a copy of it.
[[ -n ${LAB:-} && /etc -ef $LAB/etc ]] || skip "FAULTLINE_LAB_SLURM is set outside of a laboratory"
readonly hosts=$1
shift 2

readonly alice=4242
echo "alice:x:$alice:$alice::$LAB/alice:/bin/bash" >>/etc/passwd
echo "alice:x:$alice:" >>/etc/group
install -d -o "$alice" -g "$alice" "$LAB/alice"
hostname ctl
echo "10.0.0.254 ctl" >>/etc/hosts

install -d -m 700 -o munge "$LAB/munge"
(umask 077 && head -c 128 /dev/urandom >"$LAB/munge/key")
chown munge "$LAB/munge/key"
mkdir -p /etc/slurm
# By its name: what is mounted at /sys/fs/cgroup is not asked then, as nothing of it is used.
echo 'CgroupPlugin=cgroup/v1' >/etc/slurm/cgroup.conf
cat >/etc/slurm/slurm.conf <<END
ClusterName=laboratory
SlurmctldHost=ctl
SlurmUser=root
AuthInfo=socket=/run/munge/socket
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool
TmpFS=/run/slurm
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MailProg=/bin/true
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=n[0-$((hosts - 1))] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END

# Of each host its own: both have their state in /run.
cat >"$LAB/slurm_start" <<'END'
#!/bin/bash
set -e
for folder in munge slurm; do
  mkdir -p "/run/$folder"
  mount -t tmpfs -o mode=755 "$folder" "/run/$folder"
done
chown munge /run/munge
install -o munge -m 400 "$LAB/munge/key" /run/munge/key
setpriv --reuid=munge --regid=munge --clear-groups munged --key-file=/run/munge/key --socket=/run/munge/socket \
  --pid-file=/run/munge/pid --log-file=/run/munge/log --seed-file=/run/munge/seed
exec "$@" </dev/null >/dev/null 2>&1
END
chmod +x "$LAB/slurm_start"

on() {
  nsenter --target "$(<"$LAB/pid/$1")" --net --mount --uts --ipc --pid -- "${@:2}"
}

"$LAB/slurm_start" slurmctld
for ((host = 0; host < hosts; ++host)); do on "n$host" "$LAB/slurm_start" slurmd; done
readonly limit=$((SECONDS + 30))
until [[ $(sinfo -h -o '%T %D' 2>/dev/null) == "idle $hosts" ]]; do
  if ((SECONDS >= limit)); then
    echo "slurm.sh: the hosts do not come" >&2
    tail -n 20 /run/slurm/slurmctld.log >&2
    on n0 tail -n 20 /run/slurm/slurmd.log >&2
    exit 1
  fi
  sleep 0.02
done
"$@"
