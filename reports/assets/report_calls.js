'use strict';

// Of the report: what calls, plans, models and requests came to.
const callParts = (() => {
  const {binarySize, duration, el, fixed, grouped, howSure, isNumber, kNothing, kSpace, legend, missingTail, name, panel, plural, size, state, table} = elements;
  const {blockName, body, colourOf, data, hide, kReference, placeOf, seconds, strategies, strategyName} = page;
  const kOpenCalls = 6;   // a longer table is folded

  // --- collective calls

  const percent = (share) => (isNumber(share) ? `${fixed(100 * share, 1)}${kSpace}%` : kNothing);
  const bandwidth = (value) => (isNumber(value) ? String(+value.toPrecision(3)) : kNothing);
  const notesOf = (of) => [[of.latency_only, 'passes in bursts: latency only'], [of.unsettled, 'unsettled'], [of.mis_measured, 'mis-measured'],
    [of.untouched > 0, `of the ${plural(of.n, 'call')} that met the fault`], [of.missed, 'met no fault'],
    // Only where more was kept than the best possible algorithm would keep: see strategyCallsView.
    [of.least > 0 && !of.latency_only && !of.mis_measured,
      `above the best possible: ports that were idle let a burst pass above their rate, so up to ${percent(1 / of.least)} can be kept`]]
    .filter(([is]) => is).map(([, note]) => note).join(', ');
  const below = (text, sub) => (sub ? el('span', null, text, el('span', {class: 'sub'}, sub)) : text);

  /// Calls that differ in nothing but their size, in a group.
  function callGroups() {
    const groups = new Map();
    for (const call of data.calls) {
      const how = [call.dtype, call.op, call.in_place ? 'in place' : ''].filter(Boolean).join(', ');
      const key = `${call.operation} ${how}`;
      if (!groups.has(key)) groups.set(key, {operation: call.operation, how, calls: []});
      groups.get(key).calls.push(call);
    }
    return [...groups.values()];
  }

  /// The most that any algorithm could have with the bandwidths that were left; null where that is not known.
  function bestPossible(call) {
    const free = call.strategies.find((of) => of.strategy === kReference);
    const bounds = call.strategies.filter((of) => isNumber(of.kept) && of.bound > 0).map((of) => of.bound);
    return free && isNumber(free.busbw) && bounds.length > 0 ? free.busbw / Math.max(...bounds) : null;
  }

  const keptNote = (of) => (isNumber(of.kept) ? `, ${percent(of.kept)} of ${kReference}` : '') + (of.missed ? ', met no fault' : '');

  /// The figure of this field: bus bandwidth over the size of a call.
  function drawBandwidth(card, {operation, calls}) {
    const title = `Bus bandwidth of ${operation}`;
    const named = strategies.filter((strategy) => calls.some((call) => call.strategies.some((of) => of.strategy === strategy && isNumber(of.busbw))));
    const of = (call, strategy) => call.strategies.find((one) => one.strategy === strategy && isNumber(one.busbw));
    const best = calls.map((call) => ({x: call.size_bytes, y: bestPossible(call)})).filter(({y}) => y !== null);
    if (calls.length === 1) {
      logCharts.busbwBars(card, title, [
        ...named.map((strategy) => ({name: strategy, colour: colourOf(strategy), value: of(calls[0], strategy).busbw, note: keptNote(of(calls[0], strategy))})),
        ...best.map(({y}) => ({name: 'best possible', colour: '--muted', value: y}))]);
      return;
    }
    card.append(legend([
      ...named.map((strategy) => [strategy, colourOf(strategy), `mark-${charts.markOf(placeOf(strategy))}`]),
      ...(best.length > 0 ? [['best possible', '--muted', 'line']] : [])]));
    card.append(el('p', {class: 'axis-title'}, 'busbw, GB/s'));
    const curves = named.map((strategy) => ({name: strategy, colour: colourOf(strategy), dash: charts.dashOf(placeOf(strategy)), mark: charts.markOf(placeOf(strategy)),
      points: calls.filter((call) => of(call, strategy)).map((call) => ({x: call.size_bytes, y: of(call, strategy).busbw, note: keptNote(of(call, strategy))}))}));
    if (best.length > 0) curves.push({name: 'best possible', colour: '--muted', dash: [4, 4], mark: null, points: best});
    for (const {points} of curves) points.sort((a, b) => a.x - b.x);
    logCharts.busbw(card, `${title} over the size of a call`, curves);
  }

  /// A row for each size, a column for each strategy.
  function bandwidthTable({calls}) {
    const named = strategies.filter((strategy) => calls.some((call) => call.strategies.some((of) => of.strategy === strategy)));
    const cell = (call, strategy) => {
      const of = call.strategies.find((one) => one.strategy === strategy);
      if (!of) return kNothing;
      const wrong = of.wrong_elements > 0 ? state('bad', `${grouped(of.wrong_elements)} wrong`) : null;
      return el('span', null, el('strong', null, bandwidth(of.busbw)), isNumber(of.kept) ? el('span', {class: 'sub'}, percent(of.kept)) : null,
        notesOf(of) ? el('span', {class: 'sub'}, notesOf(of)) : null,
        wrong ? el('span', {class: 'sub'}, wrong) : null);
    };
    return table([
      {title: 'Size', number: true, head: true, cell: (call) => binarySize(call.size_bytes)},
      ...named.map((strategy) => ({title: strategy, heading: strategyName(strategy), number: true, cell: (call) => cell(call, strategy)})),
      ...(calls.some((call) => bestPossible(call) !== null) ? [{title: 'Best possible', number: true, cell: (call) => bandwidth(bestPossible(call) ?? undefined)}] : []),
    ], [...calls].sort((a, b) => a.size_bytes - b.size_bytes), true);
  }

  /// Also those whose times do not count.
  const madeOf = ({n, left_out: left = 0, untouched = 0}) => n + left + untouched;

  function eachCall() {
    const rows = data.calls.flatMap((call) => call.strategies.map((of) => ({call, of})));
    const listed = table([
      {title: 'Operation', nowrap: true, cell: ({call}) => below(name(call.operation), [call.dtype, call.op, call.in_place ? 'in place' : ''].filter(Boolean).join(', '))},
      {title: 'Size', number: true, cell: ({call}) => binarySize(call.size_bytes)},
      {title: 'Strategy', nowrap: true, head: true, cell: ({of}) => strategyName(of.strategy)},
      {title: 'Time', number: true, cell: ({of}) => duration(of.p50_ms)},
      {title: 'Busbw', number: true, cell: ({of}) => (isNumber(of.busbw) ? `${fixed(of.busbw, 4)} GB/s` : kNothing)},
      {title: 'Kept', number: true, cell: ({of}) => below(percent(of.kept), notesOf(of))},
      {title: 'Best possible', number: true, cell: ({of}) => (isNumber(of.kept) && of.bound > 0 ? percent(1 / of.bound) : kNothing)},
      {title: 'Planned', number: true, cell: ({of}) => (isNumber(of.kept) && of.model > 0 ? percent(1 / of.model) : kNothing)},
      {title: 'Time / bound', number: true, cell: ({of}) => fixed(of.time_over_bound, 3)},
      {title: 'Calls', number: true, cell: ({of}) => below(grouped(of.n), madeOf(of) > of.n ? `of ${grouped(madeOf(of))}` : null)},
      {title: 'Wrong', number: true, cell: ({of: {wrong_elements: wrong = 0}}) => grouped(wrong)},
    ], rows);
    const made = rows.reduce((sum, {of}) => sum + madeOf(of), 0);
    const some = data.calls.length < data.call_count ? `${grouped(data.calls.length)} of the ` : '';
    return el('details', {class: 'panel', open: rows.length <= kOpenCalls ? '' : null},
      el('summary', null, `Times, plans and bounds: ${plural(rows.length, 'row')}, of ${some}${plural(data.call_count, 'kind')} of call, ` +
        `${plural(made, 'call')} in all`), listed);
  }

  function drawCalls() {
    // What is nothing is not written: see strategyCallsView in reports/report_view.cc.
    if (data.calls.length === 0) return hide('calls');
    const groups = callGroups();
    const several = groups.length > 1;
    const grid = el('div', {class: several ? 'multiples' : null});
    body('calls').replaceChildren(grid);
    for (const group of groups) {
      const card = el('div', {class: several ? 'panel' : 'panel padded'}, el('h3', null, name(group.operation), group.how ? el('span', {class: 'how'}, group.how) : null));
      grid.append(card);
      drawBandwidth(card, group);
    }
    const tables = groups.map((group) => panel(...(several ? [el('h3', {class: 'inside'}, name(group.operation), ' ', el('span', {class: 'how'}, group.how))] : []),
      bandwidthTable(group)));
    const folded = groups.length > 2;
    body('calls').append(el('p', {class: 'hint'}, `Bus bandwidth in GB/s, and what is kept of ${kReference}'s.` +
        (data.met_some_calls ? ' Where a fault met only some of the calls of a row, the row is of those.' : '')),
      ...(folded ? [el('details', null, el('summary', null, `Tables of ${plural(groups.length, 'operation')}`), ...tables)] : tables), eachCall());
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
      {title: 'Strategy', nowrap: true, head: true, cell: ({row}) => strategyName(row.strategy)},
      {title: 'Rate, 1/s', number: true, cell: ({rate}) => fixed(rate.qps, 2)},
      {title: 'Goodput, 1/s', number: true, cell: ({rate}) => (isNumber(rate.burst_below_requests)
        ? el('span', null, fixed(rate.goodput, 2), el('span', {class: 'sub'}, `a burst, not a rate: set requests to ${grouped(rate.burst_below_requests)} or more`)) : fixed(rate.goodput, 2))},
      ...['finished', 'late', 'lost', 'redone'].map((key) => ({title: key[0].toUpperCase() + key.slice(1), number: true, cell: ({rate}) => grouped(rate[key])})),
      latency('TTFT p50 / p95 / p99', 'ttft_ms', 'ttft_overhead_pct', 'ttft_p95_overhead_pct'),
      latency('TPOT p50 / p95 / p99', 'tpot_ms', 'tpot_overhead_pct', 'tpot_p95_overhead_pct'),
      latency('Whole p50 / p95 / p99', 'e2e_ms', null, null),
    ], rows));
  }

  return {drawCalls, drawPlans, drawRequests, drawTraining};
})();
