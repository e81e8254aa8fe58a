'use strict';

// What all parts of the report share: its data (reports/report_view.h), and how runs and strategies
// are named and coloured.
const page = (() => {
  const {el, plural} = elements;
  const kReference = 'fault_free';  // as kReferenceRow in reports/run_result.h
  const kStrategyColours = 8;

  const data = JSON.parse(document.getElementById('data').textContent);

  const body = (id) => document.querySelector(`#${id} .body`);
  const hide = (id) => { document.getElementById(id).hidden = true; };
  const slug = (text) => String(text).replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 60);
  const runId = (run) => `run-${slug(run.strategy)}-b${run.block + 1}`;  // the same in every report of the scenario
  const blockName = (run) => `${run.strategy}, block ${run.block + 1}`;
  const seconds = (ms) => ms / 1000;

  const kind = () => ((data.scenario || {}).workload || {}).kind;
  /// Programs that are not ours have no ranks, and so no data, failovers and restarts of which we know.
  const isForeign = () => kind() === 'command';
  /// Its iterations are requests, which overlap.
  const isServer = () => kind() === 'inference';
  /// Each iteration is a call.
  const isCollective = () => kind() === 'collective';
  /// Calls of several operations or sizes: nothing of them can be added up or averaged.
  const isSweep = () => data.call_count > 1;
  /// Calls of several sizes have a common overhead only as parts of the whole run.
  const ofWholeRun = () => isSweep() && data.met_some_calls;

  /// What one iteration of the bench is to the user, and one that a restart has to do again.
  const unitOfWork = () => (isServer() ? 'request' : isCollective() ? 'call' : 'iteration');
  const lostWork = (n) => (isServer() ? `${plural(n, 'request')} begun again` : `${plural(n, unitOfWork())} lost`);

  // --- strategies

  const strategies = data.tallies.map((tally) => tally.strategy);
  const placeOf = (strategy) => Math.max(0, strategies.indexOf(strategy));
  /// The same on the whole page; more strategies than colours are told apart by dashes and marks.
  const colourOf = (strategy) => `--strategy-${placeOf(strategy) % kStrategyColours}`;
  const meaningOf = (strategy) => (data.summary.find((row) => row.strategy === strategy) || {}).meaning || '';

  /// A strategy's name with its colour, and what it is on a tooltip and behind a link.
  function strategyName(strategy) {
    const meaning = meaningOf(strategy);
    return el('span', {class: 'strategy'}, el('i', {class: 'swatch', style: `--key: var(${colourOf(strategy)})`}),
      meaning ? el('a', {class: 'name', href: '#strategies', title: meaning}, strategy) : el('span', {class: 'name'}, strategy));
  }

  return {blockName, body, colourOf, data, hide, isCollective, isForeign, isServer, isSweep, kReference, kind, ofWholeRun, lostWork, meaningOf, placeOf, runId,
    seconds, strategies, strategyName, unitOfWork};
})();
