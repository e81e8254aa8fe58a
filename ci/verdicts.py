#!/usr/bin/env python3
"""Do two programs come to the same verdicts?

    ci/verdicts.py OLD NEW [SCENARIO...]    OLD and NEW: two builds of `faultline`; without scenarios: all
                                            of scenarios/ that need neither guests nor a GPU

Runs each scenario as it is with both, OLD's own file where OLD's checkout has one of that name. Scenarios
whose verdicts differ are run again, three times in all, since a machine can be busy. They begin in the order
in which they are named: long ones first end soonest. A line for each, then "N scenarios: N with the same
verdict, N not". Exit code 1 when NEW passed one less often than OLD, 2 for a mistake.

Settings: VERDICTS_LANES=1 (so many runs at a time, each on 2 cores of its own), VERDICTS_SECONDS=600 (of each
run, which is broken off then: "late"), VERDICTS_OUT=FOLDER (keeps results).
"""

import concurrent.futures
import json
import os
import queue
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORES_OF_A_LANE = 2
TIMES = 3
SECONDS_TO_END = 60
NOT_HERE = ("gpu/", "rdma/")
MOST_TROUBLE = 4  # lines


def verdict(program, scenario, folder, cores, seconds):
    """The verdict of one run, with the expectations that were not met; how it ended, where it has none."""
    run = subprocess.Popen(
        ["taskset", "-c", cores, program, "run", str(scenario), "--out", str(folder), "--force"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        run.terminate()
        try:
            run.communicate(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
        return "late", []
    try:
        result = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        return f"exit {run.returncode}", said.strip().splitlines()[-1:]
    if result["verdict"] == "pass":
        return "pass", []
    missed = [one["text"] for one in result["expectations"] if not one["pass"] and not one.get("void")]
    return result["verdict"], (missed or [result["reason"]]) + trouble(result)[:MOST_TROUBLE]


def trouble(result):
    """What the runs of a result say of themselves that a reader of a missed expectation wants to know."""
    unproven, ends, hangs = [], [], []
    for run in result["runs"]:
        name = f"{run['strategy']}, block {run['block']}"
        unproven += [f"{name}: no evidence of fault {one['fault']}: {one['observed']}"
                     for one in run["evidence"] if not one["ok"]]
        if run["message"]:
            # Some strategies are meant to hang.
            (hangs if run["status"] == "hung" else ends).append(f"{name}: {run['message']}")
    return unproven + ends + hangs


def file_for(program, scenario):
    """The scenario as the program's own checkout has it (BUILD/faultline lies in it)."""
    if not scenario.is_relative_to(ROOT):
        return scenario
    own = Path(program).parent.parent / scenario.relative_to(ROOT)
    return own if own.exists() else scenario


def shown(scenario):
    return str(scenario.relative_to(ROOT)) if scenario.is_relative_to(ROOT) else str(scenario)


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    programs = {"old": os.path.abspath(sys.argv[1]), "new": os.path.abspath(sys.argv[2])}
    for program in programs.values():
        if not os.access(program, os.X_OK):
            print(f"{program} is no program", file=sys.stderr)
            return 2
    scenarios = [Path(name).resolve() for name in sys.argv[3:]] or [
        file for file in sorted((ROOT / "scenarios").rglob("*.yaml"))
        if not str(file.relative_to(ROOT / "scenarios")).startswith(NOT_HERE)]
    lanes = int(os.environ.get("VERDICTS_LANES", "1"))
    seconds = float(os.environ.get("VERDICTS_SECONDS", "600"))
    keep = os.environ.get("VERDICTS_OUT")
    free = queue.Queue()
    for lane in range(lanes):
        free.put(f"{lane * CORES_OF_A_LANE}-{(lane + 1) * CORES_OF_A_LANE - 1}")

    def run_once(out, scenario, which, time):
        folder = Path(out) / f"{shown(scenario).removesuffix('.yaml').replace('/', '.')}.{which}.{time}"
        cores = free.get()
        try:
            return verdict(programs[which], file_for(programs[which], scenario), folder, cores, seconds)
        finally:
            free.put(cores)

    def compare(pool, out):
        """(same, worse) of each scenario, told as soon as it is known."""
        said = {scenario: {"old": [], "new": []} for scenario in scenarios}
        why = {scenario: [] for scenario in scenarios}
        running = {}

        def begin(scenario):
            time = len(said[scenario]["old"])
            for which in programs:
                running[pool.submit(run_once, out, scenario, which, time)] = (scenario, which)

        for scenario in scenarios:
            begin(scenario)
        found = []
        while running:
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for run in done:
                scenario, which = running.pop(run)
                one, missed = run.result()
                of = said[scenario]
                of[which].append(one)
                why[scenario] += [f"    {which}: {text}" for text in missed]
                if len(of["old"]) != len(of["new"]):
                    continue
                if of["old"][-1] != of["new"][-1] and len(of["old"]) < TIMES:
                    begin(scenario)
                    continue
                same = of["old"] == of["new"] and len(of["old"]) == 1
                worse = of["new"].count("pass") < of["old"].count("pass")
                print(f"{shown(scenario):45} old {' '.join(of['old']):20} new {' '.join(of['new']):20}"
                      + (" WORSE" if worse else ""), *why[scenario], sep="\n", flush=True)
                found.append((same, worse))
        return found

    with tempfile.TemporaryDirectory(prefix="verdicts.") as scratch:
        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            found = compare(pool, keep or scratch)
    same = sum(one for one, _ in found)
    print(f"{len(found)} scenarios: {same} with the same verdict, {len(found) - same} not")
    return 1 if any(worse for _, worse in found) else 0


if __name__ == "__main__":
    sys.exit(main())
