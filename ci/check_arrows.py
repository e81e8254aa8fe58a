#!/usr/bin/env python3
"""Does every include follow the arrows of docs/design.md?

    ci/check_arrows.py                     the includes of all rooms
    ci/check_arrows.py --headers           also: does each header compile alone? (ten minutes)
    ci/check_arrows.py --changed-headers   that of the headers that have changed (ci/changed.py)

The table "Rooms and arrows" there names each room (a folder) and the rooms whose headers it may
include; every room may include base and itself. A '*' in the name of a room stands for the name of any
folder there that has no row of its own; among the rooms that such a row may include it stands for the
same name, and in other rows for all of them. A row "`ROOM`, besides `PATTERN`" has what ROOM alone may
include besides what the row PATTERN allows. Exit code 1, with the place, for an include that the table
does not allow, an arrow of the table that nobody uses, one of a '*' that only one folder uses, a room
that it does not know, or a circle; 3 where there is no commit to compare with.
"""

import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("base", "wire", "injector", "resilient_ccl", "sim", "harness", "reports")
FREE = {"base"}  # rooms that all may use


def room_of(path, rooms):
    """The room of a file: the innermost folder around it that is one; else the folder that ought to be."""
    folders = path.split("/")[:-1]
    for count in range(len(folders), 0, -1):
        if "/".join(folders[:count]) in rooms or "/".join(folders[:count]) in FREE:
            return "/".join(folders[:count])
    return "/".join(folders[:2])


class Row(list):
    """The rooms that a room may include, besides those of the row `besides`, if there is one."""

    def __init__(self, rooms, besides):
        super().__init__(rooms)
        self.besides = besides


def table_of(page):
    """{room: Row}, the table of the page as it is written."""
    section = page.split("## Rooms and arrows", 1)
    if len(section) < 2:
        sys.exit("docs/design.md has no section 'Rooms and arrows'")
    arrows = {}
    for line in section[1].split("\n## ", 1)[0].splitlines():
        row = re.match(r"\| `([^`]+)`(?:, besides `([^`]+)`)? \| (.*) \|$", line)
        if row:
            arrows[row[1]] = Row(re.findall(r"`([^`]+)`", row[3]), row[2])
    return arrows


def rooms_of(table, row):
    """{room: the name that its '*' stands for} of a row: one, or as many as there are folders."""
    if "*" not in row:
        return {row: None}
    before, after = row.split("*")
    found = {}
    for folder in sorted(ROOT.glob(row)):
        name = folder.relative_to(ROOT).as_posix()
        if folder.is_dir() and (name not in table or table[name].besides == row):
            found[name] = name[len(before):len(name) - len(after)]
    return found


def allowed_arrows(table):
    """{room: {room that it may include: the arrow as the table has it}}."""
    arrows = {}
    # What a room has in common with others counts as theirs.
    for row, allowed in sorted(table.items(), key=lambda entry: "*" in entry[0]):
        for room, name in rooms_of(table, row).items():
            arrows.setdefault(room, {})
            for other in allowed:
                those = [other.replace("*", name)] if name else rooms_of(table, other)
                arrows[room].update((one, (row, other)) for one in those if one != room)
    return arrows


def includes(file):
    """(line, included path) for each include of our own."""
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        found = re.match(r'\s*#\s*include ["<]([^">]+)[">]', line)
        if found and (found[1].split("/")[0] in TOPS or ".." in found[1].split("/")):
            yield number, found[1]


def sources():
    for top in TOPS:
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".cc") and file.is_file():
                yield file, file.relative_to(ROOT).as_posix()


def circle(arrows):
    """Some rooms that lead back to themselves; empty: none."""
    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return []
        path.append(room)
        for other in sorted(arrows.get(room, ())):
            found = visit(other)
            if found:
                return found
        path.pop()
        done.add(room)
        return []

    for room in sorted(arrows):
        found = visit(room)
        if found:
            return found
    return []


def check_arrows():
    table = table_of((ROOT / "docs/design.md").read_text())
    arrows = allowed_arrows(table)
    problems, used = [], {}
    for file, name in sources():
        room = room_of(name, arrows)
        if room not in FREE and room not in arrows:
            problems.append(f"{name}: docs/design.md knows no room {room}")
            continue
        for line, included in includes(file):
            if ".." in included.split("/"):
                problems.append(f"{name}:{line}: {included}: write it from the root of the repository")
                continue
            other = room_of(included, arrows)
            if other == room or other in FREE:
                continue
            if other in arrows.get(room, ()):
                used.setdefault(arrows[room][other], set()).add(room)
            else:
                problems.append(f"{name}:{line}: {room} may not include {included}")
    for row in sorted(table):
        if not any((ROOT / room).is_dir() for room in rooms_of(table, row)):
            problems.append(f"docs/design.md: there is no {row}: take its row out")
        common = table[row].besides
        if common and row not in rooms_of(table, common if common in table else ""):
            problems.append(f"docs/design.md: {row} is none of {common}, which has to be a row with a '*'")
        several = len(rooms_of(table, row)) > 1
        for other in sorted(table[row]):
            if (row, other) not in used:
                problems.append(f"docs/design.md: nothing in {row} includes {other}: take the arrow out")
            elif several and "*" not in other and len(used[row, other]) == 1:
                (only,) = used[row, other]
                problems.append(f"docs/design.md: of {row} only {only} includes {other}: write "
                                f"\"`{only}`, besides `{row}`\"")
    rooms = circle(arrows)
    if rooms:
        problems.append("docs/design.md: a circle: " + " -> ".join(rooms))
    return problems


def compile_flags():
    """What the build compiles the sources of each room with, without the precompiled header."""
    database = ROOT / "build/compile_commands.json"
    if not database.exists():
        sys.exit("--headers: build/compile_commands.json is missing: cmake --preset release")
    import json
    flags = {}
    for entry in json.loads(database.read_text()):
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.endswith(("++", "c++"))):]
        kept, skip = [words[0]], False
        for word in words[1:]:
            if skip:
                skip = False
            elif word in ("-o", "-c", "-MF", "-MT", "-include"):
                skip = True
            elif not word.startswith(("-M", "-Winvalid-pch")) and word != entry["file"]:
                kept.append(word)
        folder = re.search(r" -o (\S+?)/CMakeFiles/", entry["command"])
        if folder:
            flags.setdefault(folder[1], (entry["directory"], kept))
    return flags


def check_headers(of):
    """Which of these headers do not compile alone."""
    flags = compile_flags()

    def problem(name):
        folder = os.path.dirname(name)
        while folder and folder not in flags:
            folder = os.path.dirname(folder)
        if not folder:
            return None
        directory, command = flags[folder]
        run = subprocess.run(
            command + ["-x", "c++", "-fsyntax-only", "-"], input=f'#include "{ROOT / name}"\n',
            cwd=directory, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return None
        first = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr)
        return f"{name} does not compile alone: {first}"

    headers = [name for _, name in sources() if name.endswith(".h") and name in of]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [found for found in pool.map(problem, headers) if found]


def main():
    problems = check_arrows()
    if sys.argv[1:] == ["--headers"]:
        problems += check_headers({name for _, name in sources()})
    elif sys.argv[1:] == ["--changed-headers"]:
        import changed
        names, since = changed.files()
        if names is None:
            print(since, file=sys.stderr)
            return 3
        problems += check_headers(set(names))
    elif sys.argv[1:]:
        sys.exit(__doc__)
    for text in problems:
        print(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
