"""Puts tables that are kept as data into a page.

    page.py PAGE [--check]    fills each place of PAGE that names a table; --check: exit code 1 when one is out of date

A place is the lines between `<!-- table: FILE -->` and `<!-- end of table -->`; FILE is relative to the page. A
table is one JSON file: title, commit, machine, command, head, rows and verdicts (tables.py writes them).
"""
import json
import re
import sys
from pathlib import Path

PLACE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- end of table -->", re.S)


def markdown(table):
    """The table, and below it a line for each target."""
    lines = ["| " + " | ".join(table["head"]) + " |", "|" + "---|" * len(table["head"])]
    lines += ["| " + " | ".join(row) + " |" for row in table["rows"]]
    if table["verdicts"]:
        lines += [""] + [f"- {line}" for line in table["verdicts"]]
    return "\n".join(lines) + "\n"


def write(path, table):
    """One line for each row, so that a change shows which."""
    def one(value):
        return json.dumps(value, ensure_ascii=False)
    fields = [f"  {one(key)}: {one(value)}" if not isinstance(value, list) or key == "head" else
              f"  {one(key)}: [" + ",".join(f"\n    {one(item)}" for item in value) + ("\n  ]" if value else "]")
              for key, value in table.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(fields) + "\n}\n")


def filled(page):
    """The text of the page with every place filled from its data."""
    def place(match):
        table = json.loads((page.parent / match[1]).read_text())
        source = f"*{table['machine']}; commit {table['commit']}; `{table['command']}`.*"
        head = f"**{table['title']}**\n\n" if table["title"] else ""
        return f"<!-- table: {match[1]} -->\n{head}{markdown(table)}\n{source}\n<!-- end of table -->"
    return PLACE.sub(place, page.read_text())


def main(arguments):
    check = "--check" in arguments
    pages = [Path(argument) for argument in arguments if argument != "--check"]
    if len(pages) != 1 or not pages[0].is_file():
        print(__doc__, file=sys.stderr)
        return 2
    text = filled(pages[0])
    if not check:
        pages[0].write_text(text)
    elif text != pages[0].read_text():
        print(f"{pages[0]} differs from its data; run: python3 ci/gpu/page.py {pages[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
