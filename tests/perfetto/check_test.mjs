// node check_test.mjs FOLDER SAMPLE_REPORT: Perfetto's trace processor reads the traces of made-up results
// whole, and check.mjs finds what is wrong with broken ones.

import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const [folder, program] = process.argv.slice(2);
const directory = mkdtempSync(join(tmpdir(), 'faultline-perfetto-'));

function makeTrace(kind) {
  execFileSync(program, [join(directory, kind), kind], {stdio: ['ignore', 'ignore', 'inherit']});
  return join(directory, kind, 'trace.json');
}

function check(...files) {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'check.mjs');
  const {status, stdout, stderr} = spawnSync(process.execPath, [script, folder, ...files], {encoding: 'utf8'});
  return {status, text: stdout + stderr};
}

/// The sample's trace after `change` of its first event that `wanted` takes.
function broken(sample, wanted, change) {
  const trace = JSON.parse(readFileSync(sample));
  change(trace.traceEvents.find(wanted));
  const file = join(directory, 'broken.json');
  writeFileSync(file, JSON.stringify(trace));
  return file;
}

const iteration = ({cat, ph}) => cat === 'iteration' && ph === 'X';
const kBreaks = [
  ['a slice that reaches into the next', iteration, (event) => { event.dur += 10_000; }, /slice_drop_overlapping_complete_event: 1\n.*1 of \d+ slices did not arrive/],
  ['a time before the beginning', iteration, (event) => { event.ts = -5; }, /negative_timestamp_dropped: 1\n.*1 of \d+ slices did not arrive/],
  ['a counter that does not count', ({ph}) => ph === 'C', (event) => { event.args['Mbit/s'] = 'many'; }, /json_parser_failure: 1\n.*1 of \d+ counters did not arrive/],
];

try {
  const kinds = ['sample', 'rich', 'server'].map(makeTrace);
  const {status, text} = check(...kinds);
  assert.equal(status, 0, text);
  const lines = text.match(/^ok .*: \d{3,} slices, \d{4,} counters, \d{2,} tracks, \d+ processes$/gm);
  assert.equal(lines?.length, kinds.length, text);
  for (const [what, wanted, change, complaint] of kBreaks) {
    const result = check(broken(kinds[0], wanted, change));
    assert.equal(result.status, 1, `${what}: ${result.text}`);
    assert.match(result.text, complaint, what);
    console.log(`found: ${what}`);
  }
  console.log(text);
} finally {
  rmSync(directory, {recursive: true});
}
