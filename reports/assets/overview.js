'use strict';

// Fills overview.html from the JSON in #data (reports/overview.h).
(() => {
  const {count, duration, el, faultCost, fixed, grouped, isNumber, kNothing, kSpace, legend, missingTail, name, panel, plural, state, table} = elements;
  const data = JSON.parse(document.getElementById('data').textContent);
  const main = document.getElementById('main');

  const slug = (text) => `scenario-${String(text).replace(/[^A-Za-z0-9_.:-]+/g, '-')}`;
  const toneOf = (scenario) => (scenario.interrupted ? 'warn' : {pass: 'good', invalid: 'warn'}[scenario.verdict] || 'bad');
  const wordOf = (scenario) => scenario.verdict;
  /// Of other things than a run: the denominator is not that of executed rows.
  const modelled = (row) => row.origin === 'modelled';
  const strategy = (row) => el('span', null, name(row.strategy), modelled(row) ? el('span', {class: 'tag'}, 'modelled') : null);

  function overhead(row) {
    if (row.fault_cost_text) return faultCost(row.fault_cost_text);
    if (!isNumber(row.overhead_pct)) return kNothing;
    if (modelled(row)) return el('span', null, `${fixed(row.overhead_pct, 1)} %`, el('span', {class: 'sub'}, 'modelled: see the note'));
    return el('span', null, el('strong', null, `${fixed(row.overhead_pct, 1)} %`), el('span', {class: 'sub'}, row.ci95
      ? `95${kSpace}%: ${fixed(row.ci95[0], 1)} to ${fixed(row.ci95[1], 1)}${kSpace}%`
      : 'no interval below 6 blocks'), row.distinguishable === false ? el('span', {class: 'sub'}, 'not distinguishable from 0') : null);
  }

  function bound(row) {
    const text = isNumber(row.bound_pct) ? `${fixed(row.bound_pct, 1)} %` : kNothing;
    return row.mis_measured ? el('span', null, text, el('span', {class: 'sub'}, state('bad', 'mis-measured'))) : text;
  }

  function times(key) {
    return (row) => {
      const of = row[key];
      if (!of || !of.n) return kNothing;
      const tail = [['p95', of.p95], ['p99', of.p99]].filter(([, v]) => isNumber(v)).map(([p, v]) => `${p}${kSpace}${duration(v)}, `).join('');
      return el('span', null, el('strong', null, duration(of.p50)), el('span', {class: 'sub'}, `${tail}max${kSpace}${duration(of.max)}, ${count(of.n)}`),
        missingTail(of) ? el('span', {class: 'sub'}, missingTail(of)) : null);
    };
  }

  /// The ends of a scale, in percent, that has 0 and all of these rows on it.
  function scaleOf(rows) {
    const all = rows.filter((row) => !modelled(row)).flatMap((row) => [row.overhead_pct, row.bound_pct, ...(row.ci95 || [])]).filter(isNumber);
    return {least: Math.min(0, ...all), most: Math.max(0.1, ...all)};
  }

  /// A bar from 0 to the median, to the left where that is negative; its interval, and the bound.
  function bar(row, {least, most}) {
    if (!isNumber(row.overhead_pct) || modelled(row)) return kNothing;
    const at = (percent) => `${(100 * (percent - least) / (most - least)).toFixed(2)}%`;
    const [from, to] = [Math.min(0, row.overhead_pct), Math.max(0, row.overhead_pct)];
    const label = `${fixed(row.overhead_pct, 1)} %${row.ci95 ? `, ${fixed(row.ci95[0], 1)} to ${fixed(row.ci95[1], 1)} %` : ''}`;
    return el('span', {class: 'overhead-bar', role: 'img', 'aria-label': label},
      el('i', {class: 'to', style: `left: ${at(from)}; right: calc(100% - ${at(to)})`}),
      row.ci95 ? el('i', {class: 'ci', style: `left: ${at(row.ci95[0])}; right: calc(100% - ${at(row.ci95[1])})`}) : null,
      isNumber(row.bound_pct) ? el('i', {class: 'best', style: `left: ${at(row.bound_pct)}`}) : null);
  }

  /// What communication alone adds: strategies lie within tenths of a percent.
  function exposed(row) {
    if (!isNumber(row.exposed_pct)) return kNothing;
    return el('span', null, el('strong', null, `${fixed(row.exposed_pct, 2)} %`),
      row.exposed_ci95 ? el('span', {class: 'sub'}, `95${kSpace}%: ${fixed(row.exposed_ci95[0], 2)} to ${fixed(row.exposed_ci95[1], 2)}${kSpace}%`) : null);
  }

  function columns(rows, scale) {
    const end = (percent) => fixed(percent, scale.most - scale.least < 10 ? 1 : 0);
    const optional = (key, title) => (rows.some((row) => row[key] && row[key].n) ? [{title, number: true, cell: times(key)}] : []);
    return [
      {title: 'Strategy', head: true, cell: strategy},
      {title: 'Runs', nowrap: true, cell: (row) => state(row.status === '-' ? null : row.all_ok ? 'good' : 'warn', row.status === '-' ? 'none' : row.status)},
      {title: 'Overhead', number: true, cell: overhead},
      {title: `${scale.least < 0 ? end(scale.least) : 0} to ${end(scale.most)} %`, cell: (row) => bar(row, scale)},
      {title: 'Best possible', number: true, cell: bound},
      ...(rows.some((row) => isNumber(row.exposed_pct)) ? [{title: 'Exposed', number: true, cell: exposed}] : []),
      ...optional('pause_ms', 'Pause at failover'),
      ...optional('ttft_ms', 'Time to first token'),
      ...optional('tpot_ms', 'Time per token'),
      {title: 'Wrong elements', number: true, cell: (row) => (row.checked_elements > 0
        ? el('span', null, grouped(row.wrong_elements), el('span', {class: 'sub'}, `of ${grouped(row.checked_elements)}`)) : kNothing)},
    ];
  }

  function drawAll() {
    // One line per scenario, one column per strategy that any of them has.
    const strategies = [...new Set(data.scenarios.flatMap((scenario) => scenario.rows.map((row) => row.strategy)))]
      .filter((one) => data.scenarios.some((scenario) => scenario.rows.some((row) => row.strategy === one && (isNumber(row.overhead_pct) || row.fault_cost_text))));
    const rowOf = (scenario, one) => scenario.rows.find((row) => row.strategy === one) || {};
    document.querySelector('#overview .body').replaceChildren(panel(table([
      {title: 'Scenario', head: true, cell: (s) => el('a', {href: `#${slug(s.id)}`}, name(s.name))},
      {title: 'Verdict', nowrap: true, cell: (s) => state(toneOf(s), wordOf(s))},
      ...strategies.map((one) => ({title: one, number: true, cell: (s) => overhead(rowOf(s, one))})),
    ], data.scenarios)));
    for (const scenario of data.scenarios) {
      const id = slug(scenario.id);
      main.append(el('section', {id},
        el('h2', null, scenario.name, el('a', {class: 'anchor', href: `#${id}`, 'aria-label': `Link to ${scenario.name}`})),
        scenario.description ? el('p', {class: 'lead'}, scenario.description) : null,
        el('p', {class: 'lead'}, state(toneOf(scenario), wordOf(scenario).toUpperCase()), ` ${scenario.headline}. `,
          scenario.report ? el('a', {href: scenario.report.split('/').map(encodeURIComponent).join('/')}, 'Its report') : null),
        scenario.verdict === 'pass' ? null : el('ul', {class: 'reasons'}, scenario.reasons.map((reason) => el('li', null, reason))),
        panel(table(columns(scenario.rows, scaleOf(scenario.rows)), scenario.rows, true, (row) => `${id}-${row.strategy.replace(/[^A-Za-z0-9_.-]+/g, '-')}`)),
        legend([['overhead', '--bar'], ['95 % interval', '--ink', 'whisker'], ['best possible', '--good', 'tick']]),
        scenario.rows.filter((row) => row.note).map((row) => el('p', {class: 'hint'}, `${row.strategy}: ${row.note}.`))));
    }
    document.querySelector('#overview > h2').append(` (${plural(data.scenarios.length, 'result')})`);
    document.documentElement.dataset.ready = 'true';
    document.documentElement.dataset.drawnMs = String(Math.round(performance.now()));
  }

  try {
    drawAll();
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView();
  } catch (error) {
    main.prepend(el('p', {class: 'problem'}, `This page could not be drawn: ${error.message}.`));
    throw error;
  }
})();
