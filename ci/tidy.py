#!/usr/bin/env python3
"""Does clang-tidy find nothing in what changed? (.clang-tidy says what it looks for.)

    ci/tidy.py [--seconds N] [--base COMMIT]   the .cc and .h files that have changed since COMMIT
                                               (without it: ci/changed.py)
    ci/tidy.py [--seconds N] --all             all of them

Files of one target are read as one, up to twelve, since most of the time goes into the headers that
all of them include. Nothing new is begun after N seconds (default: no limit); what was left out is
said. The last line is "N files good, N with findings, N not looked at"; exit code 1 for findings, 3
where clang-tidy-14, whose findings these are, or a configured build (build/) is missing.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import changed

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PROGRAM = "clang-tidy-14"
FILES_TOGETHER = 12
# For compilers of another kind or age.
NOT_OURS = ("tests/fuzz/drivers/",)


def commands(folder):
    """{source: its compiler command, target} of a build without joined sources."""
    subprocess.run(
        ["cmake", "--preset", "debug", "-B", folder, "-DCMAKE_CXX_COMPILER_LAUNCHER="],
        cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    found = {}
    for entry in json.loads((Path(folder) / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"].replace(str(folder), str(BUILD)))  # headers that are made
        words = words[next(i for i, word in enumerate(words) if word.endswith(("++", "c++"))):]
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"])[1]
        kept, skip = [], False
        for word in words:
            if not skip and word not in ("-o", "-c", "-Werror") and word != entry["file"]:
                kept.append(word)
            skip = word == "-o"
        name = os.path.relpath(entry["file"], ROOT)
        found.setdefault(name, (kept, target))
    return found


def source_beside(header, known):
    """The source whose flags a header is read with: its own, or one of its folder, or above."""
    own = str(Path(header).with_suffix(".cc"))
    if own in known:
        return own
    folder = os.path.dirname(header)
    while folder:
        beside = [name for name in known if name.startswith(folder + "/")]
        if beside:
            return min(beside, key=lambda name: (name.count("/"), name))
        folder = os.path.dirname(folder)
    return None


def pieces(names, known):
    """[(files, command)]: those of one target, a few at a time. And the files that nothing compiles."""
    alike, unknown = {}, []
    for name in sorted(set(names)):
        source = name if name in known else source_beside(name, known)
        if source is None or (name.endswith(".cc") and source != name):
            unknown.append(name)
            continue
        command, target = known[source]
        if name.startswith("tests/") and name.endswith(".h"):  # what the tests that include it define
            command = command + [f'-DFAULTLINE_SOURCE_DIR="{ROOT}"', f'-DFAULTLINE_BINARY_DIR="{BUILD}"']
            target = "headers of tests beside " + target
        alike.setdefault((target, *command), []).append(name)
    work = []
    for (_, *command), files in alike.items():
        for first in range(0, len(files), FILES_TOGETHER):
            work.append((files[first:first + FILES_TOGETHER], command))
    return work, unknown


def look(folder, number, names, command):
    """What clang-tidy says of these files; "" when it is content. Files that cannot be read as one are
    looked at one by one."""
    said = look_at_once(folder, number, names, command)
    if len(names) == 1 or "[clang-diagnostic-error]" not in said:
        return said
    return "".join(look_at_once(folder, number, [name], command) for name in names)


def look_at_once(folder, number, names, command):
    source = Path(folder) / f"piece{number}.cc"
    source.write_text("".join(f'#include "{ROOT / name}"\n' for name in names))
    lines = json.dumps([{"name": str(ROOT / name)} for name in names])
    run = subprocess.run(
        [PROGRAM, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", "--header-filter=.*",
         f"--line-filter={lines}", str(source), "--", *command[1:], "-Wno-unknown-warning-option",
         "-Wno-pragma-once-outside-header", f"-I{ROOT}"],
        cwd=ROOT, capture_output=True, text=True, check=False)
    if not run.returncode:
        return ""
    return run.stdout or run.stderr or f"{PROGRAM} ended with {run.returncode}\n"


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--seconds", type=float, default=float("inf"))
    options.add_argument("--base")
    options.add_argument("--all", action="store_true")
    options.add_argument("--only", default="", help=argparse.SUPPRESS)  # a regular expression
    asked = options.parse_args()
    if not shutil.which(PROGRAM):
        print(f"there is no {PROGRAM}: ci/setup.sh installs it", file=sys.stderr)
        return 3
    if not (BUILD / "CMakeCache.txt").exists():
        print("nothing is built: cmake --preset release && cmake --build --preset release",
              file=sys.stderr)
        return 3
    if asked.all:
        names = changed.git("ls-files", "*.cc", "*.h").splitlines()
        print("clang-tidy of all files")
    else:
        names, since = changed.files(asked.base)
        if names is None:
            print(since, file=sys.stderr)
            return 3
        print(f"clang-tidy of what differs from {since}")
    names = [name for name in names if name.endswith((".cc", ".h"))
             and not name.startswith(NOT_OURS) and re.search(asked.only, name)]
    began = time.monotonic()
    good, bad, left = [], [], []
    with tempfile.TemporaryDirectory(prefix="tidy.") as folder:
        known = commands(Path(folder) / "build") if names else {}
        work, unknown = pieces(names, known)

        def one(numbered):
            number, (files, command) = numbered
            if time.monotonic() - began > asked.seconds:
                return files, None
            return files, look(folder, number, files, command)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for files, said in pool.map(one, enumerate(work)):
                if said is None:
                    left += files
                elif said:
                    print(said.replace(f"{ROOT}/", ""), end="", flush=True)
                    hit = [name for name in files if re.search(rf"^{ROOT / name}:\d", said, re.M)]
                    bad += hit or files
                    good += [name for name in files if hit and name not in hit]
                else:
                    good += files
    for name in unknown:
        print(f"not looked at: {name}: nothing compiles it here")
    for name in left:
        print(f"not looked at: {name}: {asked.seconds:g} s were over")
    print(f"{len(good)} files good, {len(bad)} with findings, {len(unknown) + len(left)} not looked at")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
