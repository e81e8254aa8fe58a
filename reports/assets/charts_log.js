'use strict';

// The charts of the report that have a logarithmic axis. Its ticks are round numbers, and its title
// says that it is one.
const logCharts = (() => {
  const {colour, draw, fixedWidth, label} = charts;
  const {binarySize, kSpace} = elements;
  const kMostTicks = 7;

  /// A scale from `lo` to `hi` with round ends and ticks, {min, max, ticks}: 1, 2 and 5 times powers of
  /// ten, or the powers alone where these are too many; where it is too short for them equal steps of a
  /// round size.
  function roundScale(lo, hi) {
    if (!(hi > lo)) [lo, hi] = [lo / 1.1, lo * 1.1];
    const round = [];
    for (let exponent = Math.floor(Math.log10(lo)); round.length === 0 || round.at(-1) < hi; ++exponent) {
      round.push(...[1, 2, 5].map((factor) => Number(`${factor}e${exponent}`)));
    }
    const inside = round.slice(Math.max(0, round.findLastIndex((tick) => tick <= lo)), round.findIndex((tick) => tick >= hi) + 1);
    const ends = {min: inside[0], max: inside.at(-1)};
    if (inside.length > kMostTicks) {
      const powers = inside.filter((tick) => Number.isInteger(+Math.log10(tick).toFixed(9)));
      const each = Math.ceil(powers.length / kMostTicks);
      return {...ends, ticks: powers.filter((_tick, i) => (powers.length - 1 - i) % each === 0)};
    }
    if (inside.length > 3) return {...ends, ticks: inside};
    const kSteps = 4;
    const wanted = (hi - lo) / kSteps;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= wanted * 0.999);
    const first = Math.floor(lo / step) * step || step / 2;  // 0 is nowhere on such an axis
    const ticks = [+first.toPrecision(6)];
    for (let i = Math.floor(lo / step) + 1; ticks.at(-1) < hi; ++i) ticks.push(+(i * step).toPrecision(6));
    return {min: ticks[0], max: ticks.at(-1), ticks};
  }

  const titled = (text) => ({display: true, text, align: 'end', padding: {top: 0}, font: {size: 11}});

  /// A logarithmic axis of milliseconds over these values.
  function logMs(values) {
    const {min, max, ticks} = roundScale(Math.min(...values), Math.max(...values));
    return {
      type: 'logarithmic',
      min,
      max,
      title: titled('time (log)'),
      afterBuildTicks: (axis) => { axis.ticks = ticks.map((value) => ({value})); },
      ticks: {
        callback: (v) => (v < 1000 ? `${+v.toPrecision(4)} ms` : `${+(v / 1000).toPrecision(4)} s`),
        maxRotation: 0,
        autoSkipPadding: 16,
      },
    };
  }

  /// curves: [{name, n, colour, dash, ms: [hundredths]}]; logarithmic, because a tail is many times the median.
  function cdf(parent, description, curves) {
    const known = curves.map((curve) => ({...curve, ms: curve.ms.map((x) => Math.max(x, 1e-3))}));
    return draw(parent, 225, description, {
      type: 'line',
      data: {
        datasets: known.map(({name, n, colour: variable, dash, ms}) => ({
          label: `${name}, n = ${n}`,
          // The share that took at most so long: of n sorted values, of which these are thinned.
          data: ms.map((x, k) => ({x, y: (100 * (Math.floor((k * (n - 1)) / (ms.length - 1)) + 1)) / n})),
          borderColor: colour(variable),
          borderDash: dash,
          borderWidth: 1.8,
          pointRadius: 0,
          stepped: ms.length < 30 ? 'before' : false,
        })),
      },
      options: {
        parsing: false,
        interaction: {mode: 'nearest', axis: 'y', intersect: false},
        layout: {padding: {right: 14, top: 4}},
        scales: {
          x: logMs(known.flatMap(({ms}) => [ms[0], ms.at(-1)])),
          y: {min: 0, max: 100, afterFit: fixedWidth, ticks: {callback: (v) => `${v} %`, maxTicksLimit: 6}},
        },
        plugins: {tooltip: {callbacks: {
          title: () => '',
          label: (item) => `${item.dataset.label}: ${item.parsed.y.toFixed(0)} % within ${item.parsed.x.toFixed(1)} ms`,
        }}},
      },
    });
  }

  /// rows: {name, steps: [ms since the fault or null, ...]}; steps: [{name, colour}]. Logarithmic:
  /// detection takes a millisecond, and the cable comes back after seconds.
  function milestones(parent, description, rows, steps) {
    const at = (ms) => Math.max(ms, 0.01);
    return draw(parent, 64 + 20 * rows.length, description, {
      type: 'scatter',
      data: {
        datasets: steps.map((step, i) => ({
          label: step.name,
          data: rows.flatMap((row, y) => (row.steps[i] === null ? [] : [{x: at(row.steps[i]), y}])),
          backgroundColor: colour(step.colour),
          borderColor: colour('--ink'),
          borderWidth: 0.5,
          pointStyle: step.shape,
          pointRadius: 5,
          pointHoverRadius: 6,
        })),
      },
      options: {
        layout: {padding: {right: 18}},
        scales: {
          x: logMs(rows.flatMap((row) => row.steps.filter((ms) => ms !== null).map(at))),
          y: {reverse: true, min: -0.6, max: rows.length - 0.4,
            afterBuildTicks: (axis) => { axis.ticks = rows.map((_row, value) => ({value})); },
            ticks: {autoSkip: false, callback: (v) => label(rows[v] ? rows[v].name : ''), font: {size: 11.5}}},
        },
        plugins: {tooltip: {callbacks: {label: (item) => `${rows[item.parsed.y].name}: ${item.dataset.label} after ${item.parsed.x.toFixed(2)} ms`}}},
      },
    });
  }

  const bandwidth = (value) => `${+value.toPrecision(3)}${kSpace}GB/s`;

  /// Ticks at powers of two, so few that their labels have room.
  function sizeTicks(lo, hi, most) {
    const [first, last] = [Math.ceil(Math.log2(lo) - 1e-9), Math.floor(Math.log2(hi) + 1e-9)];
    const each = Math.max(1, Math.ceil((last - first + 1) / most));
    const ticks = [];
    for (let exponent = last; exponent >= first; exponent -= each) ticks.unshift(2 ** exponent);
    return ticks.length > 0 ? ticks : [lo, hi];
  }

  /// Bus bandwidth over the size of a call. curves: [{name, colour, dash, mark, points: [{x: bytes, y: GB/s, note}]}]
  function busbw(parent, description, curves) {
    const sizes = curves.flatMap(({points}) => points.map(({x}) => x));
    const [lo, hi] = [Math.min(...sizes), Math.max(...sizes)];
    const ticks = sizeTicks(lo, hi, parent.clientWidth < 520 ? 5 : 9);
    return draw(parent, 270, description, {
      type: 'line',
      data: {
        datasets: curves.map(({name, colour: variable, dash, mark, points}) => ({
          label: name,
          data: points,
          borderColor: colour(variable),
          backgroundColor: colour(variable),
          borderDash: dash,
          borderWidth: 1.8,
          // Of one point there is no line: a stroke marks it.
          pointStyle: mark || 'line',
          pointRadius: mark ? 3.5 : points.length === 1 ? 8 : 0,
          clip: 8,
        })),
      },
      options: {
        parsing: false,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        layout: {padding: {right: 18, top: 4}},
        scales: {
          x: {
            type: 'logarithmic', min: lo, max: hi,
            title: titled('size of a call (log₂)'),
            afterBuildTicks: (axis) => { axis.ticks = ticks.map((value) => ({value})); },
            ticks: {callback: binarySize, maxRotation: 0, autoSkip: false},
          },
          y: {min: 0, afterFit: fixedWidth, ticks: {maxTicksLimit: 6, callback: (v) => `${+v.toPrecision(3)}`}},
        },
        plugins: {tooltip: {callbacks: {
          title: (items) => (items.length ? binarySize(items[0].parsed.x) : ''),
          label: (item) => `${item.dataset.label}: ${bandwidth(item.parsed.y)}${item.raw.note || ''}`,
        }}},
      },
    });
  }

  /// The same of a single size. rows: [{name, colour, value: GB/s, note}]
  function busbwBars(parent, description, rows) {
    return draw(parent, 48 + 30 * rows.length, description, {
      type: 'bar',
      data: {
        labels: rows.map((row) => label(row.name)),
        datasets: [{data: rows.map((row) => row.value), backgroundColor: rows.map((row) => colour(row.colour)), barThickness: 16}],
      },
      options: {
        indexAxis: 'y',
        layout: {padding: {right: 18}},
        scales: {
          x: {min: 0, title: titled('busbw, GB/s'), ticks: {maxRotation: 0, autoSkipPadding: 14, callback: (v) => `${+v.toPrecision(3)}`}},
          y: {grid: {display: false}, ticks: {autoSkip: false, font: {size: 12}}},
        },
        plugins: {tooltip: {callbacks: {label: (item) => `${bandwidth(item.parsed.x)}${rows[item.dataIndex].note || ''}`}}},
      },
    });
  }

  return {busbw, busbwBars, cdf, milestones, roundScale};
})();
