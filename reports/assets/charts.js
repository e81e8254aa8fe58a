'use strict';

// The charts of the report, on Chart.js. Colours come from report.css, so that light, dark and
// print look as the rest of the page does. Each function draws into the element it is given.
const charts = (() => {
  const kBitsPerByte = 8;
  const kAxisWidth = 46;  // the same for all, so that curves above each other line up
  const kBinsAcross = 90;  // rail curves: more would show every gap between buckets, not the trend

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function translucent(name, alpha) {
    const hex = colour(name).slice(1);
    const part = (i) => parseInt(hex.slice(i, i + 2), 16);
    return `rgba(${part(0)}, ${part(2)}, ${part(4)}, ${alpha})`;
  }

  /// Stripes of a colour: what is not certain.
  function hatched(name) {
    const kSize = 8;
    const tile = new OffscreenCanvas(kSize, kSize);
    const ctx = tile.getContext('2d');
    ctx.fillStyle = translucent(name, 0.18);
    ctx.fillRect(0, 0, kSize, kSize);
    ctx.strokeStyle = colour(name);
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const x of [-kSize, 0, kSize]) {
      ctx.moveTo(x, kSize);
      ctx.lineTo(x + kSize, 0);
    }
    ctx.stroke();
    return ctx.createPattern(tile, 'repeat');
  }

  function railColour(rail) {
    return `--rail-${rail % 8}`;
  }

  /// Labels share the canvas with the bars: a very long name would leave none for them.
  function label(text) {
    const longest = window.innerWidth < 640 ? 18 : 40;
    return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
  }

  function applyTheme() {
    Chart.defaults.color = colour('--muted');
    Chart.defaults.borderColor = colour('--grid');
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 11;
    Chart.defaults.animation = false;
    Chart.defaults.maintainAspectRatio = false;
    Chart.defaults.plugins.legend.display = false;  // legends are text of the page: never clipped
    Object.assign(Chart.defaults.plugins.tooltip, {
      backgroundColor: colour('--ink'),
      titleColor: colour('--surface'),
      bodyColor: colour('--surface'),
      cornerRadius: 3,
      boxPadding: 4,
    });
  }

  function draw(parent, height, description, config) {
    const box = document.createElement('div');
    box.className = 'chart';
    box.style.height = `${height}px`;
    const canvas = document.createElement('canvas');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', description);
    box.append(canvas);
    parent.append(box);
    return new Chart(canvas, config);
  }

  /// Shades the time in which a fault was active.
  const faultShade = {
    id: 'faultShade',
    beforeDatasetsDraw(chart, _args, options) {
      const {ctx, chartArea: area, scales: {x}} = chart;
      for (const fault of options.faults || []) {
        const left = Math.max(x.getPixelForValue(fault.from), area.left);
        const right = Math.min(x.getPixelForValue(fault.to), area.right);
        if (!(right >= left)) continue;
        ctx.save();
        ctx.fillStyle = translucent('--fault', 0.14);
        ctx.fillRect(left, area.top, Math.max(right - left, 1), area.bottom - area.top);
        ctx.fillStyle = colour('--fault');
        ctx.fillRect(left, area.top, 1.5, area.bottom - area.top);
        ctx.restore();
      }
    },
  };

  /// Whiskers for the intervals and a tick for the best possible, over horizontal bars.
  const intervals = {
    id: 'intervals',
    afterDatasetsDraw(chart, _args, options) {
      const {ctx, scales: {x}} = chart;
      chart.getDatasetMeta(0).data.forEach((bar, i) => {
        const row = options.rows[i];
        ctx.save();
        if (row.ci) {
          const [lo, hi] = row.ci.map((value) => x.getPixelForValue(value));
          ctx.strokeStyle = colour('--ink');
          ctx.lineWidth = 1.5;
          ctx.beginPath();
          ctx.moveTo(lo, bar.y);
          ctx.lineTo(hi, bar.y);
          for (const end of [lo, hi]) {
            ctx.moveTo(end, bar.y - 4);
            ctx.lineTo(end, bar.y + 4);
          }
          ctx.stroke();
        }
        if (row.bound !== null) {
          ctx.strokeStyle = colour('--ink');
          ctx.lineWidth = 2;
          ctx.setLineDash([4, 2]);
          ctx.beginPath();
          ctx.moveTo(x.getPixelForValue(row.bound), bar.y - 15);
          ctx.lineTo(x.getPixelForValue(row.bound), bar.y + 15);
          ctx.stroke();
        }
        ctx.restore();
      });
    },
  };

  /// One tick per horizontal bar, where `marks` says (null: none).
  const barMarks = {
    id: 'barMarks',
    afterDatasetsDraw(chart, _args, options) {
      const {ctx, scales: {x}} = chart;
      chart.getDatasetMeta(0).data.forEach((bar, i) => {
        const mark = (options.marks || [])[i];
        if (mark === null || mark === undefined) return;
        ctx.save();
        ctx.fillStyle = colour('--ink');
        ctx.fillRect(x.getPixelForValue(mark) - 1.5, bar.y - 10, 3, 20);
        ctx.restore();
      });
    },
  };

  const seconds = (max) => ({
    type: 'linear',
    min: 0,
    max,
    // Labels stay inside the axis: otherwise the last one's width would shift the right edge, and
    // the two charts of a card would not line up.
    ticks: {align: 'inner', maxRotation: 0, autoSkipPadding: 14, callback: (v) => `${+v.toFixed(2)} s`},
    grid: {drawTicks: false},
  });

  /// The next of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten: where an axis can end.
  function roundUp(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.999);
  }

  const fixedWidth = (axis) => {
    axis.width = kAxisWidth;
  };

  /// rows: {name, colour, median, ci: [lo, hi]|null, bound|null, modelled}
  function overhead(parent, rows) {
    return draw(parent, 44 + 40 * rows.length, 'Overhead of each strategy in percent', {
      type: 'bar',
      data: {
        labels: rows.map((row) => label(row.name)),
        datasets: [{
          data: rows.map((row) => row.median),
          backgroundColor: rows.map((row) => translucent(row.colour, row.modelled ? 0.35 : 0.9)),
          borderColor: rows.map((row) => colour(row.colour)),
          borderWidth: rows.map((row) => (row.modelled ? 1 : 0)),
          barThickness: 16,
        }],
      },
      options: {
        indexAxis: 'y',
        layout: {padding: {right: 18}},
        scales: {
          x: {
            suggestedMin: 0,
            // The whiskers are not data to the library: make room for them.
            suggestedMax: Math.max(...rows.flatMap((row) => [row.median, row.bound || 0, ...(row.ci || [])])),
            ticks: {callback: (v) => `${v} %`, maxRotation: 0, autoSkipPadding: 14},
          },
          y: {grid: {display: false}, ticks: {autoSkip: false, font: {size: 12}}},
        },
        plugins: {
          intervals: {rows},
          tooltip: {callbacks: {label: (item) => `${item.parsed.x.toFixed(1)} % overhead`}},
        },
      },
      plugins: [intervals],
    });
  }

  /// Iterations per second as steps; zero where nothing ran. columns: {start_ms, ms, count}, one after
  /// the other; of a server the requests that were answered, in equal bins.
  function rate(columns) {
    const points = [];
    const kGap = 1.5;  // of the iteration's own time: more than this between two is a standstill
    let lastEnd = null;
    columns.start_ms.forEach((start, i) => {
      const ms = columns.ms[i];
      if (start === null || !(ms > 0)) return;
      if (lastEnd !== null && start - lastEnd > kGap * (ms / columns.count[i])) {
        points.push({x: lastEnd / 1000, y: 0}, {x: start / 1000, y: 0});
      }
      const value = (columns.count[i] * 1000) / ms;
      points.push({x: start / 1000, y: value}, {x: (start + ms) / 1000, y: value});
      lastEnd = start + ms;
    });
    return points;
  }

  /// points of `rate`; line: the strategy's colour; faults: {from, to} in seconds; reference: a rate to
  /// compare with, or null; unit: what there is so many of per second
  function throughput(parent, {points, line, faults, reference, maxX, maxY, unit}) {
    const datasets = [{
      data: points,
      borderColor: colour(line),
      backgroundColor: translucent(line, 0.12),
      borderWidth: 1.6,
      pointRadius: 0,
      fill: true,
    }];
    if (reference !== null) {
      datasets.push({
        data: [{x: 0, y: reference}, {x: maxX, y: reference}],
        borderColor: colour('--muted'),
        borderWidth: 1,
        borderDash: [4, 4],
        pointRadius: 0,
      });
    }
    return draw(parent, 150, `${unit} per second over time`, {
      type: 'line',
      data: {datasets},
      options: {
        parsing: false,
        interaction: {mode: 'nearest', axis: 'x', intersect: false},
        layout: {padding: {right: 4, top: 4}},
        scales: {
          x: {...seconds(maxX), ticks: {display: false}},
          y: {min: 0, suggestedMax: maxY, afterFit: fixedWidth, ticks: {maxTicksLimit: 5}},
        },
        plugins: {
          faultShade: {faults},
          tooltip: {
            filter: (item) => item.datasetIndex === 0,
            callbacks: {
              title: (items) => (items.length ? `${items[0].parsed.x.toFixed(2)} s` : ''),
              label: (item) => `${item.parsed.y.toFixed(2)} ${unit}/s`,
            },
          },
        },
      },
      plugins: [faultShade],
    });
  }

  /// Megabits per second as steps, in bins wide enough to be read.
  function railPoints(series, maxX) {
    const group = Math.max(1, Math.round((maxX * 1000) / kBinsAcross / series.bin_ms));
    const width = group * series.bin_ms;
    const points = [];
    for (let i = 0; i < series.tx_bytes.length; i += group) {
      const slice = series.tx_bytes.slice(i, i + group);
      const bytes = slice.reduce((sum, value) => sum + value, 0);
      const mbit = (bytes * kBitsPerByte) / (slice.length * series.bin_ms * 1000);
      points.push({x: (series.start_ms + i * series.bin_ms + width / 2) / 1000, y: mbit});
    }
    return points;
  }

  /// rails: [{rail, points}], drawn one on top of the other.
  function rails(parent, {rails: list, faults, maxX, maxY}) {
    return draw(parent, 150, 'Megabits per second sent on each rail over time', {
      type: 'line',
      data: {
        datasets: list.map(({rail, points}) => ({
          label: `rail ${rail}`,
          data: points,
          borderColor: colour(railColour(rail)),
          backgroundColor: translucent(railColour(rail), 0.55),
          borderWidth: 1,
          pointRadius: 0,
          stepped: 'middle',
          fill: 'stack',
        })),
      },
      options: {
        interaction: {mode: 'index', axis: 'x', intersect: false},
        layout: {padding: {right: 4, top: 4}},
        scales: {
          x: seconds(maxX),
          y: {stacked: true, min: 0, suggestedMax: maxY, afterFit: fixedWidth, ticks: {maxTicksLimit: 5}},
        },
        plugins: {
          faultShade: {faults},
          tooltip: {
            callbacks: {
              title: (items) => (items.length ? `${items[0].parsed.x.toFixed(2)} s` : ''),
              label: (item) => `${item.dataset.label}: ${item.parsed.y.toFixed(0)} Mbit/s`,
            },
          },
        },
      },
      plugins: [faultShade],
    });
  }

  /// rows: {name, phases: [ms, ...], mark: ms or null}; phases: [{name, colour}]
  function phases(parent, description, rows, phaseList, unit) {
    const marks = rows.map((row) => (row.mark === undefined ? null : row.mark));
    return draw(parent, 44 + 26 * rows.length, description, {
      type: 'bar',
      data: {
        labels: rows.map((row) => label(row.name)),
        datasets: phaseList.map((phase, i) => ({
          label: phase.name,
          data: rows.map((row) => row.phases[i]),
          backgroundColor: phase.hatched ? hatched(phase.colour) : colour(phase.colour),
          barThickness: 14,
        })),
      },
      options: {
        indexAxis: 'y',
        interaction: {mode: 'index', axis: 'y', intersect: false},
        layout: {padding: {right: 18}},
        scales: {
          x: {
            stacked: true,
            min: 0,
            suggestedMax: Math.max(0, ...marks.filter((mark) => mark !== null)),
            ticks: {callback: (v) => `${+v.toFixed(2)} ${unit}`, maxRotation: 0, autoSkipPadding: 14},
          },
          y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false, font: {size: 11.5}}},
        },
        plugins: {
          barMarks: {marks},
          tooltip: {callbacks: {
            label: (item) => `${item.dataset.label}: ${item.parsed.x.toFixed(2)} ${unit}`,
            footer: ([item]) => (marks[item.dataIndex] === null ? '' : `pause: ${rows[item.dataIndex].pause.toFixed(2)} ${unit}`),
          }},
        },
      },
      plugins: [barMarks],
    });
  }

  /// One line of pixels per rail, as bright as it was busy. series: of one node, by rail.
  function heat(series, maxX, maxMbit) {
    const canvas = document.createElement('canvas');
    canvas.className = 'heat';
    canvas.width = kBinsAcross;
    canvas.height = series.length;
    const ctx = canvas.getContext('2d');
    series.forEach(({points}, row) => {
      const width = (kBinsAcross * (points.length > 1 ? points[1].x - points[0].x : maxX)) / maxX;
      for (const {x, y} of points) {
        ctx.fillStyle = translucent('--rail-0', Math.min(1, 0.04 + (0.96 * y) / (maxMbit || 1)));
        ctx.fillRect((kBinsAcross * x) / maxX - width / 2, row, width, 1);
      }
    });
    return canvas;
  }

  /// A chart must be destroyed before its canvas goes: the library would keep both for ever.
  function destroyIn(element) {
    for (const canvas of element.querySelectorAll('canvas')) Chart.getChart(canvas)?.destroy();
  }

  // Strategies beyond the last colour begin anew, with a dash and another mark.
  const kDashes = [[], [7, 3], [2, 2]];
  const kMarks = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star'];
  const dashOf = (place) => kDashes[Math.floor(place / 8) % kDashes.length];
  const markOf = (place) => kMarks[place % kMarks.length];

  return {applyTheme, colour, dashOf, destroyIn, draw, fixedWidth, heat, label, markOf, overhead, phases, rails, railColour, railPoints, rate, roundUp, throughput};
})();
