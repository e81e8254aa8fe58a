"""Tables in Markdown from the results of scenarios/gpu. ci/gpu/table.sh calls it.

    tables.py sweep RESULT            time and bus bandwidth of each size, by row, and their ratio
    tables.py collectives RESULT      time of each collective, by size and row
    tables.py pauses RESULT...        by how much a fault makes its AllReduce longer
    tables.py shares RESULT...        calls before, during and after a fault that lasts
    tables.py ends RESULT...          how each run ended, and what it told

After a table a line for each target that it has (targets.py), of the row plugin: met or MISSED. Exit code 1
when one is missed, 2 for a mistake.

With GPU_DATA=FOLDER each table is also kept there as one JSON file, which page.py puts into a page. GPU_COMMIT,
GPU_MACHINE and GPU_COMMAND say in it what was measured, where and how.
"""
import json
import math
import os
import re
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the tree stays as it is
import page
import targets

# Of what one NIC less costs a whole call: a call after a fault that loses as much was without the NIC.
WITHOUT_A_NIC = 0.8
# The plugin leaves a rail out for so long after its failure (FAULTLINE_HOLD_OFF), also when the NIC is whole.
HOLD_OFF_MS = 50
CALL = re.compile(r"^# call (\d+) (\d+) \S+ time_us ([0-9.]+)")
# size, count, type, redop, [root], time, algbw, busbw, wrong
ROW = re.compile(r"^ +(\d+) +\d+ +\w+ +\w+ +(?:-?\d+ +)?([0-9.]+) +([0-9.]+) +([0-9.]+) +(\d+)")
COLLECTIVE = re.compile(r"^# (all_reduce|all_gather|reduce_scatter|all_to_all|send_recv)$")


class Run:
    """One run of a result with what its rank 0 printed."""

    def __init__(self, folder, data):
        self.row = data["strategy"]
        self.data = data
        self.folder = folder / f"command-{self.row}-{data['block']}"
        path = self.folder / "rank0" / "stdout.txt"
        self.lines = path.read_text().splitlines() if path.exists() else []
        self.calls = {int(m[1]): float(m[3]) / 1000 for m in map(CALL.match, self.lines) if m}
        self.sizes = {int(m[1]): (float(m[2]), float(m[4]), int(m[5]))
                      for m in map(ROW.match, self.lines) if m}
        self.shared = next((l[2:] for l in self.lines if l.startswith("#") and " share " in l), "")


def read(folder):
    folder = Path(folder)
    result = json.loads((folder / "result.json").read_text())
    return result, [Run(folder, run) for run in result["runs"]]


def told(name, title, head, rows, verdicts=()):
    """Prints the table, keeps it where GPU_DATA says, and returns whether all of its targets are met."""
    data = {"title": title, "commit": os.environ.get("GPU_COMMIT", "unknown"),
            "machine": os.environ.get("GPU_MACHINE", "unknown"),
            "command": os.environ.get("GPU_COMMAND", "ci/gpu/tables.py"),
            "head": list(head), "rows": [[str(cell) for cell in row] for row in rows],
            "verdicts": [line for _, line in verdicts]}
    print((f"**{title}**\n\n" if title else "") + page.markdown(data))
    if os.environ.get("GPU_DATA"):
        page.write(Path(os.environ["GPU_DATA"]) / f"{name}.json", data)
    return all(met for met, _ in verdicts)


def title(result, runs):
    cluster = result["scenario"]["cluster"]
    note = next((run.shared for run in runs if run.shared), "")
    return (f"{result['scenario']['name']}, {cluster['nodes']} nodes of {cluster['rails']} rails of "
            f"{cluster['rail_rate']}{'; ' + note if note else ''}")


def size_text(size):
    for unit, step in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << step and size % (1 << step) == 0:
            return f"{size >> step} {unit}"
    return f"{size} B"


