'use strict';

// Of the report: what was injected, and how jobs recovered.
const recoveryParts = (() => {
  const {duration, el, fixed, grouped, isNumber, kNothing, legend, name, panel, plural, size, table, yesNo} = elements;
  const {blockName, body, data, hide, seconds, strategyName, unitOfWork} = page;
  const kUsualWatchdogS = 600;  // the default of the field's libraries
  const kMomentKnownMs = 5;     // as in reports/result.h
  const kTimelineRows = 16;     // more bars than this are not read; the table has them all

  // --- faults

  function evidenceCell(run, index) {
    const seen = run.evidence.filter((e) => e.fault === index);
    if (seen.length === 0) return yesNo(false, '', 'none');
    return el('span', null, seen.map((e) => el('span', null, yesNo(e.ok, e.kind, e.kind), el('span', {class: 'sub'}, e.observed))));
  }

  function hitCell({fault}) {
    if (!fault.hit) return kNothing;
    return el('span', null, yesNo(fault.hit.ok, isNumber(fault.hit.progress_pct) ? `at ${fixed(fault.hit.progress_pct, 0)} %` : 'hit', 'missed'),
      el('span', {class: 'sub'}, fault.hit.detail));
  }

  function drawFaults() {
    const rows = data.runs.flatMap((run) => run.faults.map((fault, index) => ({run, fault, index})));
    if (rows.length === 0) {
      body('faults').replaceChildren(panel(el('p', {class: 'empty'}, 'No fault was injected.')));
      return;
    }
    body('faults').replaceChildren(panel(table([
      {title: 'Run', nowrap: true, head: true, cell: ({run}) => el('span', null, strategyName(run.strategy), el('span', {class: 'sub'}, `block ${run.block + 1}`))},
      {title: 'Fault', nowrap: true, cell: ({fault}) => el('span', null, name(fault.kind), el('span', {class: 'sub'}, fault.target.text))},
      {title: 'When', nowrap: true, cell: ({fault}) => el('span', null,
        `${fixed(seconds(fault.start_ms), 3)} s to ${isNumber(fault.end_ms) ? `${fixed(seconds(fault.end_ms), 3)} s` : 'the end'}`,
        el('span', {class: 'sub'}, fault.trigger))},
      {title: 'Hit as planned', words: true, cell: hitCell},
      {title: 'Evidence', words: true, cell: ({run, index}) => evidenceCell(run, index)},
    ], rows, true)));
    const mechanisms = [...new Set(rows.map(({fault}) => fault.mechanism).filter(Boolean))];
    if (mechanisms.length > 0) body('faults').append(el('p', {class: 'hint'}, `How it was done here: ${mechanisms.join('; ')}.`));
  }

  // --- failovers and restarts

  /// How long after fault_ms nobody knows whether the fault was there, where that was too long to time it.
  const unsureMs = (failover) => (failover.fault_within_ms > kMomentKnownMs ? failover.fault_within_ms : 0);

  /// The first: it is not known whether the fault was there yet.
  function failoverPhases(failover) {
    const {fault_ms: fault, detected_ms: detected} = failover;
    const steps = [fault, Math.min(fault + unsureMs(failover), detected), detected, failover.fenced_ms, failover.resumed_ms];
    return steps.every(isNumber) ? [1, 2, 3, 4].map((i) => Math.max(0, steps[i] - steps[i - 1])) : null;
  }

  const channelName = (run, failover, several) =>
    `${several ? `${run.strategy} ` : ''}b${run.block + 1} ${failover.rank}${failover.direction === 'recv' ? '←' : '→'}${failover.peer} r${failover.rail}`;

  function drawFailovers() {
    const rows = data.runs.flatMap((run) => run.failovers.map((failover) => ({run, failover, phases: failoverPhases(failover)})));
    if (rows.length === 0) return hide('failovers');
    const target = body('failovers');
    target.replaceChildren();
    const total = ({phases}) => phases.reduce((sum, ms) => sum + ms, 0);
    const timed = rows.filter((row) => row.phases).sort((a, b) => total(b) - total(a)).slice(0, kTimelineRows);
    if (timed.length > 0) {
      const several = new Set(timed.map(({run}) => run.strategy)).size > 1;
      const unsure = timed.filter(({failover}) => unsureMs(failover) > 0).length;
      const phases = [{name: 'the fault may not be there yet', colour: '--phase-1', hatched: true}, {name: 'detect', colour: '--phase-1'},
        {name: 'fence', colour: '--phase-2'}, {name: 'send the rest elsewhere', colour: '--phase-3'}];
      const shown = phases.slice(unsure > 0 ? 0 : 1);
      const box = el('div', {class: 'panel padded'},
        legend([...shown.map((phase) => [phase.name, phase.colour, phase.hatched ? 'hatched' : null]), ['pause', '--ink', 'tick']]));
      target.append(box);
      charts.phases(box, 'Milliseconds from the fault to recovery', timed.map(({run, failover, phases: ms}) => ({
        name: channelName(run, failover, several),
        phases: ms.slice(-shown.length), pause: failover.pause_ms,
        mark: isNumber(failover.pause_ms) ? unsureMs(failover) + failover.pause_ms : null})), shown, 'ms');
      target.append(el('p', {class: 'hint'}, 'The tick is the pause: how long this channel stood still because of the fault. Left of the bar\'s end: ' +
        'moving the outstanding bytes takes some time without a fault too, and that is taken off. Right of it: ' +
        'a receive waited longer than that while data was due.'));
      const steps = [['detected', '--phase-1', 'detected_ms', 'circle'], ['fenced', '--phase-2', 'fenced_ms', 'rect'], ['resumed', '--phase-3', 'resumed_ms', 'triangle'],
        ['restored', '--phase-4', 'restored_ms', 'rectRot']];
      const line = el('div', {class: 'panel padded'}, legend(steps.map(([title, colour, , shape]) => [title, colour, `mark-${shape}`])));
      target.append(line);
      logCharts.milestones(line, 'Time from the fault until each step of recovery, logarithmic', timed.map(({run, failover}) => ({
        name: channelName(run, failover, several), steps: steps.map(([, , key]) => (isNumber(failover[key]) ? failover[key] - failover.fault_ms : null))})),
      steps.map(([title, colour, , shape]) => ({name: title, colour, shape})));
      target.append(el('p', {class: 'hint'}, `${timed.length < rows.length ? `The ${timed.length} slowest of ${rows.length}. ` : ''}` +
        'Each failover is seen from both ends. b1 1→2 r0: block 1, rank 1 sending to rank 2, rail 0.' +
        (unsure > 0 ? ` Hatched in ${plural(unsure, 'bar')}: it took the kernel so long to do the fault that nobody knows when it struck; ` +
          'pause and detection count from when it surely had.' : '')));
    }
    const listed = table([
      {title: 'Run', nowrap: true, cell: ({run}) => name(blockName(run))},
      {title: 'Channel', nowrap: true, cell: ({failover: f}) => `rank ${f.rank} ${f.direction} ${f.peer}, rail ${f.rail}`},
      {title: 'Cause', nowrap: true, cell: ({failover: f}) => el('span', null, f.cause, el('span', {class: 'sub'}, f.verdict))},
      ...[['Fault', 'fault_ms'], ['Detected', 'detected_ms'], ['Fenced', 'fenced_ms'], ['Resumed', 'resumed_ms'], ['Restored', 'restored_ms']].map(
        ([title, key]) => ({title: `${title}, ms`, number: true, cell: ({failover: f}) => fixed(f[key], 2)})),
      {title: 'Pause', number: true, cell: ({failover: f}) => el('strong', null, duration(f.pause_ms))},
      {title: 'Sent again', number: true, cell: ({failover: f}) => size(f.resent_bytes)},
      {title: 'Twice', number: true, cell: ({failover: f}) => size(f.duplicate_bytes)},
    ], rows);
    target.append(el('details', {class: 'panel', open: rows.length <= 6 ? '' : null}, el('summary', null, `Each of the ${plural(rows.length, 'failover')}`), listed));
  }

  function drawRestarts() {
    const rows = data.runs.flatMap((run) => run.restarts.map((restart) => ({run, restart})));
    if (rows.length === 0) return hide('restarts');
    const target = body('restarts');
    target.replaceChildren();
    const phases = [{name: 'hang until the watchdog', colour: '--phase-1'}, {name: 'isolate: kill and wait for the repair', colour: '--phase-2'},
      {name: 'load the checkpoint', colour: '--phase-3'}, {name: 'do lost work again', colour: '--phase-4'}];
    const box = el('div', {class: 'panel padded'}, legend(phases.map((phase) => [phase.name, phase.colour])));
    target.append(box);
    charts.phases(box, 'Seconds from the fault until lost work was done again', rows.slice(0, kTimelineRows).map(({run, restart}) => ({
      name: `${run.strategy} b${run.block + 1}`,
      phases: [restart.hang_ms, restart.isolate_ms, restart.load_ms, restart.lost_ms].map(seconds)})), phases, 's');
    target.append(panel(table([
      {title: 'Run', head: true, cell: ({run}) => name(blockName(run))},
      {title: 'Hang', number: true, cell: ({restart: r}) => duration(r.hang_ms)},
      {title: 'Isolate', number: true, cell: ({restart: r}) => duration(r.isolate_ms)},
      {title: 'Load', number: true, cell: ({restart: r}) => duration(r.load_ms)},
      {title: 'Lost work', number: true, cell: ({restart: r}) => `${plural(r.lost_iterations, unitOfWork())}, ${duration(r.lost_ms)}`},
      {title: 'Sum', number: true, cell: ({restart: r}) => el('strong', null, duration(r.hang_ms + r.isolate_ms + r.load_ms + r.lost_ms))},
      {title: 'Writing checkpoints', number: true, cell: ({run}) => duration(run.checkpoint_ms)},
      {title: `With a ${kUsualWatchdogS} s watchdog`, number: true, cell: ({restart: r}) => duration(r.unscaled_total_ms)},
    ], rows, true)));
    target.append(el('p', {class: 'hint'}, `The watchdog here is shortened, so that a bench run takes seconds. Libraries in the field usually wait ${kUsualWatchdogS} s; the last column is what the same restart would have cost with that. Writing checkpoints, all of the run, is no part of the sum, but of the overhead.`));
  }

  function leaver(run, rank) {
    const left = run.exclusions.find((exclusion) => exclusion.rank === rank);
    if (left) return `rank ${rank} (left: port of rail ${left.rails.join(', ')} down)`;
    const end = run.processes.find((process) => process.rank === rank);
    if (!end && run.processes.length < run.process_count) return `rank ${rank}`;  // its end is not in this page
    return `rank ${rank} (${end && end.signal === 0 ? 'left' : 'died'})`;
  }

  function drawShrinks() {
    const rows = data.runs.flatMap((run) => [...run.shrinks, ...(run.rebuilds ?? [])].map((shrink) => ({run, shrink})));
    if (rows.length === 0) return hide('shrinks');
    const target = body('shrinks');
    target.replaceChildren();
    target.append(panel(table([
      {title: 'Run', head: true, cell: ({run}) => name(blockName(run))},
      {title: 'Without', cell: ({run, shrink: s}) => s.missing.map((rank) => leaver(run, rank)).join(', ') || 'nobody'},
      {title: 'Ranks', number: true, cell: ({shrink: s}) => grouped(s.ranks)},
      {title: 'Noticed after', number: true, cell: ({shrink: s}) => duration(s.fault_ms === null ? null : s.noticed_ms - s.fault_ms)},
      {title: 'Rebuilt in', number: true, cell: ({shrink: s}) => el('strong', null, duration(s.resumed_ms - s.noticed_ms))},
      {title: 'Went on with iteration', number: true, cell: ({shrink: s}) => grouped(s.iteration)},
    ], rows, true)));
    if (rows.some(({run}) => run.processes.length === 0)) {
      target.append(el('p', {class: 'hint'}, 'An iteration of fewer ranks is as much less work: throughput and overhead count it so.'));
    }
  }

  return {drawFailovers, drawFaults, drawRestarts, drawShrinks};
})();
