#!/bin/sh
# For Slurm's Prolog, as root: undoes what an earlier job has left and nobody holds. When that fails
# (exit code 4) Slurm drains the node, and starts the job elsewhere.
FAULTLINE=/usr/bin/faultline
JOURNAL=/var/lib/faultline/journal
if [ ! -x "$FAULTLINE" ]; then
  ls "$JOURNAL"/*.json >/dev/null 2>&1 || exit 0
  echo "$JOURNAL has strikes, and there is no $FAULTLINE to undo them: change FAULTLINE in $0" >&2
  exit 4
fi
exec "$FAULTLINE" restore --journal "$JOURNAL"
