'use strict';

// Fills the page from the JSON in #data (reports/report_view.h).
(() => {
  const {count, duration, el, faultCost, fixed, grouped, isNumber, kNothing, kSpace, legend, missingTail, name, pairs, panel, plural, size, state, table,
    yesNo} = elements;
  const kUsualWatchdogS = 600;  // the default of the field's libraries
  const kMomentKnownMs = 5;     // as in reports/result.h
  const kOpenCalls = 100;       // a longer table is folded
  const kTimelineRows = 16;     // more bars than this are not read; the table has them all

  const data = JSON.parse(document.getElementById('data').textContent);
  const view = {block: null, node: null};

  const body = (id) => document.querySelector(`#${id} .body`);
  const hide = (id) => { document.getElementById(id).hidden = true; };
  const slug = (text) => String(text).replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 60);
  const runId = (run) => `run-${slug(run.strategy)}-b${run.block + 1}`;  // the same in every report of the scenario
  const blockName = (run) => `${run.strategy}, block ${run.block + 1}`;

  // --- head

  function drawHead() {
    const scenario = data.scenario || {};
    const cluster = scenario.cluster || {};
    const workload = scenario.workload || {};
    const facts = [
      ['Started', (data.started_at || '').replace('T', ' ').replace('Z', ' UTC')],
      ['Took', isNumber(data.duration_ms) && data.duration_ms > 0 ? duration(data.duration_ms) : null],
      ['Cluster', cluster.nodes ? [
        plural(cluster.nodes, 'node'), plural(cluster.ranks_per_node || 1, 'rank') + ' each',
        cluster.rails ? `${plural(cluster.rails, 'rail')}${cluster.rail_rate ? ` at ${cluster.rail_rate}` : ''}` : null,
        cluster.kind].filter(Boolean).join(', ') : null],
      ['Workload', [workload.kind, workload.iterations ? plural(workload.iterations, 'iteration') : null].filter(Boolean).join(', ')],
      ['Seed', data.seed],
    ].filter(([, value]) => value !== null && value !== undefined && value !== '');
    document.getElementById('top').replaceChildren(
      el('div', {class: 'brand'}, 'Faultline resilience report'),
      el('h1', null, data.name),
      scenario.description ? el('p', {class: 'description'}, String(scenario.description)) : '',
      el('dl', {class: 'facts'}, facts.map(([key, value]) => el('div', null, el('dt', null, key), el('dd', null, String(value))))));
    const version = ((data.environment || {}).versions || {}).faultline;
    document.getElementById('foot').replaceChildren(
      `Made by Faultline${version ? ` ${version}` : ''} from result.json. `, ...(data.notes || []).map((note) => `${note} `),
      'Charts: Chart.js, MIT licence.');
  }

  function drawVerdict() {
    const tone = data.interrupted ? 'warn' : {pass: 'good', invalid: 'warn'}[data.verdict] || 'bad';
    const box = document.getElementById('verdict');
    box.className = `verdict tone-${tone}`;
    box.replaceChildren(
      el('div', {class: 'word'}, (data.interrupted ? 'partial' : data.verdict).toUpperCase()),
      el('div', {class: 'text'}, el('h2', null, data.verdict_text), el('ul', null, data.reasons.map((reason) => el('li', null, reason)))));
  }

  /// Programs that are not ours have no ranks, and so no data, failovers and restarts of which we know.
  function isForeign() {
    return ((data.scenario || {}).workload || {}).kind === 'command';
  }

  /// Its iterations are requests, which overlap.
  function isServer() {
    return ((data.scenario || {}).workload || {}).kind === 'inference';
  }

  /// What one iteration of the bench is to the user, and one that a restart has to do again.
  const unitOfWork = () => (isServer() ? 'request' : 'iteration');
  const lostWork = (n) => (isServer() ? `${plural(n, 'request')} begun again` : `${plural(n, 'iteration')} lost`);

  function drawTiles() {
    if (data.runs.length === 0) return hide('tiles');
    const sum = (key) => data.tallies.reduce((total, tally) => total + tally[key], 0);
    const wrong = sum('wrong_elements');
    const pause = Math.max(0, ...data.tallies.map((tally) => tally.longest_pause_ms || 0));
    const evidence = data.runs.flatMap((run) => run.evidence);
    const tile = (label, value, unit, note, tone) => el('div', {class: 'tile'},
      el('div', {class: 'label'}, label),
      el('div', {class: `value${tone ? ` tone-${tone}` : ''}`}, value, unit ? el('small', null, ` ${unit}`) : null),
      el('div', {class: 'note'}, note));
    document.getElementById('tiles').replaceChildren(
      tile('Runs', grouped(sum('runs')), null, plural(data.tallies.length, 'strateg').replace(/strateg(s?)$/, (_m, s) => (s ? 'strategies' : 'strategy'))),
      isForeign() ? tile('Checked elements', 'none', null, 'the data of programs that are not ours are not known')
        : tile('Wrong elements', grouped(wrong), null, `of ${grouped(sum('checked_elements'))} checked`, wrong > 0 ? 'bad' : null),
      tile('Evidence', `${evidence.filter((e) => e.ok).length} of ${evidence.length}`, null, 'observations saw the fault',
        evidence.some((e) => !e.ok) ? 'bad' : null),
      ...(isForeign() ? [] : [
        tile('Failovers', grouped(sum('failovers')), null, sum('failovers') > 0 ? `longest pause ${duration(pause)}` : 'none'),
        tile('Restarts', grouped(sum('restarts')), null, sum('restarts') > 0 ? lostWork(sum('lost_iterations')) : 'none')]));
  }

  // --- strategies

  function strategyRows() {
    return data.tallies.map((tally) => ({tally, summary: data.summary.find((s) => s.strategy === tally.strategy) || {}}));
  }

  function overheadCell({summary}) {
    const overhead = summary.overhead_pct;
    if (summary.fault_cost_text) return faultCost(summary.fault_cost_text);
    if (!overhead) return el('span', {class: 'state neutral'}, kNothing);
    return el('span', null, el('strong', null, `${fixed(overhead.median, 1)} %`), ...howSure(overhead));
  }

  /// What communication alone adds: strategies lie within tenths of a percent.
  function exposedCell({summary}) {
    const exposed = summary.exposed_overhead_pct;
    return exposed ? el('span', null, el('strong', null, `${fixed(exposed.median, 2)} %`), ...howSure(exposed, 2)) : kNothing;
  }

  function howSure(overhead, digits = 1) {
    const ci = overhead.ci95;
    return [overhead.distinguishable === false ? el('span', {class: 'sub'}, 'not distinguishable from 0') : null,
      el('span', {class: 'sub'}, ci ? `95${kSpace}%: ${fixed(ci[0], digits)} to ${fixed(ci[1], digits)}${kSpace}%` : 'no interval below 6 blocks')];
  }

  function boundCell({summary}) {
    const text = isNumber(summary.bound_pct) ? `${fixed(summary.bound_pct, 1)} %` : kNothing;
    return summary.mis_measured ? el('span', null, text, el('span', {class: 'sub'}, state('bad', 'mis-measured'))) : text;
  }

  function pauseCell({summary}) {
    const pause = summary.failover_pause_ms;
    if (!pause || !pause.n) return kNothing;
    const tail = [['p95', pause.p95], ['p99', pause.p99]].filter(([, v]) => isNumber(v)).map(([p, v]) => `${p}${kSpace}${duration(v)}, `).join('');
    return el('span', null, el('strong', null, duration(pause.p50)), el('span', {class: 'sub'}, `${tail}max${kSpace}${duration(pause.max)}, ${count(pause.n)}`),
      missingTail(pause) ? el('span', {class: 'sub'}, missingTail(pause)) : null);
  }

  /// What was done in the first second after the last fault, and how long it took to be back.
  function afterFaultCell({summary}) {
    const after = summary.after_pct;
    const back = summary.back_to_95_pct_ms;
    if (!after) return kNothing;
    const least = after.n > 1 ? `least${kSpace}${fixed(after.min, 1)}${kSpace}%, ` : '';
    return el('span', null, el('strong', null, `${fixed(after.median, 1)} %`), el('span', {class: 'sub'}, `${least}${count(after.n)}`),
      back && isNumber(back.median) ? el('span', {class: 'sub'}, `back at 95${kSpace}% after ${duration(back.median)}` +
        (isNumber(back.max) && back.n > 1 ? `, max${kSpace}${duration(back.max)}` : '')) : null,
      back && back.never ? el('span', {class: 'sub'}, state('bad', `never back in ${back.never} of ${plural(back.n, 'run')}`)) : null);
  }

  function latencyColumns(rows) {
    if (!rows.some(({summary}) => summary.latency)) return [];
    const cell = (key) => ({summary}) => {
      const values = (summary.latency || {})[key];
      return values ? el('span', null, duration(values.p50), el('span', {class: 'sub'},
        `${isNumber(values.p95) ? `p95${kSpace}${duration(values.p95)}, ` : ''}max${kSpace}${duration(values.max)}, ${count(values.n)}`),
        missingTail(values) ? el('span', {class: 'sub'}, missingTail(values)) : null) : kNothing;
    };
    return [{title: 'Time to first token', number: true, cell: cell('ttft_ms')}, {title: 'Time per token', number: true, cell: cell('tpot_ms')}];
  }

  /// What the page's own sentences say of iterations, in the words of a server.
  function wordServer() {
    if (!isServer()) return;
    const lead = (id, text) => { document.querySelector(`#${id} .lead`).textContent = text; };
    lead('cost', 'Overhead is how much longer a request took on average, from its arrival to its last token, than in the ' +
      'fault-free runs of the same block. Throughput is that of the arrivals while the server keeps up.');
    lead('time', 'Above: requests per second whose last token came. Below: what each rail of one node sent. ' +
      'All pictures of a block share their axes.');
    lead('latency', 'The share of requests, at rates with which fault_free keeps up, and of pauses at failovers, that took at most so long. ' +
      'Further left is better; a long tail is what a mean hides.');
    lead('restarts', 'A stock library stops at a fault: the server hangs until a watchdog kills it and is started anew, ' +
      'and clients ask again for what they have not got.');
  }

  function drawCost() {
    const rows = strategyRows();
    const target = body('cost');
    if (rows.length === 0) return hide('cost');
    target.replaceChildren(panel(table([
      {title: 'Strategy', head: true, cell: ({tally, summary}) => el('span', null, name(tally.strategy),
        summary.origin === 'modelled' ? el('span', {class: 'tag'}, 'modelled') : null)},
      {title: 'Runs', nowrap: true, cell: ({tally}) => state(tally.runs === 0 ? null : tally.all_ok ? 'good' : 'warn', tally.status)},
      {title: 'Overhead', number: true, cell: overheadCell},
      {title: 'Best possible', number: true, cell: boundCell},
      ...(rows.some(({summary}) => summary.exposed_overhead_pct) ? [{title: 'Exposed', number: true, cell: exposedCell}] : []),
      {title: 'Pause at failover', number: true, cell: pauseCell},
      ...(rows.some(({summary}) => summary.after_pct) ? [{title: 'Second after the fault', number: true, cell: afterFaultCell}] : []),
      {title: 'Throughput', number: true, cell: ({summary}) => (summary.throughput
        ? el('span', null, fixed(summary.throughput.value, 2), el('span', {class: 'sub'}, summary.throughput.unit)) : kNothing)},
      ...latencyColumns(rows),
      {title: 'Restarts', number: true, cell: ({tally}) => (tally.restarts
        ? el('span', null, grouped(tally.restarts), el('span', {class: 'sub'}, lostWork(tally.lost_iterations))) : '0')},
    ], rows, true)));
    for (const {summary} of rows.filter((row) => row.summary.note)) {
      target.append(el('p', {class: 'hint'}, `${summary.strategy}: ${summary.note}.`));
    }

    for (const text of [data.noise_text, data.drift_text, ...(data.told || [])]) {
      if (text) target.append(el('p', {class: 'hint'}, `${text}.`));
    }

    const bars = rows.filter(({summary}) => summary.overhead_pct && isNumber(summary.overhead_pct.median)).map(({summary}) => ({
      name: summary.strategy, median: summary.overhead_pct.median, ci: summary.overhead_pct.ci95,
      bound: isNumber(summary.bound_pct) ? summary.bound_pct : null, modelled: summary.origin === 'modelled'}));
    if (bars.length === 0) return;
    const chart = el('div', {class: 'panel padded'}, legend([['overhead, median of the blocks', '--bar'],
      ...(bars.some((b) => b.ci) ? [['95 % interval', '--ink', 'whisker']] : []),
      ...(bars.some((b) => b.bound !== null) ? [['best possible', '--good', 'tick']] : [])]));
    target.append(chart);
    charts.overhead(chart, bars);
  }

  function drawExpectations() {
    if (data.expectations.length === 0) return hide('expectations');
    const value = (v) => (v === null ? 'no such value' : typeof v === 'number' ? String(+v.toPrecision(6)) : String(v));
    body('expectations').replaceChildren(panel(table([
      {title: 'Expectation', head: true, cell: (e) => name(e.text)},
      {title: 'Found', number: true, cell: (e) => value(e.value)},
      {title: 'Result', nowrap: true, cell: (e) => (e.void ? state('warn', 'void') : yesNo(e.pass, 'holds', 'fails'))},
      ...(data.expectations.some((e) => e.message) ? [{title: 'Why', words: true, cell: (e) => e.message}] : []),
    ], data.expectations, true)));
  }

  // --- over time

  const seconds = (ms) => ms / 1000;

  function endOf(run) {
    const columns = run.iterations || {start_ms: [], ms: []};
    const last = columns.start_ms.length - 1;
    const series = run.rail_series.map((s) => s.start_ms + s.bin_ms * s.tx_bytes.length);
    return seconds(Math.max(run.duration_ms || 0, last >= 0 ? columns.start_ms[last] + columns.ms[last] : 0, ...series));
  }

  const faultSpans = (run, end) => run.faults.map((fault) =>
    ({from: seconds(fault.start_ms), to: isNumber(fault.end_ms) ? seconds(fault.end_ms) : end}));

  function medianRate(run) {
    const times = run.iterations.ms.map((ms, i) => ms / run.iterations.count[i]).filter((ms) => ms > 0).sort((a, b) => a - b);
    return times.length ? 1000 / times[Math.floor(times.length / 2)] : null;
  }

  function choice(label, values, current, text, change) {
    if (values.length < 2) return null;
    const select = el('select', null, values.map((v) => el('option', {value: v, selected: v === current ? '' : null}, text(v))));
    select.addEventListener('change', () => change(Number(select.value)));
    return el('label', null, label, select);
  }

  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

  function drawTime() {
    const drawable = data.runs.filter((run) => run.iterations && run.iterations.start_ms.length > 0 || run.rail_series.length > 0);
    if (drawable.length === 0) return hide('time');
    const blocks = distinct(drawable.map((run) => run.block));
    const nodes = distinct(drawable.flatMap((run) => run.rail_series.map((s) => s.node)));
    const hit = data.runs.flatMap((run) => run.faults).map((fault) => fault.target.node).find((node) => nodes.includes(node));
    if (view.block === null) [view.block] = blocks;
    if (view.node === null) view.node = hit !== undefined ? hit : nodes[0];

    const shown = drawable.filter((run) => run.block === view.block);
    const maxX = charts.roundUp(Math.max(...shown.map(endOf)));
    const series = (run) => run.rail_series.filter((s) => s.node === view.node && s.bin_ms > 0).sort((a, b) => a.rail - b.rail);
    const railNames = distinct(shown.flatMap((run) => series(run).map((s) => s.rail)));
    const plain = shown.find((run) => !run.faulted && run.iterations && run.iterations.ms.length > 0);
    // Of a server there is no one rate: each of the load's has its own.
    const reference = plain && !isServer() ? medianRate(plain) : null;

    const prepared = shown.map((run) => ({
      run, faults: faultSpans(run, maxX), points: run.iterations ? charts.rate(run.iterations) : [],
      rails: series(run).map((s) => ({rail: s.rail, points: charts.railPoints(s, maxX)}))}));
    const maxRate = Math.max(0, reference || 0, ...prepared.flatMap((p) => p.points.map((point) => point.y)));
    const stack = ({rails}) => (rails.length ? rails[0].points.map((_p, i) => rails.reduce((sum, r) => sum + ((r.points[i] || {}).y || 0), 0)) : []);
    const maxMbit = Math.max(0, ...prepared.flatMap(stack));

    const redraw = (change) => (value) => {
      const focused = [...body('time').querySelectorAll('select')].indexOf(document.activeElement);
      change(value);
      charts.destroyIn(body('time'));
      drawTime();
      body('time').querySelectorAll('select')[focused]?.focus();  // the keyboard stays where it was
    };
    body('time').replaceChildren(
      el('div', {class: 'controls'},
        choice('Block', blocks, view.block, (b) => String(b + 1), redraw((b) => { view.block = b; })),
        choice('Rails of node', nodes, view.node, (n) => (n === hit ? `${n} (hit by the fault)` : String(n)), redraw((n) => { view.node = n; })),
        legend([['fault active', '--fault', 'band'],
          ...(reference !== null ? [['median without a fault', '--muted', 'line']] : []),
          ...railNames.map((rail) => [`rail ${rail}`, charts.railColour(rail)])])));
    const grid = el('div', {class: 'multiples'});
    body('time').append(grid);
    for (const {run, faults, points, rails} of prepared) {
      const tone = {ok: 'good', hung: 'warn', invalid: 'warn'}[run.status] || 'bad';
      const card = el('div', {class: 'panel'}, el('h3', null, name(run.strategy), state(tone, run.status)),
        el('p', {class: 'axis-title'}, isServer() ? 'answered requests/s' : 'iterations per second'));
      grid.append(card);
      charts.throughput(card, {points, faults, reference: run === plain ? null : reference, maxX, maxY: maxRate,
        unit: isServer() ? 'requests' : 'iterations'});
      if (rails.length === 0) continue;
      card.append(el('p', {class: 'axis-title'}, `node ${view.node}: Mbit/s sent, rails stacked`));
      charts.rails(card, {rails, faults, maxX, maxY: maxMbit});
    }
    drawHeat(prepared, maxX);
  }

  const kHeatNodes = 16;  // more rows than this are not read

  function drawHeat(prepared, maxX) {
    const all = prepared.flatMap(({run}) => run.rail_series.filter((s) => s.bin_ms > 0));
    const nodes = distinct(all.map((s) => s.node)).slice(0, kHeatNodes);
    if (nodes.length === 0) return;
    const strips = prepared.map(({run, faults}) => ({run, faults, nodes: nodes.map((node) => ({node,
      series: run.rail_series.filter((s) => s.node === node && s.bin_ms > 0).sort((a, b) => a.rail - b.rail)
        .map((s) => ({points: charts.railPoints(s, maxX)}))}))}));
    const maxMbit = Math.max(0, ...strips.flatMap((s) => s.nodes.flatMap((n) => n.series.flatMap((r) => r.points.map((p) => p.y)))));
    const hit = (run, node) => run.faults.some((fault) => fault.target.node === node);
    body('time').append(el('h3', null, 'Each rail of each node'), el('div', {class: 'multiples'}, strips.map(({run, faults, nodes: list}) =>
      el('div', {class: 'panel'}, el('h3', null, name(run.strategy)), list.map(({node, series: rows}) =>
        el('div', {class: 'heat-row'}, el('span', {class: hit(run, node) ? 'hit' : null}, `node ${node}`),
          el('div', {style: `height: ${Math.max(9, 6 * rows.length)}px`}, charts.heat(rows, maxX, maxMbit),
            faults.map(({from, to}) => el('i', {style: `left: ${(100 * from) / maxX}%; width: ${(100 * Math.max(0, Math.min(to, maxX) - from)) / maxX}%`})))))))));
    body('time').append(el('p', {class: 'hint'}, `A line per rail, in order; full colour is ${fixed(maxMbit, 0)} Mbit/s, pale is nothing. Framed: while a fault was active; a node that it struck is marked.`));
  }

  // --- how long each took

  function drawLatency() {
    const colourOf = (strategy) => charts.railColour(data.tallies.findIndex((tally) => tally.strategy === strategy));
    const kinds = [['iteration', 'Iterations'], ['ttft', 'Time to the first token'], ['tpot', 'Time of each further token'], ['whole', 'Whole requests'], ['pause', 'Pauses at failovers']].map(([of, title]) => ({
      title, curves: data.distributions.filter((d) => d.of === of).slice(0, 8).map((d) => ({name: d.strategy, n: d.n, ms: d.ms, colour: colourOf(d.strategy)}))}));
    const shown = kinds.filter(({curves}) => curves.length > 0);
    if (shown.length === 0) return hide('latency');
    const grid = el('div', {class: 'multiples'});
    body('latency').replaceChildren(grid);
    for (const {title, curves} of shown) {
      const card = el('div', {class: 'panel'}, el('h3', null, title),
        legend(curves.map((c) => [`${c.name}, ${count(c.n)}`, c.colour, 'curve'])));
      grid.append(card);
      charts.cdf(card, `${title}: share that took at most so long`, curves);
    }
  }

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
      {title: 'Run', nowrap: true, head: true, cell: ({run}) => el('span', null, name(run.strategy), el('span', {class: 'sub'}, `block ${run.block + 1}`))},
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
      const steps = [['detected', '--phase-1', 'detected_ms'], ['fenced', '--phase-2', 'fenced_ms'], ['resumed', '--phase-3', 'resumed_ms'], ['restored', '--good', 'restored_ms']];
      const line = el('div', {class: 'panel padded'}, legend(steps.map(([title, colour]) => [title, colour, 'dot'])));
      target.append(line);
      charts.milestones(line, 'Time from the fault until each step of recovery, logarithmic', timed.map(({run, failover}) => ({
        name: channelName(run, failover, several), steps: steps.map(([, , key]) => (isNumber(failover[key]) ? failover[key] - failover.fault_ms : null))})),
      steps.map(([title, colour]) => ({name: title, colour})));
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
    if (rows.some(({run}) => run.kind !== 'nccl')) {
      target.append(el('p', {class: 'hint'}, 'An iteration of fewer ranks is as much less work: throughput and overhead count it so.'));
    }
  }

  // --- collective calls

  /// Of calls, whose sizes are powers of two: "16 MiB".
  function binarySize(bytes) {
    const [unit, of] = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]].find(([, one]) => bytes >= one && bytes % one === 0) || ['B', 1];
    return `${grouped(bytes / of)}${kSpace}${unit}`;
  }

  function drawCalls() {
    // What is nothing is not written: see strategyCallsView in reports/report_view.cc.
    const rows = data.calls.flatMap((call) => call.strategies.map((of) => ({call, of})));
    if (rows.length === 0) return hide('calls');
    const percent = (share) => (isNumber(share) ? `${fixed(100 * share, 1)}${kSpace}%` : kNothing);
    const below = (text, sub) => (sub ? el('span', null, text, el('span', {class: 'sub'}, sub)) : text);
    const notes = (of) => [[of.latency_only, 'passes in bursts: latency only'], [of.unsettled, 'unsettled'], [of.mis_measured, 'mis-measured']]
      .filter(([is]) => is).map(([, note]) => note).join(', ');
    const listed = table([
      {title: 'Operation', nowrap: true, cell: ({call}) => below(name(call.operation), [call.dtype, call.op, call.in_place ? 'in place' : ''].filter(Boolean).join(', '))},
      {title: 'Size', number: true, cell: ({call}) => binarySize(call.size_bytes)},
      {title: 'Strategy', nowrap: true, head: true, cell: ({of}) => name(of.strategy)},
      {title: 'Time', number: true, cell: ({of}) => duration(of.p50_ms)},
      {title: 'Busbw', number: true, cell: ({of}) => (isNumber(of.busbw) ? `${fixed(of.busbw, 4)} GB/s` : kNothing)},
      {title: 'Kept', number: true, cell: ({of}) => below(percent(of.kept), notes(of))},
      {title: 'Best possible', number: true, cell: ({of}) => (isNumber(of.kept) && of.bound > 0 ? percent(1 / of.bound) : kNothing)},
      {title: 'Planned', number: true, cell: ({of}) => (isNumber(of.kept) && of.model > 0 ? percent(1 / of.model) : kNothing)},
      {title: 'Time / bound', number: true, cell: ({of}) => fixed(of.time_over_bound, 3)},
      {title: 'Calls', number: true, cell: ({of: {n, left_out: left = 0}}) => below(grouped(n), left > 0 ? `of ${grouped(n + left)}` : null)},
      {title: 'Wrong', number: true, cell: ({of: {wrong_elements: wrong = 0}}) => grouped(wrong)},
    ], rows);
    const some = data.calls.length < data.call_count ? `${grouped(data.calls.length)} of ` : '';
    body('calls').replaceChildren(el('details', {class: 'panel', open: rows.length <= kOpenCalls ? '' : null},
      el('summary', null, some + plural(data.call_count, 'call')), listed));
  }

  // --- plans

  /// "rank 1: 50 %, rank 3: 100 % out 25 % in": the ports that do not have everything.
  function portsText(health) {
    const percent = (share) => `${fixed(100 * share, 0)}${kSpace}%`;
    const slow = health.map(({send, receive}, rank) => ({send, receive, rank})).filter(({send, receive}) => send < 1 || receive < 1);
    return slow.map(({send, receive, rank}) => `rank ${rank}: ${percent(send)}${send === receive ? '' : ` out ${percent(receive)} in`}`).join(', ') || 'all';
  }

  function drawPlans() {
    const rows = data.runs.flatMap((run) => run.plans.map((plan) => ({run, plan})));
    if (rows.length === 0) return hide('plans');
    const listed = table([
      {title: 'Run', nowrap: true, head: true, cell: ({run}) => name(blockName(run))},
      {title: 'From', number: true, cell: ({plan}) => (plan.at_ms < 0 ? 'warm-up' : `${fixed(seconds(plan.at_ms), 3)} s`)},
      {title: 'Size', number: true, cell: ({plan}) => size(plan.bytes)},
      {title: 'Left of the ports', words: true, cell: ({plan}) => portsText(plan.health)},
      {title: 'Algorithm', nowrap: true, cell: ({plan}) => el('span', null, name(plan.algorithm), el('span', {class: 'sub'}, plural(plan.segments, 'segment') + (plan.tried ? ', tried' : '')))},
      {title: 'Predicted', number: true, cell: ({plan}) => duration(plan.predicted_ms)},
      {title: 'A ring', number: true, cell: ({plan}) => duration(plan.ring_ms)},
      {title: 'Best possible', number: true, cell: ({plan}) => duration(plan.bound_ms)},
      {title: 'Hash', nowrap: true, cell: ({plan}) => el('span', {class: 'mono', title: plan.hash}, plan.hash.slice(0, 8))},
    ], rows);
    body('plans').replaceChildren(el('details', {class: 'panel', open: rows.length <= 12 ? '' : null},
      el('summary', null, plural(rows.length, 'plan')), listed));
  }

  // --- training

  function drawTraining() {
    const facts = data.training;
    if (!facts) return hide('training');
    const free = data.runs.find((run) => run.arm === 'plain' && run.exposed.length > 0);
    const waits = (phase) => {
      if (!free) return kNothing;
      const row = free.exposed.find((one) => one.phase === phase);
      return row ? `${duration(row.ms)}, ${fixed(row.share_pct, 1)} %` : '0';
    };
    document.querySelector('#training .lead').textContent =
      `${facts.model} on ${facts.device}, ${fixed(facts.parameters / 1e9, 2)} billion parameters ` +
      `(${fixed(facts.parameters_per_rank / 1e9, 2)} a rank), ${grouped(facts.tokens_per_iteration)} tokens an iteration. ` +
      `Scale ${grouped(facts.scale)}: all times and bytes of this report are so many times smaller than the model's. ` +
      `Compute of an iteration: ${duration(facts.compute_ms)} here, ${duration(facts.real_compute_ms)} really; ` +
      `memory of a rank: ${size(facts.states_bytes + facts.activations_bytes)} of ${size(facts.device_bytes)}.`;
    body('training').replaceChildren(table([
      {title: 'Communication', nowrap: true, head: true, cell: (row) => name(row.phase)},
      {title: 'Operation', nowrap: true, cell: (row) => name(row.operation)},
      {title: 'Ranks', number: true, cell: (row) => grouped(row.ranks)},
      {title: 'Calls', number: true, cell: (row) => grouped(row.calls)},
      {title: 'Bytes', number: true, cell: (row) => size(row.bytes)},
      {title: 'Really', number: true, cell: (row) => size(row.real_bytes)},
      {title: 'Fault-free wait', number: true, cell: (row) => waits(row.phase)},
    ], facts.phases));
  }

  // --- requests

  function drawRequests() {
    const rows = data.summary.flatMap((row) => (row.rates || []).map((rate) => ({row, rate})));
    if (rows.length === 0) return hide('requests');
    const tail = (all, which) => (isNumber(all[which]) ? duration(all[which]) : kNothing);
    const latency = (title, key, cost, p95) => ({title, number: true, cell: ({rate}) => el('span', null,
      `${tail(rate[key], 'p50')} / ${tail(rate[key], 'p95')} / ${tail(rate[key], 'p99')}`,
      el('span', {class: 'sub'}, `n ${grouped(rate[key].n)}`),
      missingTail(rate[key]) ? el('span', {class: 'sub'}, missingTail(rate[key])) : null,
      ...(rate[cost] ? [el('span', {class: 'sub'}, `median costs ${fixed(rate[cost].median, 1)} % (${plural(rate[cost].n, 'block')})`), ...howSure(rate[cost])] : []),
      ...(rate[p95] ? [el('span', {class: 'sub'}, `p95 costs ${fixed(rate[p95].median, 1)} %`), ...howSure(rate[p95])] : []))});
    const served = data.summary.filter((row) => (row.rates || []).length > 0);
    const knees = served.map((row) => `${row.strategy} ${isNumber(row.knee_qps) ? `from ${row.knee_qps} a second on` : 'none'}`);
    document.querySelector('#requests .knee').textContent = served.some((row) => isNumber(row.knee_qps))
      ? `Not kept up with (less than 90 % finished within the objectives): ${knees.join('; ')}.` : 'All rates were kept up with.';
    body('requests').replaceChildren(table([
      {title: 'Strategy', nowrap: true, head: true, cell: ({row}) => name(row.strategy)},
      {title: 'Rate, 1/s', number: true, cell: ({rate}) => fixed(rate.qps, 2)},
      {title: 'Goodput, 1/s', number: true, cell: ({rate}) => (isNumber(rate.burst_below_requests)
        ? el('span', null, fixed(rate.goodput, 2), el('span', {class: 'sub'}, `a burst, not a rate: set requests to ${grouped(rate.burst_below_requests)} or more`)) : fixed(rate.goodput, 2))},
      ...['finished', 'late', 'lost', 'redone'].map((key) => ({title: key[0].toUpperCase() + key.slice(1), number: true, cell: ({rate}) => grouped(rate[key])})),
      latency('TTFT p50 / p95 / p99', 'ttft_ms', 'ttft_overhead_pct', 'ttft_p95_overhead_pct'),
      latency('TPOT p50 / p95 / p99', 'tpot_ms', 'tpot_overhead_pct', 'tpot_p95_overhead_pct'),
      latency('Whole p50 / p95 / p99', 'e2e_ms', null, null),
    ], rows));
  }

  // --- runs and environment

  function drawRuns() {
    if (data.runs.length === 0) return hide('runs');
    const exitCodes = ({processes, process_count: all}) => processes.map((end) => end.exit_code).join(' ') +
      (processes.length < all ? ` and ${grouped(all - processes.length)} more` : '');
    const told = [...new Set(data.runs.flatMap((run) => Object.keys(run.metrics || {})))].sort();
    const list = table([
      {title: 'Strategy', nowrap: true, cell: (run) => name(run.strategy)},
      {title: 'Block', number: true, cell: (run) => String(run.block + 1)},
      {title: 'Arm', nowrap: true, cell: (run) => run.arm},
      {title: 'Status', nowrap: true, cell: (run) => state({ok: 'good', hung: 'warn', invalid: 'warn'}[run.status] || 'bad', run.status)},
      {title: isServer() ? 'Requests' : 'Iterations', number: true, cell: (run) => grouped(run.iteration_count)},
      {title: 'Took', number: true, cell: (run) => (run.checkpoint_ms > 0
        ? el('span', null, duration(run.duration_ms), el('span', {class: 'sub'}, `${duration(run.checkpoint_ms)} checkpoints`)) : duration(run.duration_ms))},
      {title: 'Throughput', number: true, cell: (run) => (run.throughput ? `${fixed(run.throughput.value, 2)} ${run.throughput.unit}` : kNothing)},
      ...(isForeign() ? [{title: 'Exit codes', nowrap: true, cell: exitCodes}] : [
        {title: 'Wrong', number: true, cell: (run) => grouped(run.wrong_elements)},
        {title: 'Failovers', number: true, cell: (run) => grouped(run.failover_count)},
      ]),
      ...told.map((key) => ({title: key, number: true,
        cell: (run) => (run.metrics[key] ? `${fixed(run.metrics[key].value, 2)} ${run.metrics[key].unit}` : kNothing)})),
      {title: 'Digest', nowrap: true, cell: (run) => (run.digest ? el('span', {class: 'mono', title: run.digest}, run.digest.slice(0, 12)) : kNothing)},
      ...(data.runs.some((run) => run.message || run.void_because) ? [{title: 'Message', words: true,
        cell: (run) => run.message || (run.void_because ? `void: ${run.void_because}` : '')}] : []),
    ], data.runs, false, runId);
    body('runs').replaceChildren(el('details', {class: 'panel', open: data.runs.length <= 12 ? '' : null},
      el('summary', null, plural(data.runs.length, 'run')), list));
  }

  function drawEnvironment() {
    const env = data.environment || {};
    const map = (title, values) => (Object.keys(values || {}).length ? panel(el('h3', null, title), pairs(Object.entries(values))) : null);
    body('environment').replaceChildren(el('div', {class: 'columns'},
      panel(el('h3', null, 'Machine'), pairs([['Kernel', env.kernel], ['Processor', env.cpu], ['Cores', env.cores || null], ['GPU', env.gpu || 'none used'],
        ['NCCL', env.nccl || 'none used'], ['Congestion control of the rails', env.congestion_control], ['Build', env.git]])),
      map('Versions', env.versions), map('Shaping of the rails', env.qdisc), map('Sockets', Object.fromEntries(Object.entries(env.tcp || {}).map(([key, value]) => [key === 'tcp_congestion_control' ? "tcp_congestion_control (the kernel's default)" : key, value])))));
    if ((env.libraries || []).length > 0) {
      body('environment').append(el('details', {class: 'panel'}, el('summary', null, plural(env.libraries.length, 'loaded library').replace('librarys', 'libraries')),
        el('ul', {class: 'mono'}, env.libraries.map((library) => el('li', null, library)))));
    }
    body('environment').append(el('details', {class: 'panel'}, el('summary', null, 'Scenario as run'),
      el('div', {class: 'scroll padded'}, el('pre', {class: 'mono'}, JSON.stringify(data.scenario, null, 2)))));
  }

  /// A link to each part of the page, which stays the same from report to report.
  function addAnchors() {
    for (const heading of document.querySelectorAll('section[id] > h2')) {
      if (heading.querySelector('.anchor')) continue;
      const {id} = heading.parentNode;
      heading.append(el('a', {class: 'anchor', href: `#${id}`, 'aria-label': `Link to ${heading.textContent}`}));
    }
  }

  /// What the address points to may have been made, or be folded away, only now.
  function goToAnchor() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const folded = target.closest('details');
    if (folded) folded.open = true;
    target.scrollIntoView();
  }

  function drawAll() {
    charts.destroyIn(document);
    charts.applyTheme();
    for (const draw of [drawHead, wordServer, drawVerdict, drawTiles, drawCost, drawExpectations, drawTime, drawLatency, drawFaults, drawFailovers, drawRestarts, drawShrinks, drawCalls, drawPlans, drawTraining, drawRequests, drawRuns, drawEnvironment]) draw();
    addAnchors();
    document.documentElement.dataset.ready = 'true';
  }

  try {
    drawAll();
    document.documentElement.dataset.drawnMs = String(Math.round(performance.now()));
    if (location.hash) goToAnchor();
    addEventListener('hashchange', goToAnchor);
  } catch (error) {
    document.getElementById('main').prepend(el('p', {class: 'problem'}, `This page could not be drawn: ${error.message}. The same numbers are in results.csv and result.json.`));
    throw error;
  }
  // Charts are pictures: they must be painted again when the colours change.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  matchMedia('print').addEventListener('change', drawAll);
})();
