# Lists the small edits that can be made to C++ sources, each of them a mutant: a change that a test
# should notice. One line for each, with tabs between:
#
#   FILE LINE COLUMN LENGTH KIND REPLACEMENT
#
# KIND is compare, logic, arithmetic, boolean, constant, negate, remove or leave. Comments, text in
# quotes, preprocessor lines, logging and declarations that only name things are left alone, and so
# are durations and hexadecimal numbers: those are chosen, and not computed.
#
#   awk -f mutants.awk FILE...
#
# The files have the format of .clang-format: operators have blanks around them, templates do not.

function emit(column, length_, kind, replacement) {
  printf "%s\t%d\t%d\t%d\t%s\t%s\n", FILENAME, FNR, column, length_, kind, replacement
}

# The line with blanks in place of comments and of what is in quotes, as long as before.
function masked(line,    out, i, c, quote, n) {
  out = ""; quote = ""; n = length(line)
  for (i = 1; i <= n; ++i) {
    c = substr(line, i, 1)
    if (in_comment) {
      if (substr(line, i, 2) == "*/") { in_comment = 0; out = out " "; ++i }
      out = out " "
    } else if (quote != "") {
      if (c == "\\") { out = out " "; ++i }
      else if (c == quote) quote = ""
      out = out " "
    } else if (substr(line, i, 2) == "//") {
      while (i++ <= n) out = out " "
    } else if (substr(line, i, 2) == "/*") {
      in_comment = 1; out = out "  "; ++i
    } else if (c == "\"" || (c == "'" && substr(line, i - 1, 1) !~ /[0-9a-fA-F]/)) {
      quote = c; out = out " "
    } else out = out c
  }
  return out
}

# Each place where `from` stands in the masked line.
function each(mask, from, kind, to,    at, rest, lead) {
  lead = 0; rest = mask
  while ((at = index(rest, from)) > 0) {
    emit(lead + at, length(from), kind, to)
    lead += at + length(from) - 2
    rest = substr(mask, lead + 1)
  }
}

function each_word(mask, from, kind, to,    at, rest, lead, before, after) {
  lead = 0; rest = mask
  while ((at = index(rest, from)) > 0) {
    before = substr(mask, lead + at - 1, 1); after = substr(mask, lead + at + length(from), 1)
    if (before !~ /[A-Za-z0-9_]/ && after !~ /[A-Za-z0-9_]/) emit(lead + at, length(from), kind, to)
    lead += at + length(from) - 1
    rest = substr(mask, lead + 1)
  }
}

# Whole numbers: one more.
function constants(mask,    at, lead, rest, number, before, after) {
  lead = 0; rest = mask
  while (match(rest, /[0-9]+/)) {
    number = substr(rest, RSTART, RLENGTH); at = lead + RSTART
    before = substr(mask, at - 1, 1); after = substr(mask, at + RLENGTH, 1)
    if (before !~ /[A-Za-z0-9_.']/ && after !~ /[A-Za-z0-9_.']/ && length(number) < 9)
      emit(at, RLENGTH, "constant", number + 1)
    lead += RSTART + RLENGTH - 1
    rest = substr(mask, lead + 1)
  }
}

# The place of the bracket that closes the one at `open`; 0: not on this line.
function closing(mask, open,    i, depth, c) {
  depth = 0
  for (i = open; i <= length(mask); ++i) {
    c = substr(mask, i, 1)
    if (c == "(") ++depth
    if (c == ")" && --depth == 0) return i
  }
  return 0
}

function balanced(text,    i, depth, c) {
  depth = 0
  for (i = 1; i <= length(text); ++i) {
    c = substr(text, i, 1)
    if (c ~ /[({[]/) ++depth
    if (c ~ /[)}\]]/ && --depth < 0) return 0
  }
  return depth == 0
}

FNR == 1 { in_comment = 0; previous = "" }

{
  mask = masked($0)
  code = mask
  sub(/^ +/, "", code); sub(/ +$/, "", code)
  if (code == "") next
  begins = previous == "" || previous ~ /[;{}:]$/
  follows_if = previous ~ /^(if|else|for|while).*\)$/
  previous = code
  if (code ~ /^#/ || code ~ /^(static_assert|using|namespace|template|friend|enum|struct|class)/ ||
      code ~ /spdlog::|^(public|private|protected|case .*|default):$/) next
  indent = match(mask, /[^ ]/)

  each(mask, " == ", "compare", " != "); each(mask, " != ", "compare", " == ")
  each(mask, " < ", "compare", " <= ");  each(mask, " <= ", "compare", " < ")
  each(mask, " > ", "compare", " >= ");  each(mask, " >= ", "compare", " > ")
  each(mask, " && ", "logic", " || ");   each(mask, " || ", "logic", " && ")
  each(mask, " + ", "arithmetic", " - "); each(mask, " - ", "arithmetic", " + ")
  each(mask, " += ", "arithmetic", " -= "); each(mask, " -= ", "arithmetic", " += ")
  each(mask, " * ", "arithmetic", " / ")
  each_word(mask, "true", "boolean", "false"); each_word(mask, "false", "boolean", "true")
  constants(mask)

  # if (condition) -> if (!(condition)); without a declaration inside.
  if (match(mask, /(^|[^A-Za-z0-9_])if \(/)) {
    open = RSTART + RLENGTH - 1; close_ = closing(mask, open)
    condition = substr(mask, open + 1, close_ - open - 1)
    if (close_ > 0 && condition !~ /;/ && condition !~ / = /) {
      emit(open + 1, length(condition), "negate", "!(" substr($0, open + 1, length(condition)) ")")
      # if (condition) return ...; -> as if it were not there
      if (substr(mask, close_ + 1) ~ /^ (return|continue|break).*;$/)
        emit(indent, length(code), "remove", ";")
    }
  }

  # A call, an assignment, a count that is a statement of its own, whole on this line.
  if (begins && !follows_if && code ~ /;$/ && balanced(code) &&
      code !~ /^(return|break|continue|const|constexpr|static|auto|else|for|if|while|do|goto|throw|delete|typedef|extern)[^A-Za-z0-9_]/) {
    if (code ~ /^(\+\+|--)[A-Za-z_.>\-]+;$/ || code ~ /^[A-Za-z_][A-Za-z0-9_.:>\[\]\-]* [+|&*-]?= .*;$/ ||
        code ~ /^(\(void\))?[A-Za-z_:][A-Za-z0-9_.:>\[\]\-]*\(.*\)[^ ]*;$/)
      emit(indent, length(code), "remove", ";")
  }

  # A function without a result does nothing.
  if (code ~ /^(void|static void|virtual void) [A-Za-z0-9_:]+\(.*\)( const)?( override)? \{$/)
    emit(length(mask) + 1, 0, "leave", " return;")
}