def sweep(folder):
    """Bus bandwidth in Gbit/s, as ports are rated; in brackets the time of a call. The ratio is the
    plugin's bandwidth over that of the best row without it: of the medians, and in brackets the least and
    the most of single blocks, each with the best of its own."""
    result, runs = read(folder)
    by_row = {}
    for run in runs:
        by_row.setdefault(run.row, []).append(run)
    rows, ratios = [], {}
    for size in sorted({size for run in runs for size in run.sizes}):
        cells, best, plugin = [size_text(size)], None, None
        blocks = {}
        for name, group in by_row.items():
            found = [run.sizes[size] for run in group if size in run.sizes]
            if not found:
                cells.append("-")
                continue
            time = statistics.median(f[0] for f in found)
            bandwidth = statistics.median(f[1] for f in found) * 8
            wrong = sum(f[2] for f in found)
            cells.append(f"{bandwidth:.2f} ({time:.0f} us)" + (f" **{wrong} wrong**" if wrong else ""))
            if name == "plugin":
                plugin = time
            else:
                best = time if best is None else min(best, time)
            for run in group:
                if size in run.sizes:
                    blocks.setdefault(run.data["block"], {})[name == "plugin", name] = run.sizes[size][0]
        spread = []
        for times in blocks.values():
            with_it = [time for (is_plugin, _), time in times.items() if is_plugin]
            without = [time for (is_plugin, _), time in times.items() if not is_plugin]
            if with_it and without:
                spread.append(min(without) / min(with_it))
        if best and plugin:
            ratios[size] = best / plugin
        cells.append(f"{best / plugin:.3f} ({min(spread):.2f} to {max(spread):.2f})" if best and spread else "-")
        rows.append(cells)
    return told(f"sweep-{Path(folder).name}", title(result, runs), ["size", *by_row, "plugin / best without"], rows,
                targets.of_sweep(ratios, size_text))


def collectives(folder):
    """Time of a call out of place, us: the median of the runs, and in brackets the least and the most."""
    result, runs = read(folder)
    names = list(dict.fromkeys(run.row for run in runs))
    cells = {}
    for run in runs:
        collective = None
        for line in run.lines:
            if heading := COLLECTIVE.match(line):
                collective = heading[1]
            elif (found := ROW.match(line)) and collective:
                cell = cells.setdefault((collective, int(found[1])), {}).setdefault(run.row, [])
                # In place behind it: time, algbw, busbw, wrong; N/A where it cannot be.
                wrong = [line.split()[-1]] if line.split()[-1].isdigit() else []
                cell.append((float(found[2]), int(found[5]) + sum(map(int, wrong))))
    rows = []
    for (collective, size), by_row in cells.items():
        texts = []
        for name in names:
            times, wrongs = zip(*by_row[name]) if name in by_row else ([], [])
            texts.append("-" if not times else
                         f"{statistics.median(times):.0f} ({min(times):.0f} to {max(times):.0f})" +
                         (f" **{sum(wrongs)} wrong**" if sum(wrongs) else ""))
        rows.append([collective, size_text(size), *texts])
    return told(f"collectives-{Path(folder).name}", title(result, runs), ["collective", "size", *names], rows)


def call_at(run, ms):
    """The call that was under way at that moment of the run, also one that was never over; null: none."""
    for iteration in run.data["iterations"]:
        if iteration["start_ms"] <= ms < iteration["start_ms"] + iteration["ms"]:
            return iteration["index"]
    begun = [i["index"] for i in run.data["iterations"] if i["start_ms"] <= ms]
    return max(begun) + 1 if begun else None


def named(fault):
    """Its kind, and whether it takes less than the NIC."""
    return fault["kind"] + (" of one" if fault["parameters"].get("connections") == "one" else "")


def near(run, fault, call):
    """Whether the call was struck by the fault, or is one of those until three after its end."""
    struck = call_at(run, fault["start_ms"])
    ended = math.inf if fault["end_ms"] is None else call_at(run, fault["end_ms"])
    return struck is not None and struck <= call <= (math.inf if ended is None else ended) + 3


