'use strict';

// The pieces the report is made of: elements, tables, numbers as text. Every text of the data goes in
// as a text node, never as HTML: names and messages are whatever users and programs wrote.
const elements = (() => {
  const kNothing = '–';
  const kSpace = '\u00a0';      // between a number and its unit: no line break there

  // --- making elements

  function el(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  const panel = (...children) => el('div', {class: 'panel'}, ...children);

  // What a cell is sorted by: a number in base units ("1.20 s" after "950 ms"), else its text.
  const kUnits = {ms: 1, s: 1e3, min: 6e4, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12};
  function sortKey(cell) {
    const main = cell.cloneNode(true);
    for (const small of main.querySelectorAll('.sub')) small.remove();
    const text = main.textContent.replaceAll('\u202f', '').replaceAll(kSpace, ' ').trim();
    const match = /^<?([+-]?[\d.]+)(?: ?(ms|s|min|kB|MB|GB|TB)(?![A-Za-z]))?/.exec(text);
    return match ? Number(match[1]) * (kUnits[match[2]] || 1) : text;
  }

  function compareKeys(a, b) {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;  // what has no number is last
    return a.localeCompare(b);
  }

  /// Sorts by a column; by the same again: the other way round.
  function sortBy(heading, column) {
    const up = heading.getAttribute('aria-sort') !== 'ascending';
    for (const other of heading.parentNode.children) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const body = heading.closest('table').tBodies[0];
    const rows = [...body.rows].map((row) => ({row, key: sortKey(row.cells[column])}));
    rows.sort((a, b) => (up ? 1 : -1) * compareKeys(a.key, b.key));
    body.append(...rows.map(({row}) => row));
  }

  /// The table as spreadsheets take it: cells apart by tabs, what stands below each other by blanks.
  function asText(shown) {
    const cell = (element) => element.innerText.replaceAll(kSpace, ' ').replaceAll('\u202f', '').replace(/\s+/g, ' ').trim();
    return [...shown.rows].map((row) => [...row.cells].map(cell).join('\t')).join('\n');
  }

  async function copy(button, shown) {
    try {
      await navigator.clipboard.writeText(asText(shown));
      button.textContent = 'copied';
    } catch {
      // No permission: select it, so that the user can.
      getSelection().selectAllChildren(shown);
      button.textContent = 'selected: press Ctrl+C';
    }
  }

  /// Headings that sort, and a button below that copies: of a table that is there, with a head.
  function equip(shown) {
    [...shown.tHead.rows[0].cells].forEach((heading, column) => {
      heading.setAttribute('scope', 'col');
      const button = el('button', {type: 'button', class: 'sort'}, ...heading.childNodes);
      button.addEventListener('click', () => sortBy(heading, column));
      heading.replaceChildren(button);
    });
    const button = el('button', {type: 'button', class: 'copy', title: 'Copy the table, for a spreadsheet'}, 'copy');
    button.addEventListener('click', () => copy(button, shown));
    shown.after(el('div', {class: 'tools'}, button));
  }

  /// columns: [{title, heading (a node instead of the title), number, nowrap, words, cell(row) -> node or text}]. `cards`: on narrow
  /// screens each row becomes a card; otherwise the table scrolls inside its panel. Headings sort.
  function table(columns, rows, cards, id) {
    const kind = (column) =>
      [column.number && 'number', column.nowrap && 'nowrap', column.words && 'words', column.head && 'head']
        .filter(Boolean).join(' ') || null;
    const head = el('tr', null, columns.map((c) => el('th', {class: c.number ? 'number' : null}, c.heading || c.title)));
    const lines = rows.map((row) => el('tr', {id: id ? id(row) : null}, columns.map((column) =>
      el('td', {class: kind(column), 'data-label': column.title}, el('span', null, column.cell(row))))));
    const shown = el('table', {class: cards ? 'cards' : null}, el('thead', null, head), el('tbody', null, lines));
    const around = el('div', {class: 'scroll', tabindex: cards ? null : 0}, shown);
    equip(shown);
    return around;
  }

  function pairs(entries) {
    const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== '');
    return el('dl', {class: 'pairs'}, shown.flatMap(([key, value]) => [el('dt', null, key), el('dd', null, String(value))]));
  }

  function legend(items) {
    return el('ul', {class: 'legend'}, items.map(([name, variable, shape]) =>
      el('li', null, el('i', {class: shape || null, style: `--key: var(${variable})`}), name)));
  }

  // --- numbers as text

  const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);
  const fixed = (value, digits) => (isNumber(value) ? value.toFixed(digits) : kNothing);
  const grouped = (value) => (isNumber(value) ? Math.round(value).toLocaleString('en').replaceAll(',', '\u202f') : kNothing);
  /// Of any unit: as many digits as say something.
  const quantity = (value) => (isNumber(value) && Math.abs(value) >= 10000 ? grouped(value) : fixed(value, 2));
  const plural = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;
  const count = (n) => ['n', '=', grouped(n)].join(kSpace);

  function duration(ms) {
    if (!isNumber(ms)) return kNothing;
    if (ms < 1000) return `${ms.toFixed(ms < 10 ? 2 : 1)}${kSpace}ms`;
    if (ms < 120000) return `${(ms / 1000).toFixed(2)}${kSpace}s`;
    return [Math.floor(ms / 60000), 'min', Math.floor((ms % 60000) / 1000), 's'].join(kSpace);
  }

  /// Why there is no p95 or p99: too few samples. Empty: there are both, or no sample at all.
  function missingTail(of) {
    if (!of || !of.n || isNumber(of.p99)) return '';
    return isNumber(of.p95) ? 'p99 from 300 on' : 'p95 from 60 on, p99 from 300 on';
  }

  /// Whether an overhead is more than noise, and its interval.
  function howSure(overhead, digits = 1) {
    const ci = overhead.ci95;
    return [overhead.distinguishable === false ? el('span', {class: 'sub'}, 'not distinguishable from 0') : null,
      el('span', {class: 'sub'}, ci ? `95${kSpace}%: ${fixed(ci[0], digits)} to ${fixed(ci[1], digits)}${kSpace}%` : 'no interval below 6 blocks')];
  }

  /// What one fault costs by a model: time, for there is no percentage of a run.
  const faultCost = (text) => el('span', null, text, el('span', {class: 'sub'}, 'by one fault, modelled: see the note'));

  function size(bytes) {
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let value = bytes;
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) {
      value /= 1000;
      unit += 1;
    }
    return isNumber(bytes) ? `${value.toFixed(unit === 0 ? 0 : 1)} ${units[unit]}` : kNothing;
  }

  /// Of calls, whose sizes are powers of two: "16 MiB".
  function binarySize(bytes) {
    const [unit, of] = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]].find(([, one]) => bytes >= one && bytes % one === 0) || ['B', 1];
    return `${grouped(bytes / of)}${kSpace}${unit}`;
  }

  const name = (text) => el('span', {class: 'name'}, text);
  const state = (tone, text) => el('span', {class: `state ${tone ? `tone-${tone}` : 'neutral'}`}, text);
  const yesNo = (ok, yes, no) => state(ok ? 'good' : 'bad', ok ? `✓ ${yes}` : `✗ ${no}`);

  return {binarySize, count, duration, el, equip, faultCost, fixed, grouped, howSure, isNumber, kNothing, kSpace, legend, missingTail, name, pairs, panel, plural, quantity, size, state, table,
    yesNo};
})();
