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

  /// columns: [{title, number, nowrap, words, cell(row) -> node or text}]. `cards`: on narrow
  /// screens each row becomes a card; otherwise the table scrolls inside its panel.
  function table(columns, rows, cards) {
    const kind = (column) =>
      [column.number && 'number', column.nowrap && 'nowrap', column.words && 'words', column.head && 'head']
        .filter(Boolean).join(' ') || null;
    const head = el('tr', null, columns.map((c) => el('th', {scope: 'col', class: c.number ? 'number' : null}, c.title)));
    const lines = rows.map((row) => el('tr', null, columns.map((column) =>
      el('td', {class: kind(column), 'data-label': column.title}, el('span', null, column.cell(row))))));
    return el('div', {class: 'scroll', tabindex: cards ? null : 0},
      el('table', {class: cards ? 'cards' : null}, el('thead', null, head), el('tbody', null, lines)));
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
  const plural = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`;
  const count = (n) => ['n', '=', grouped(n)].join(kSpace);

  function duration(ms) {
    if (!isNumber(ms)) return kNothing;
    if (ms < 1000) return `${ms.toFixed(ms < 10 ? 2 : 1)}${kSpace}ms`;
    if (ms < 120000) return `${(ms / 1000).toFixed(2)}${kSpace}s`;
    return [Math.floor(ms / 60000), 'min', Math.floor((ms % 60000) / 1000), 's'].join(kSpace);
  }

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

  const name = (text) => el('span', {class: 'name'}, text);
  const state = (tone, text) => el('span', {class: `state ${tone ? `tone-${tone}` : 'neutral'}`}, text);
  const yesNo = (ok, yes, no) => state(ok ? 'good' : 'bad', ok ? `✓ ${yes}` : `✗ ${no}`);

  return {count, duration, el, fixed, grouped, isNumber, kNothing, kSpace, legend, name, pairs, panel, plural, size, state, table,
    yesNo};
})();