def away(fault):
    """For how many ms the fault takes the NIC from the plugin."""
    if fault["kind"] == "connection_reset":
        return HOLD_OFF_MS
    return math.inf if fault["end_ms"] is None else fault["end_ms"] - fault["start_ms"] + HOLD_OFF_MS


def pauses(folders):
    """What a fault costs its call and the next one beyond what one NIC less explains is its pause. A NIC that is
    away for A ms, one of r of its node, takes A / r of what the node can carry; a call of T ms that loses it at
    a share p has at most (1 - p) T / (r - 1) of that, and the next one of what is left at most T / (r - 1).
    A is how long the fault lasts and then the plugin's hold-off, and after a reset the hold-off alone. Only
    faults that strike a whole network count: while a rail is held off, the call before is longer already. T is
    the median of the calls before the first fault, or of all that no fault is near, which is the less: a run's
    first calls can be its slow ones, and would hide pauses. `lost` is all that the two take beyond T each, also
    what one rail less explains. `next without a NIC`: of how many of those counted the next call lost what one
    rail less costs a whole call, or nearly so, which a fault that lasts explains. Runs with more than one fault
    are judged."""
    rows, verdicts = [], []
    for folder in folders:
        result, runs = read(folder)
        rails = result["scenario"]["cluster"]["rails"]
        for run in runs:
            faults = run.data["faults"]
            if not faults or not run.calls:
                continue
            struck = [(call_at(run, fault["start_ms"]), fault) for fault in faults]
            first = min(call for call, _ in struck if call is not None)
            whole = statistics.median(ms for call, ms in run.calls.items() if call < first)
            calm = [ms for call, ms in run.calls.items() if not any(near(run, fault, call) for fault in faults)]
            whole = min(whole, statistics.median(calm)) if calm else whole
            less = whole * rails / (rails - 1)
            counted, lost, without, never = [], [], 0, 0
            for call, fault in struck:
                if call not in run.calls:
                    never += 1
                    continue
                if run.calls.get(call - 1, whole) > 1.15 * whole:
                    continue
                share = (fault["hit"] or {}).get("progress_pct", 0) / 100
                cost = away(fault) / rails
                explained = min(cost, (1 - share) * (less - whole))
                late = max(0.0, run.calls[call] - whole - explained)
                explained = min(cost - explained, less - whole)
                counted.append(late + max(0.0, run.calls.get(call + 1, 0) - whole - explained))
                lost.append(max(0.0, run.calls[call] + run.calls.get(call + 1, whole) - 2 * whole))
                without += run.calls.get(call + 1, 0) - whole >= WITHOUT_A_NIC * (less - whole)
            counted.sort()
            p50 = statistics.median(counted) if counted else None
            longest = counted[-1] if counted else None
            wrong = wrong_elements(run)
            if run.row == "plugin" and len(faults) > 1:
                verdicts += targets.of_pauses(faults[0]["kind"], len(faults), len(counted), p50, longest, wrong,
                                              failovers(run))
            seen = failovers(run)
            rows.append([", ".join(dict.fromkeys(named(fault) for fault in faults)), run.row, len(faults),
                         len(counted), never, f"{whole:.1f}", number(p50, 1), number(longest, 1),
                         f"{statistics.median(lost):.1f}" if lost else "-", f"{max(lost):.1f}" if lost else "-",
                         longest_pause(run), f"{without} of {len(counted)}", "-" if seen is None else seen,
                         number(wrong, 0), run.data["status"]])
    return told(f"pauses-{Path(folders[0]).name}", "",
                ["fault", "row", "faults", "counted", "never over", "call, ms", "pause p50, ms", "pause max, ms",
                 "lost p50, ms", "lost max, ms", "longest the plugin saw, ms", "next without a NIC", "failovers",
                 "wrong", "run"], rows, verdicts)


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def wrong_elements(run):
    """Of all calls; None: the run did not come to telling it."""
    return sum(row[2] for row in run.sizes.values()) if run.sizes else None


