"""Which files of this checkout have changed, for checks that look only at those."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*words):
    """What git says; "" where it fails, or is missing."""
    try:
        run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def base_commit(wanted):
    """(commit, how it is called): what is compared with."""
    wanted = wanted or os.environ.get("FAULTLINE_BASE")
    if wanted:
        return git("rev-parse", "--verify", wanted + "^{commit}"), wanted
    head = git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        common = git("merge-base", "HEAD", branch)
        if common and common != head:
            return common, f"where this branch left {branch}"
    return git("rev-parse", "--verify", "HEAD~1"), "the commit before"


def files(wanted=None):
    """(files that differ from a commit, committed or not, without those removed; which commit). The
    commit is `wanted`, or $FAULTLINE_BASE, or where this branch left origin/main or main, or, on
    those, the one before. (None, why) where there is no such commit."""
    base, called = base_commit(wanted)
    if not base:
        return None, f"there is no commit to compare with ({called}): this wants a clone that has it"
    names = git("diff", "--name-only", "--diff-filter=d", base).splitlines()
    names += git("ls-files", "--others", "--exclude-standard").splitlines()
    return names, f"{base[:10]} ({called})"
