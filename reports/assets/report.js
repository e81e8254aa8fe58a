'use strict';

// The head of the report, what strategies cost, its runs and their environment; and draws the whole.
(() => {
  const {count, duration, el, faultCost, fixed, grouped, howSure, isNumber, kNothing, kSpace, legend, missingTail, name, pairs, panel, plural, quantity, state, table,
    yesNo} = elements;
  const {body, colourOf, data, hide, isCollective, isForeign, isServer, isSweep, ofWholeRun, kind, lostWork, meaningOf, runId, strategies, strategyName} = page;

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
      el('div', {class: 'word'}, data.verdict.toUpperCase()),
      el('div', {class: 'text'}, data.headline ? el('p', {class: 'headline'}, data.headline) : null,
        data.verdict_text ? el('h2', null, data.verdict_text) : null, el('ul', null, data.reasons.map((reason) => el('li', null, reason)))));
  }

  function drawTiles() {
    if (data.runs.length === 0) return hide('tiles');
    const sum = (key) => data.tallies.reduce((total, tally) => total + tally[key], 0);
    const wrong = sum('wrong_elements');
    const pause = Math.max(0, ...data.tallies.map((tally) => tally.longest_pause_ms || 0));
    const evidence = data.runs.flatMap((run) => run.evidence);
    /// Whose they are: "fail_stop 3, balance 1".
    const whose = (key) => data.tallies.filter((t) => t[key] > 0).map((t) => `${t.strategy} ${grouped(t[key])}`).join(', ');
    const ended = data.tallies.filter((t) => t.runs > 0 && !t.all_ok).map((t) => `${t.strategy} ${t.status}`).join('; ');
    const tile = (label, value, unit, note, tone) => el('div', {class: 'tile'},
      el('div', {class: 'label'}, label),
      el('div', {class: `value${tone ? ` tone-${tone}` : ''}`}, value, unit ? el('small', null, ` ${unit}`) : null),
      el('div', {class: 'note'}, note));
    document.getElementById('tiles').replaceChildren(
      tile('Runs', grouped(sum('runs')), null, plural(data.tallies.length, 'strateg').replace(/strateg(s?)$/, (_m, s) => (s ? 'strategies' : 'strategy')) + (ended ? `; ${ended}` : '')),
      isForeign() ? tile('Checked elements', 'none', null, 'the data of programs that are not ours are not known')
        : tile('Wrong elements', grouped(wrong), null, `of ${grouped(sum('checked_elements'))} checked`, wrong > 0 ? 'bad' : null),
      tile('Evidence', `${evidence.filter((e) => e.ok).length} of ${evidence.length}`, null, 'observations saw the fault',
        evidence.some((e) => !e.ok) ? 'bad' : null),
      ...(isForeign() ? [] : [
        tile('Failovers', grouped(sum('failovers')), null, sum('failovers') > 0 ? `longest pause ${duration(pause)}; ${whose('failovers')}` : 'none'),
        tile('Restarts', grouped(sum('restarts')), null, sum('restarts') > 0 ? `${lostWork(sum('lost_iterations'))}; ${whose('restarts')}` : 'none')]));
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

  function boundCell({summary}) {
    const text = isNumber(summary.bound_pct) ? `${fixed(summary.bound_pct, 1)} %` : kNothing;
    if (summary.mis_measured) return el('span', null, text, el('span', {class: 'sub'}, state('bad', 'mis-measured')));
    const overhead = summary.overhead_pct;
    const beaten = overhead && isNumber(summary.bound_pct) && overhead.median < summary.bound_pct;
    return beaten ? el('span', null, text, el('span', {class: 'sub'}, 'the row is below it by less than measurements vary: bursts, noise')) : text;
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
    if (back && back.ended && back.ended === back.n) return state('bad', 'did not go on');
    const within = back && isNumber(back.watched_ms) ? ` within ${duration(back.watched_ms)}` : '';
    const slow = back ? back.never - (back.ended || 0) : 0;
    const least = after.n > 1 ? `least${kSpace}${fixed(after.min, 1)}${kSpace}%, ` : '';
    return el('span', null, el('strong', null, `${fixed(after.median, 1)} %`), el('span', {class: 'sub'}, `${least}${count(after.n)}`),
      back && isNumber(back.median) ? el('span', {class: 'sub'}, `back at 95${kSpace}% after ${duration(back.median)}` +
        (isNumber(back.max) && back.n > 1 ? `, max${kSpace}${duration(back.max)}` : '')) : null,
      back && back.ended ? el('span', {class: 'sub'}, state('bad', `did not go on in ${back.ended} of ${plural(back.n, 'run')}`)) : null,
      slow ? el('span', {class: 'sub'}, state('bad', `not back${within} in ${slow} of ${plural(back.n, 'run')}`)) : null);
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

  /// The same in the words of calls.
  function wordCollective() {
    if (!isCollective()) return;
    const lead = (id, text) => { document.querySelector(`#${id} .lead`).textContent = text; };
    if (isSweep()) {
      lead('cost', ofWholeRun()
        ? 'The fault met only some of the calls. Overhead is how much longer the whole run took than the fault-free one of its block, a hang and a restart included.'
        : 'Calls of different sizes have no common overhead: what each kept of its bandwidth is above.');
    }
    lead('time', 'Above: finished calls per second. Below: what each rail of one node sent. All pictures of a block share their axes.');
    lead('latency', `The share of ${isSweep() ? '' : 'all calls, and of '}all pauses at failovers, that took at most so long. Further left is better.`);
  }

  function drawCost() {
    const rows = strategyRows();
    const target = body('cost');
    if (rows.length === 0) return hide('cost');
    const bounded = !isSweep() && rows.some(({summary}) => isNumber(summary.bound_pct));
    document.querySelector('#cost .bound').hidden = !bounded;
    target.replaceChildren(panel(table([
      {title: 'Strategy', head: true, cell: ({tally, summary}) => el('span', null, strategyName(tally.strategy),
        summary.origin === 'modelled' ? el('span', {class: 'tag'}, 'modelled') : null)},
      {title: 'Runs', nowrap: true, cell: ({tally}) => state(tally.runs === 0 ? null : tally.all_ok ? 'good' : 'warn', tally.status)},
      ...(isSweep() && !ofWholeRun() ? [] : [{title: 'Overhead', number: true, cell: overheadCell}]),
      ...(bounded ? [{title: 'Best possible', number: true, cell: boundCell}] : []),
      ...(rows.some(({summary}) => summary.exposed_overhead_pct) ? [{title: 'Exposed', number: true, cell: exposedCell}] : []),
      {title: 'Pause at failover', number: true, cell: pauseCell},
      ...(rows.some(({summary}) => summary.after_pct) ? [{title: 'Second after the fault', number: true, cell: afterFaultCell}] : []),
      ...(isSweep() ? [] : [{title: 'Throughput', number: true, cell: ({summary}) => (summary.throughput
        ? el('span', null, quantity(summary.throughput.value), el('span', {class: 'sub'}, summary.throughput.unit)) : kNothing)}]),
      ...latencyColumns(rows),
      {title: 'Restarts', number: true, cell: ({tally}) => (tally.restarts
        ? el('span', null, grouped(tally.restarts), el('span', {class: 'sub'}, lostWork(tally.lost_iterations))) : '0')},
    ], rows, true)));
    for (const note of new Set(rows.map((row) => row.summary.note).filter(Boolean))) {
      const of = rows.filter((row) => row.summary.note === note).map((row) => row.summary.strategy);
      target.append(el('p', {class: 'hint'}, `${of.join(', ')}: ${note}.`));
    }
    for (const text of [data.noise_text, data.drift_text, ...(data.told || [])]) {
      if (text) target.append(el('p', {class: 'hint'}, `${text}.`));
    }

    if (isSweep()) return;  // an average of calls of several sizes says nothing
    const bars = rows.filter(({summary}) => summary.overhead_pct && isNumber(summary.overhead_pct.median)).map(({summary}) => ({
      name: summary.strategy, colour: colourOf(summary.strategy), median: summary.overhead_pct.median, ci: summary.overhead_pct.ci95,
      bound: isNumber(summary.bound_pct) ? summary.bound_pct : null, modelled: summary.origin === 'modelled'}));
    if (bars.length === 0) return;
    const chart = el('div', {class: 'panel padded'}, legend([['bar: overhead, median of the blocks', '--muted'],
      ...(bars.some((b) => b.ci) ? [['95 % interval', '--ink', 'whisker']] : []),
      ...(bars.some((b) => b.bound !== null) ? [['best possible', '--ink', 'upright']] : [])]));
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

  // --- runs and environment

  function drawRuns() {
    if (data.runs.length === 0) return hide('runs');
    const exitCodes = ({processes, process_count: all}) => processes.map((end) => end.exit_code).join(' ') +
      (processes.length < all ? ` and ${grouped(all - processes.length)} more` : '');
    const told = [...new Set(data.runs.flatMap((run) => Object.keys(run.metrics || {})))].sort();
    const list = table([
      {title: 'Strategy', nowrap: true, head: true, cell: (run) => strategyName(run.strategy)},
      {title: 'Block', number: true, cell: (run) => el('span', null, String(run.block + 1), el('span', {class: 'sub'}, run.arm))},
      {title: 'Status', words: data.runs.some((run) => run.message || run.void_because), cell: (run) => el('span', null, state({ok: 'good', hung: 'warn', invalid: 'warn'}[run.status] || 'bad', run.status),
        run.message || run.void_because ? el('span', {class: 'sub'}, run.message || `void: ${run.void_because}`) : null)},
      {title: isServer() ? 'Requests' : isCollective() ? 'Calls' : 'Iterations', number: true, cell: (run) => grouped(run.iteration_count)},
      {title: 'Took', number: true, cell: (run) => (run.checkpoint_ms > 0
        ? el('span', null, duration(run.duration_ms), el('span', {class: 'sub'}, `${duration(run.checkpoint_ms)} for checkpoints`)) : duration(run.duration_ms))},
      ...(isSweep() ? [] : [{title: 'Throughput', number: true, cell: (run) => (run.throughput
        ? el('span', null, quantity(run.throughput.value), el('span', {class: 'sub'}, run.throughput.unit)) : kNothing)}]),
      ...(isForeign() ? [{title: 'Exit codes', nowrap: true, cell: exitCodes}] : [
        {title: 'Wrong', number: true, cell: (run) => grouped(run.wrong_elements)},
        {title: 'Failovers', number: true, cell: (run) => grouped(run.failover_count)},
      ]),
      ...(data.load && data.load.others_pct ? [{title: 'Others', number: true, cell: (run) => (run.load && isNumber(run.load.others_pct) ? `${fixed(run.load.others_pct, 1)} %` : kNothing)}] : []),
      ...told.map((key) => ({title: key, number: true,
        cell: (run) => (run.metrics[key] ? `${quantity(run.metrics[key].value)} ${run.metrics[key].unit}` : kNothing)})),
      {title: 'Digest', nowrap: true, cell: (run) => (run.digest ? el('span', {class: 'mono', title: run.digest}, run.digest.slice(0, 12)) : kNothing)},
    ], data.runs, true, runId);
    body('runs').replaceChildren(el('details', {class: 'panel', open: data.runs.length <= 12 ? '' : null},
      el('summary', null, plural(data.runs.length, 'run')), list));
  }

  /// What the machine did besides, while runs were made: first, because it makes numbers wrong.
  function loadPanel() {
    const {load} = data;
    if (!load) return null;
    const spread = (of, unit) => (of ? `${fixed(of.median, 1)}${unit} (${fixed(of.min, 1)} to ${fixed(of.max, 1)}${unit})` : null);
    return panel(el('h3', null, 'Machine while measuring'), pairs([
      ['Used by other programs', spread(load.others_pct, ' %')], ['Busy, all programs', spread(load.busy_pct, ' %')],
      ['Taken by the host (steal)', spread(load.stolen_pct, ' %')], ['A program waited for a processor', spread(load.waiting_pct, ' %')],
      ['Load average', spread(load.load_average, '')]]),
    el('p', {class: 'hint inside'}, `Median of the runs, and from least to most. In percent of all processors; waiting in percent of the time.`));
  }

  function drawEnvironment() {
    const env = data.environment || {};
    const map = (title, values) => (Object.keys(values || {}).length ? panel(el('h3', null, title), pairs(Object.entries(values))) : null);
    body('environment').replaceChildren(el('div', {class: 'columns'},
      loadPanel(),
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

  // --- the page as a whole

  /// What the page is about stands first.
  function putFirst() {
    const first = {collective: ['calls', 'tiles', 'cost'], inference: ['tiles', 'cost', 'requests']}[kind()] || ['tiles', 'cost'];
    document.getElementById('verdict').after(...first.map((id) => document.getElementById(id)));
  }

  /// One line for each strategy of the page.
  function drawStrategies() {
    const known = strategies.filter(meaningOf);
    if (known.length === 0) return hide('strategies');
    body('strategies').replaceChildren(el('dl', {class: 'reading'}, known.flatMap((strategy) => [
      el('dt', null, strategyName(strategy)), el('dd', null, meaningOf(strategy))])));
  }

  /// Links to the parts of the page that are there.
  function drawContents() {
    const links = [...document.querySelectorAll('main > section[id]:not([hidden]) > h2')].map((heading) =>
      el('li', null, el('a', {href: `#${heading.parentNode.id}`}, heading.firstChild.textContent)));
    document.getElementById('contents').replaceChildren(el('summary', null, 'Contents'), el('ul', null, links));
    document.getElementById('contents').open = !matchMedia('(max-width: 640px)').matches;
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
    putFirst();
    for (const draw of [drawHead, wordServer, wordCollective, drawVerdict, drawTiles, drawCost, drawExpectations, timeParts.drawTime, timeParts.drawLatency,
      recoveryParts.drawFaults, recoveryParts.drawFailovers, recoveryParts.drawRestarts, recoveryParts.drawShrinks, callParts.drawCalls,
      callParts.drawPlans, callParts.drawTraining, callParts.drawRequests, drawRuns, drawEnvironment, drawStrategies]) draw();
    addAnchors();
    drawContents();
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
