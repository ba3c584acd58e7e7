// Figures of distributions: percentiles weighted by I/O and by latency, and lateness.

const NINES = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];

function nines(share) {
  return -Math.log10(1 - share);
}

function percentWords(share) {
  return `${Number((share * 100).toPrecision(9))} %`;
}

// The last point of a distribution is 100 %, which the nines axis does not have. It is drawn half an I/O short of it:
// left out, the slowest I/Os would be missing from the plot.
function curvePoints(values, shares, onNines, ios) {
  const points = { x: [], y: [], share: [] };
  for (let index = 0; index < values.length; index += 1) {
    const top = Math.max(1 - 0.5 / ios, index > 0 ? shares[index - 1] : 0);
    points.x.push(Math.max(values[index], 1) / 1e9);
    points.y.push(onNines ? nines(shares[index] >= 1 ? Math.min(top, 1 - 1e-12) : shares[index]) : shares[index] * 100);
    points.share.push(percentWords(shares[index]));
  }
  return points;
}

// Beyond the percentile that the number of I/Os supports the line is faint: what is there rests on too few of them.
function curveTraces(subject, curve, shares, onNines, supported, noun) {
  const points = curvePoints(curve.value, shares, onNines, curve.ios);
  const limit = onNines ? nines(supported) : supported * 100;
  let split = points.y.findIndex((value) => value > limit);
  if (split < 0) split = points.y.length;
  const base = {
    type: "scatter", mode: "lines", name: plainText(subject.name), legendgroup: subject.key,
    hovertemplate: `%{customdata} of ${noun} at or below %{x:.3s}s<extra>${plainText(subject.name)}</extra>`,
  };
  const part = (from, to, extra) => ({
    ...base, ...extra, x: points.x.slice(from, to), y: points.y.slice(from, to), customdata: points.share.slice(from, to),
  });
  const ink = inkColour(subject.ink);
  return [
    part(0, split, { line: { color: ink, width: 2, dash: subject.ink.dash, shape: "hv" } }),
    part(Math.max(split - 1, 0), points.y.length, { showlegend: false, opacity: 0.35, line: { color: ink, width: 1.5, dash: subject.ink.dash, shape: "hv" } }),
  ];
}

function shareAxis(title, onNines, highest) {
  const axis = baseAxis(title);
  if (!onNines) return { ...axis, range: [0, 101], ticksuffix: " %" };
  // Its marks are long, and the title must not lie over them.
  return { ...axis, automargin: true, range: [0, Math.max(highest, 2)], tickvals: NINES.map(nines), ticktext: NINES.map(percentWords) };
}

// From the fastest 1 % on: what lies below would take half of the plot for nothing.
function valueRange(data, pick) {
  let low = Infinity;
  let high = 0;
  for (const subject of Object.values(data.subjects)) {
    const chosen = pick(subject);
    if (!chosen) continue;
    const { value, io_share: shares } = chosen.curve;
    const first = shares.findIndex((share) => share >= 0.01);
    low = Math.min(low, Math.max(value[first], 1));
    high = Math.max(high, value[value.length - 1]);
  }
  return high > 0 ? { range: [Math.log10(low / 1e9) - 0.03, Math.log10(Math.max(high, low * 2) / 1e9) + 0.05] } : {};
}

function distributionFigure(data, element, choices, pick) {
  const onNines = choices.axis === "nines";
  const layout = baseLayout(element);
  const traces = [];
  let highest = 0;
  for (const subject of Object.values(data.subjects)) {
    const chosen = pick(subject);
    if (!chosen) continue;
    const made = curveTraces(subject, chosen.curve, chosen.shares, onNines, chosen.supported, chosen.noun);
    traces.push(...made);
    if (onNines) highest = made.reduce((most, trace) => trace.y.reduce((high, value) => Math.max(high, value), most), highest);
  }
  layout.xaxis = { ...latencyAxis(element.dataset.xTitle), ...valueRange(data, pick) };
  layout.yaxis = shareAxis(element.dataset.yTitle, onNines, highest * 1.02);
  if (onNines) layout.margin.l += 14;
  roomForLegend(element, Object.values(data.subjects).filter(pick).map((subject) => subject.name), layout);
  layout.showlegend = true;
  return { traces, layout };
}

function ioWeightedFigure(data, element, choices) {
  return distributionFigure(data, element, choices, ({ service }) =>
    service && { curve: service, shares: service.io_share, supported: service.supported_share, noun: "I/Os" });
}

function latencyWeightedFigure(data, element, choices) {
  return distributionFigure(data, element, choices, ({ service }) =>
    service && { curve: service, shares: service.time_share, supported: 1, noun: "I/O time" });
}

function latenessFigure(data, element, choices) {
  return distributionFigure(data, element, choices, ({ lateness }) =>
    lateness && { curve: lateness, shares: lateness.io_share, supported: lateness.supported_share, noun: "I/Os" });
}
