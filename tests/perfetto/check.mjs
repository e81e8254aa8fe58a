// node check.mjs FOLDER trace.json...: reads traces with Perfetto's own trace processor, and fails unless
// all that the file has came out of it: each slice and moment with its time, track and name, each value of
// each counter, each name of a track, and no error on the way.
//
// FOLDER has trace_processor.wasm, engine_bundle.node.js and engine.mjs (docs/report.md says where they
// come from).

import {readFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {TraceProcessor} from './trace_processor.mjs';

const kNanosPerMicro = 1000;
const kDigits = 15;  // that a number keeps from text to text; the processor's last bit may be another one

const kSlices = `select pid, tid, slice.name as name, ts, dur from slice
  join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)`;
const kCounters = `select pid, t.name as name, ts, value from counter join process_counter_track t
  on counter.track_id = t.id join process using (upid)`;
const kTracks = `select pid, tid, thread.name as name from thread join process using (upid)
  where thread.name is not null`;
const kProcesses = 'select pid, name from process where name is not null';
const kErrors = `select name, value from stats where severity in ('error', 'data_loss') and value > 0`;

/// What the file has, in the words of the processor.
function contents(trace) {
  const of = (...phases) => trace.traceEvents.filter(({ph}) => phases.includes(ph));
  const meta = (what) => of('M').filter(({name}) => name === what);
  return {
    slices: of('X', 'i').map(({pid, tid, name, ts, dur = 0}) => ({pid, tid, name, ts: ts * kNanosPerMicro, dur: dur * kNanosPerMicro})),
    counters: of('C').flatMap(({pid, name, ts, args}) => Object.entries(args)
      .map(([series, value]) => ({pid, name: `${name} ${series}`, ts: ts * kNanosPerMicro, value}))),
    tracks: meta('thread_name').map(({pid, tid, args}) => ({pid, tid, name: args.name})),
    processes: meta('process_name').map(({pid, args}) => ({pid, name: args.name})),
  };
}

/// What is in one list and not in the other, each as often as it is there.
function missing(from, within) {
  const line = (item) => JSON.stringify({...item, ...(typeof item.value === 'number' && {value: item.value.toPrecision(kDigits)})}, Object.keys(item).sort());
  const left = new Map();
  for (const item of within) left.set(line(item), (left.get(line(item)) || 0) + 1);
  return from.map(line).filter((text) => {
    const count = left.get(text) || 0;
    left.set(text, count - 1);
    return count <= 0;
  });
}

/// A line for each thing that is wrong with the trace, and what came out of the processor.
async function check(folder, file) {
  const bytes = readFileSync(file);
  const wanted = contents(JSON.parse(bytes));
  const processor = await TraceProcessor.start(folder);
  try {
    await processor.load(bytes);
    const seen = {slices: await processor.rows(kSlices), counters: await processor.rows(kCounters),
      tracks: await processor.rows(kTracks), processes: await processor.rows(kProcesses)};
    const wrong = (await processor.rows(kErrors)).map(({name, value}) => `${name}: ${value}`);
    for (const [what, items] of Object.entries(wanted)) {
      const say = (lines, how) => {
        if (lines.length) wrong.push(`${lines.length} of ${items.length} ${what} ${how}, as ${lines[0]}`);
      };
      say(missing(items, seen[what]), 'did not arrive');
      say(missing(seen[what], items), 'are not in the file');
    }
    return {wrong, seen};
  } finally {
    processor.close();
  }
}

const [folder, ...files] = process.argv.slice(2);
if (!folder || !files.length) {
  console.error('usage: node check.mjs FOLDER trace.json...');
  process.exit(2);
}
// The decoder may be older than the processor, and says so of each answer.
const warn = console.warn;
console.warn = (...words) => { if (!/^Unexpected QueryResult field/.test(words[0])) warn(...words); };

let failed = false;
for (const file of files) {
  const {wrong, seen} = await check(resolve(folder), file);
  const counts = Object.entries(seen).map(([what, items]) => `${items.length} ${what}`).join(', ');
  console.log(`${wrong.length ? 'WRONG' : 'ok'}  ${file}: ${counts}`);
  for (const line of wrong) console.log(`  ${line}`);
  failed ||= wrong.length > 0;
}
process.exit(failed ? 1 : 0);