def counted_by_plugin(run, counter):
    """By its own counters, for each peer of each process."""
    return [peer[counter] for path in run.folder.glob("rank*/counters.json")
            for peer in json.loads(path.read_text())["peers"]]


def longest_pause(run):
    seen = counted_by_plugin(run, "longest_pause_ms")
    return f"{max(seen):.1f}" if seen else "-"


def failovers(run):
    """Of all processes; None: none has written its counters."""
    seen = counted_by_plugin(run, "failovers")
    return sum(seen) if seen else None


def share_of(text):
    """0.5 of "50%"; None of a rate that is no share."""
    return float(text[:-1]) / 100 if text.endswith("%") else None


def shares(folders):
    rows, verdicts = [], []
    for folder in folders:
        result, runs = read(folder)
        for run in runs:
            if not run.data["faults"] or not run.calls:
                continue
            fault = run.data["faults"][0]
            first = call_at(run, fault["start_ms"])
            last = None if fault["end_ms"] is None else call_at(run, fault["end_ms"])
            last = max(run.calls) + 1 if last is None else last
            before = [ms for call, ms in run.calls.items() if call < first]
            during = [ms for call, ms in run.calls.items() if first < call < last]
            after = [(call, ms) for call, ms in run.calls.items() if call > last]
            normal = statistics.median(before)
            what = fault["kind"] + "".join(f" {k}={v}" for k, v in fault["parameters"].items() if k == "rate")
            slowed = statistics.median(during) / normal if during else None
            back = None
            if after:
                # The first call that is as fast as before, as the two after it, and so all of the bandwidth.
                begins = {i["index"]: i["start_ms"] for i in run.data["iterations"]}
                after.sort()
                whole = next((call for at, (call, _) in enumerate(after)
                              if all(ms <= 1.03 * normal for _, ms in after[at:at + 3])), None)
                if whole is not None and whole in begins:
                    back = begins[whole] - fault["end_ms"]
            rails = result["scenario"]["cluster"]["rails"]
            rate = share_of(fault["parameters"].get("rate", ""))
            if run.row == "plugin" and fault["kind"] == "throttle" and rate is not None:
                verdicts += targets.of_slow(rails, rate, slowed)
            elif run.row == "plugin" and fault["kind"] == "port_down":
                verdicts += targets.of_lost(rails, slowed, back)
            rows.append([what, run.row, f"{rails}", f"{normal:.1f}", number(slowed, 3),
                         f"{max(run.calls.values()):.1f}", number(back, 0), number(wrong_elements(run), 0),
                         run.data["status"]])
    return told(f"shares-{Path(folders[0]).name}", "",
                ["fault", "row", "rails", "call before, ms", "time during / before", "longest call, ms",
                 "full speed after, ms", "wrong", "run"], rows, verdicts)


def ends(folders):
    rows = []
    for folder in folders:
        result, runs = read(folder)
        for run in runs:
            codes = sorted({str(p["exit_code"]) for p in run.data["processes"]})
            metrics = ", ".join(f"{name} {value['value'] if isinstance(value, dict) else value}"
                                for name, value in run.data["metrics"].items())
            first = run.data["faults"][0]["start_ms"] if run.data["faults"] else None
            late = f"{(run.data['duration_ms'] - first) / 1000:.1f}" if first is not None else "-"
            rows.append([result["scenario"]["name"], run.row, len(run.data["faults"]), run.data["status"],
                         " ".join(codes), late, metrics or "-"])
    return told(f"ends-{Path(folders[0]).name}", "",
                ["scenario", "row", "faults", "ended", "exit codes", "s after the fault", "told"], rows)


ONE = ("sweep", "collectives")  # a table for each result
SEVERAL = ("pauses", "shares", "ends")  # one for all of them


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ONE + SEVERAL:
        print(__doc__, file=sys.stderr)
        return 2
    make = globals()[arguments[0]]
    if arguments[0] in SEVERAL:
        met = make(arguments[1:])
    else:
        met = all([make(folder) for folder in arguments[1:]])  # all of them are made
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
