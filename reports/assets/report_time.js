'use strict';

// Of the report: what runs did over time, and how long each iteration took.
const timeParts = (() => {
  const {count, el, fixed, isNumber, legend, state} = elements;
  const {body, colourOf, data, hide, isCollective, isServer, isSweep, placeOf, seconds, strategyName} = page;
  const view = {block: null, node: null};

  // --- over time

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

    const shown = drawable.filter((run) => run.block === view.block).sort((a, b) => placeOf(a.strategy) - placeOf(b.strategy));
    const maxX = charts.roundUp(Math.max(...shown.map(endOf)));
    const series = (run) => run.rail_series.filter((s) => s.node === view.node && s.bin_ms > 0).sort((a, b) => a.rail - b.rail);
    const railNames = distinct(shown.flatMap((run) => series(run).map((s) => s.rail)));
    // Calls of several sizes have no rate: what is drawn of them is what the rails carried.
    const rates = !isSweep();
    const plain = shown.find((run) => !run.faulted && run.iterations && run.iterations.ms.length > 0);
    // Of a server there is no one rate: each of the load's has its own.
    const reference = plain && rates && !isServer() ? medianRate(plain) : null;

    const prepared = shown.map((run) => ({
      run, faults: faultSpans(run, maxX), points: rates && run.iterations ? charts.rate(run.iterations) : [],
      rails: series(run).map((s) => ({rail: s.rail, points: charts.railPoints(s, maxX)}))}));
    const maxRate = Math.max(0, reference || 0, ...prepared.flatMap((p) => p.points.map((point) => point.y)));
    const stack = ({rails}) => (rails.length ? rails[0].points.map((_p, i) => rails.reduce((sum, r) => sum + ((r.points[i] || {}).y || 0), 0)) : []);
    const maxMbit = Math.max(0, ...prepared.flatMap(stack));

    const rated = rates && prepared.some(({points}) => points.length > 0);  // a program may tell of none
    if (!rated) document.querySelector('#time .lead').textContent = 'What each rail of one node sent. All pictures of a block share their axes.';
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
      const card = el('div', {class: 'panel'}, el('h3', null, strategyName(run.strategy), state(tone, run.status)));
      grid.append(card);
      if (rated) {
        card.append(el('p', {class: 'axis-title'}, isServer() ? 'answered requests/s' : `${isCollective() ? 'calls' : 'iterations'} per second`));
        charts.throughput(card, {points, line: colourOf(run.strategy), faults, reference: run === plain ? null : reference, maxX, maxY: maxRate,
          unit: isServer() ? 'requests' : isCollective() ? 'calls' : 'iterations'});
      }
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
      el('div', {class: 'panel'}, el('h3', null, strategyName(run.strategy)), list.map(({node, series: rows}) =>
        el('div', {class: 'heat-row'}, el('span', {class: hit(run, node) ? 'hit' : null}, `node ${node}`),
          el('div', {style: `height: ${Math.max(9, 6 * rows.length)}px`}, charts.heat(rows, maxX, maxMbit),
            faults.map(({from, to}) => el('i', {style: `left: ${(100 * from) / maxX}%; width: ${(100 * Math.max(0, Math.min(to, maxX) - from)) / maxX}%`})))))))));
    body('time').append(el('p', {class: 'hint'}, `A line per rail, in order; full colour is ${fixed(maxMbit, 0)} Mbit/s, pale is nothing. Framed: while a fault was active; a node that it struck is marked.`));
  }

  // --- how long each took

  function drawLatency() {
    const kinds = [...(isSweep() ? [] : [['iteration', isCollective() ? 'Calls' : 'Iterations']]), ['ttft', 'Time to the first token'], ['tpot', 'Time of each further token'], ['whole', 'Whole requests'], ['pause', 'Pauses at failovers']].map(([of, title]) => ({
      title, curves: data.distributions.filter((d) => d.of === of).slice(0, 8).map((d) => ({name: d.strategy, n: d.n, ms: d.ms, colour: colourOf(d.strategy), dash: charts.dashOf(placeOf(d.strategy))}))}));
    const shown = kinds.filter(({curves}) => curves.length > 0);
    if (shown.length === 0) return hide('latency');
    const grid = el('div', {class: 'multiples'});
    body('latency').replaceChildren(grid);
    for (const {title, curves} of shown) {
      const card = el('div', {class: 'panel'}, el('h3', null, title),
        legend(curves.map((c) => [`${c.name}, ${count(c.n)}`, c.colour, 'curve'])));
      grid.append(card);
      logCharts.cdf(card, `${title}: share that took at most so long`, curves);
    }
  }

  return {drawLatency, drawTime};
})();
