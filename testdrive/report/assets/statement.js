// Figures of the workload statement but for places: rates, mix, sizes, hot regions, growth, arrivals, depth, latency, trims.

// What operations are called stands with each recording: where its source did not tell them, they are just I/Os.
const OPCODE_ORDER = ["read", "write", "trim", "flush", "write_zeroes"];

function subjectOf(data, element) {
  return data.subjects[element.dataset.subject];
}

function present(values) {
  return OPCODE_ORDER.filter((name) => values && values[name]);
}

function opcodeInk(data, name) {
  return inkColour(data.opcodes[name]);
}

function timeAxis(subject, element) {
  const { low, high, unit_ns: unit, unit: name } = subject.time;
  return { ...baseAxis(isNarrow(element) ? `time (${name})` : `time since the start (${name})`), range: [low / unit, high / unit] };
}

// The windows that the recording reaches into: the axis may be that of a longer one.
function windowStarts(subject) {
  const { width_ns: width, unit_ns: unit, used } = subject.time;
  return Array.from({ length: used }, (_, index) => (index * width) / unit);
}

// A step holds its height until the next, and the last one until the end of its window.
function stepped(subject, values) {
  const x = windowStarts(subject);
  x.push((subject.time.used * subject.time.width_ns) / subject.time.unit_ns);
  const y = Array.from(values).slice(0, subject.time.used);
  y.push(y[y.length - 1]);
  return { x, y };
}

function stackTrace(subject, values, name, ink, axis, group, hover, extra = {}) {
  return {
    type: "scatter", mode: "lines", ...stepped(subject, values), name, yaxis: axis, stackgroup: group,
    line: { color: ink, width: 0, shape: "hv" }, fillcolor: withAlpha(ink, 0.7), hovertemplate: hover, ...extra,
  };
}

function ratesPanels(moved, trimmed) {
  if (moved && trimmed) return { y: [0.54, 1], y2: [0.24, 0.48], y3: [0, 0.18], last: "y3" };
  if (moved) return { y: [0.46, 1], y2: [0, 0.38], last: "y2" };
  if (trimmed) return { y: [0.42, 1], y3: [0, 0.34], last: "y3" };
  return { y: [0, 1], last: "y" };
}

function ratesFigure(data, element) {
  const subject = subjectOf(data, element);
  const unit = subject.time.unit;
  const perSecond = (values) => Array.from(values, (value, index) => value / subject.rates.lengths_s[index]);
  const traces = [];
  for (const name of present(subject.rates.ios)) {
    traces.push(stackTrace(subject, perSecond(subject.rates.ios[name]), subject.words[name], opcodeInk(data, name), "y", "ios",
      `%{x:.4~r} ${unit}: %{y:,.3~s} ${subject.words[name]}/s<extra></extra>`, { legendgroup: name }));
  }
  if (subject.rates.busiest) {
    traces.push({
      type: "scatter", mode: "lines", ...stepped(subject, subject.rates.busiest), name: "busiest second of each step", yaxis: "y",
      line: { color: colour("line-max"), width: 1, shape: "hv" }, hovertemplate: `%{x:.4~r} ${unit}: up to %{y:,.3~s} IOPS in one second<extra></extra>`,
    });
  }
  for (const name of ["read", "write"].filter((each) => data.scales.rates.moved > 0 && subject.rates.bytes[each])) {
    traces.push(stackTrace(subject, perSecond(subject.rates.bytes[name]), subject.words[name], opcodeInk(data, name), "y2", "bytes",
      `%{x:.4~r} ${unit}: %{y:,.3~s}B/s of ${subject.words[name]}<extra></extra>`, { legendgroup: name, showlegend: false }));
  }
  const { moved, trimmed } = data.scales.rates;
  if (trimmed > 0 && subject.rates.bytes.trim) {
    traces.push(stackTrace(subject, perSecond(subject.rates.bytes.trim), "trims", opcodeInk(data, "trim"), "y3", "trims",
      `%{x:.4~r} ${unit}: %{y:,.3~s}B/s trimmed<extra></extra>`, { legendgroup: "trim", showlegend: false }));
  }
  const layout = baseLayout(element);
  const narrow = isNarrow(element);
  const top = (key) => [0, (data.scales.rates[key] || 1) * 1.05];
  // The panels that there is anything for, from the top down; the axis of time stands under the last.
  const panels = ratesPanels(moved > 0, trimmed > 0);
  layout.xaxis = { ...timeAxis(subject, element), anchor: panels.last };
  layout.yaxis = { ...baseAxis("IOPS"), tickformat: "~s", range: top("ios"), domain: panels.y, nticks: 6 };
  if (panels.y2) layout.yaxis2 = { ...baseAxis(narrow ? "B/s" : subject.told ? "read and<br>written" : "bytes"), tickformat: "~s", ticksuffix: "B/s", range: top("moved"), domain: panels.y2, nticks: 4 };
  if (panels.y3) layout.yaxis3 = { ...baseAxis(narrow ? "trim" : "trimmed"), tickformat: "~s", ticksuffix: "B/s", range: top("trimmed"), domain: panels.y3, nticks: 3 };
  layout.margin.l += 22;
  layout.showlegend = true;
  return { traces, layout };
}

function mixFigure(data, element) {
  const subject = subjectOf(data, element);
  const traces = [];
  for (const [what, axis, words] of [["ios", "y", "I/Os"], ["bytes", "y2", "bytes"]]) {
    const names = present(subject.rates[what]).filter((name) => what === "ios" || name !== "flush");
    const whole = windowStarts(subject).map((_, index) => names.reduce((sum, name) => sum + subject.rates[what][name][index], 0));
    for (const name of names) {
      const share = Array.from(subject.rates[what][name], (value, index) => (whole[index] > 0 ? (100 * value) / whole[index] : 0));
      traces.push(stackTrace(subject, share, subject.words[name], opcodeInk(data, name), axis, what,
        `%{x:.4~r} ${subject.time.unit}: ${subject.words[name]} %{y:.3~r} % of the ${words}<extra></extra>`, { legendgroup: name, showlegend: what === "ios" }));
    }
  }
  const layout = baseLayout(element);
  layout.xaxis = { ...timeAxis(subject, element), anchor: "y2" };
  layout.yaxis = { ...baseAxis("of I/Os"), ticksuffix: " %", range: [0, 100], domain: [0.55, 1], nticks: 4 };
  layout.yaxis2 = { ...baseAxis("of bytes"), ticksuffix: " %", range: [0, 100], domain: [0, 0.43], nticks: 4 };
  layout.showlegend = true;
  return { traces, layout };
}

function subjectsWith(data, pick) {
  return Object.values(data.subjects).filter((subject) => pick(subject));
}

// Of two recordings the second has hatched bars and dashed lines: hue is the operation's.
function hatch(data, subject) {
  return Object.keys(data.subjects).indexOf(subject.key) > 0 ? "/" : "";
}

function dashOf(data, subject) {
  return Object.keys(data.subjects).indexOf(subject.key) > 0 ? "dash" : "solid";
}

function named(data, subject, words) {
  return Object.keys(data.subjects).length > 1 ? plainText(`${words}, ${subject.short}`) : words;
}

function sizesFigure(data, element, choices) {
  const what = choices.sizes === "share of bytes" ? "bytes" : "ios";
  const subjects = subjectsWith(data, (subject) => subject.sizes);
  const traces = subjects.flatMap((subject) => present(subject.sizes[what]).map((name) => {
    const counts = subject.sizes[what][name];
    const whole = counts.reduce((sum, value) => sum + value, 0);
    return {
      type: "bar", name: named(data, subject, subject.words[name]), x: subject.sizes.labels, y: counts.map((value) => (whole > 0 ? (100 * value) / whole : 0)),
      customdata: subject.sizes.ios[name], marker: { color: opcodeInk(data, name), pattern: { shape: hatch(data, subject), solidity: 0.4 } },
      hovertemplate: `up to %{x}: %{y:.3~r} % of the ${what === "ios" ? "" : "bytes of "}${subject.words[name]}, %{customdata:,} I/Os<extra></extra>`,
    };
  }));
  const layout = baseLayout(element);
  const labels = widestOrder(subjects.map((subject) => subject.sizes.labels));
  layout.barmode = "group";
  layout.bargap = labels.length < 4 ? 0.75 : 0.25;
  layout.xaxis = { ...baseAxis("size of an I/O: more than the size before, up to"), automargin: true, type: "category", categoryorder: "array", categoryarray: labels };
  layout.yaxis = { ...baseAxis(what === "ios" ? "share of the operation's I/Os" : "share of the operation's bytes"), ticksuffix: " %", rangemode: "tozero" };
  layout.showlegend = true;
  return { traces, layout };
}

// The labels of several subjects in one order: powers of two, of which each has a stretch.
function widestOrder(lists) {
  const scale = (label) => {
    const [number, unit] = label.split(" ");
    return Number(number.replaceAll(",", "")) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].indexOf(unit);
  };
  return [...new Set(lists.flat())].sort((one, other) => scale(one) - scale(other));
}

const HOT_INK = { "reads and writes": null, reads: "read", writes: "write" };

function hotFigure(data, element) {
  const subjects = subjectsWith(data, (subject) => Object.keys(subject.hot).length > 0);
  const traces = subjects.flatMap((subject) => Object.entries(subject.hot).map(([name, { part, share }]) => ({
    type: "scatter", mode: part.length < 3 ? "lines+markers" : "lines", name: named(data, subject, name), x: Array.from(part, (value) => value * 100), y: Array.from(share, (value) => value * 100),
    line: { color: HOT_INK[name] ? opcodeInk(data, HOT_INK[name]) : colour("line-mean"), width: HOT_INK[name] ? 1.5 : 2.2, dash: dashOf(data, subject) },
    hovertemplate: `the hottest %{x:.3~r} % of the regions in use take %{y:.3~r} % of the ${name}<extra></extra>`,
  })));
  traces.push({
    type: "scatter", mode: "lines", name: "all alike", x: [0.01, 0.1, 1, 3, 10, 30, 100], y: [0.01, 0.1, 1, 3, 10, 30, 100],
    line: { color: colour("quiet"), width: 1, dash: "dot", shape: "spline" }, hoverinfo: "skip",
  });
  const layout = baseLayout(element);
  const lowest = Math.min(...subjects.flatMap((subject) => Object.values(subject.hot).map(({ part }) => part[0] * 100)), 10);
  layout.xaxis = { ...baseAxis("hottest part of the regions in use (log)"), type: "log", range: [Math.log10(lowest), 2], ticksuffix: " %", dtick: 1 };
  layout.yaxis = { ...baseAxis("share of the I/Os"), ticksuffix: " %", range: [0, 101] };
  layout.showlegend = true;
  return { traces, layout };
}

function growthFigure(data, element) {
  const subject = subjectOf(data, element);
  const { interval_ns: interval, total, by_opcode: byOpcode } = subject.growth;
  const unit = subject.time.unit_ns;
  const [bytes, size] = addressUnit(growthTop(data));
  const scaled = (values) => Array.from(values, (value) => value / bytes);
  const traces = [];
  if (subject.working_sets.length > 1) {
    traces.push({
      type: "bar", name: "working set of each minute", x: subject.working_sets.map((_, minute) => ((minute + 0.5) * 60e9) / unit), y: scaled(subject.working_sets),
      width: 60e9 / unit, marker: { color: withAlpha(inkColour(subject.ink), 0.3), line: { width: 0 } },
      hovertemplate: `%{x:.4~r} ${subject.time.unit}: %{y:.4~r} ${size} read or written in this minute<extra></extra>`,
    });
  }
  const line = (values, name, ink, width) => ({
    type: "scatter", mode: "lines", name, x: [0, ...Array.from(values, (_, index) => ((index + 1) * interval) / unit)], y: [0, ...scaled(values)],
    line: { color: ink, width }, hovertemplate: `%{x:.4~r} ${subject.time.unit}: %{y:.4~r} ${size} touched by ${name}<extra></extra>`,
  });
  traces.push(line(total, "all operations", colour("line-mean"), 2.2));
  for (const name of present(byOpcode)) traces.push(line(byOpcode[name], subject.words[name], opcodeInk(data, name), 1.6));
  const layout = baseLayout(element);
  layout.xaxis = timeAxis(subject, element);
  layout.yaxis = { ...baseAxis(`addresses touched (${size})`), range: [0, growthTop(data) / bytes] };
  layout.showlegend = true;
  return { traces, layout };
}

function growthTop(data) {
  return Math.max(...Object.values(data.subjects).map(({ growth }) => (growth ? growth.total[growth.total.length - 1] : 0))) * 1.05;
}

function arrivalsFigure(data, element, choices) {
  const subjects = subjectsWith(data, (subject) => subject.arrivals);
  const onNines = choices.arrivals === "nines";
  const share = (value) => (onNines ? nines(Math.min(value, 1 - 1e-9)) : value * 100);
  const traces = subjects.flatMap((subject) => {
    const { value, io_share: shares, poisson, ios } = subject.arrivals;
    const points = curvePoints(value, shares, onNines, ios);
    return [
      {
        type: "scatter", mode: "lines", name: named(data, subject, "recorded"), x: points.x, y: points.y, customdata: points.share,
        line: { color: inkColour(subject.ink), width: 2, dash: subject.ink.dash, shape: "hv" }, hovertemplate: "%{customdata} of the intervals are at most %{x:.3s}s<extra></extra>",
      },
      {
        type: "scatter", mode: "lines", name: named(data, subject, "by chance alone, with the same mean"), x: Array.from(poisson.value, (each) => each / 1e9),
        y: Array.from(poisson.share, share), line: { color: withAlpha(inkColour(subject.ink), 0.6), width: 1.2, dash: "dot" }, hoverinfo: "skip",
      },
    ];
  });
  const layout = baseLayout(element);
  const highest = Math.max(2, ...subjects.map(({ arrivals }) => nines(1 - 0.5 / arrivals.ios)));
  layout.xaxis = latencyAxis("time between arrivals (log)");
  layout.yaxis = shareAxis("share at or below", onNines, highest);
  if (onNines) layout.margin.l += 14;
  layout.showlegend = true;
  return { traces, layout };
}

function inFlightFigure(data, element) {
  const subjects = subjectsWith(data, (subject) => subject.in_flight);
  const traces = subjects.map((subject) => ({
    type: "bar", name: plainText(subject.name), x: subject.in_flight.labels, y: subject.in_flight.share.map((value) => value * 100),
    marker: { color: inkColour(subject.ink), pattern: { shape: hatch(data, subject), solidity: 0.4 } },
    hovertemplate: `%{x} in flight for %{y:.3~r} % of the time<extra>${plainText(subject.name)}</extra>`,
  }));
  const layout = baseLayout(element);
  const labels = subjects.map((subject) => subject.in_flight.labels).reduce((one, other) => (one.length >= other.length ? one : other), []);
  layout.xaxis = { ...baseAxis("I/Os in flight"), automargin: true, type: "category", categoryorder: "array", categoryarray: labels };
  layout.yaxis = { ...baseAxis("share of the time"), ticksuffix: " %", rangemode: "tozero" };
  layout.showlegend = subjects.length > 1;
  return { traces, layout };
}

function statementLatencyFigure(data, element, choices) {
  const subject = subjectOf(data, element);
  const narrow = isNarrow(element);
  const { unit_ns: unit, unit: name, low, high } = subject.time;
  const counts = SHOWN[choices.density].map((opcode) => subject.latency[opcode]).filter(Boolean);
  const traces = [];
  if (counts.length > 0) {
    const raster = addRasters(counts);
    traces.push({
      type: "heatmap", x: edges({ low, high, cells: subject.time.cells }, unit), y: edges(data.scales.latency, 1e9), z: logCounts(raster),
      customdata: raster.map((row) => Array.from(row)), name: "I/Os", hoverongaps: false, showscale: !narrow, zmin: 0,
      zmax: Math.log10(Math.max(data.scales.latency_count_max, 2)), colorscale: [[0, colour("density-low")], [1, colour("density-high")]],
      colorbar: countBar(data.scales.latency_count_max, "I/Os in a cell"), hovertemplate: `%{x:.4~r} ${name}, %{y:.3s}s<br>%{customdata:,} I/Os<extra></extra>`,
    });
  }
  if (choices.density === "reads and writes" && subject.lines) {
    const line = (values, words, ink, width) => ({
      type: "scatter", mode: "lines", name: words, x: windowStarts(subject).map((start) => start + subject.time.width_ns / unit / 2),
      y: Array.from(values, (value) => (value > 0 ? value / 1e9 : null)).slice(0, subject.time.used), line: { color: ink, width }, hovertemplate: `%{x:.4~r} ${name}: ${words} %{y:.3s}s<extra></extra>`,
    });
    traces.push(line(subject.lines.max, `max of each ${subject.window_words}`, colour("line-max"), 1));
    traces.push(line(subject.lines.mean, "mean", colour("line-mean"), 1.8));
  }
  const layout = baseLayout(element);
  layout.margin.l += narrow ? 6 : 10;
  layout.xaxis = timeAxis(subject, element);
  layout.yaxis = { ...latencyAxis("service time (log)"), range: [Math.log10(data.scales.latency.low / 1e9), Math.log10(data.scales.latency.high / 1e9)] };
  layout.showlegend = true;
  return { traces, layout };
}

function opcodeLatencyFigure(data, element, choices) {
  const onNines = choices.opcodeaxis === "nines";
  const traces = [];
  let highest = 0;
  let low = Infinity;
  let high = 0;
  for (const subject of subjectsWith(data, ({ curves }) => Object.keys(curves).length > 0)) {
    for (const name of present(subject.curves)) {
      const curve = subject.curves[name];
      const like = { key: `${subject.key}-${name}`, name: named(data, subject, subject.words[name]), ink: { ...data.opcodes[name], dash: dashOf(data, subject) } };
      const made = curveTraces(like, curve, curve.io_share, onNines, curve.supported_share, `the ${subject.words[name]}`);
      // The name is safe already: it must not be escaped twice.
      made.forEach((trace) => { trace.name = like.name; });
      traces.push(...made);
      highest = made.reduce((most, trace) => trace.y.reduce((top, value) => Math.max(top, value), most), highest);
      low = Math.min(low, Math.max(curve.value[curve.io_share.findIndex((share) => share >= 0.01)], 1));
      high = Math.max(high, curve.value[curve.value.length - 1]);
    }
  }
  const layout = baseLayout(element);
  layout.xaxis = { ...latencyAxis("service time (log)"), range: [Math.log10(low / 1e9) - 0.03, Math.log10(Math.max(high, low * 2) / 1e9) + 0.05] };
  layout.yaxis = shareAxis("share at or below", onNines, highest * 1.02);
  if (onNines) layout.margin.l += 14;
  layout.showlegend = true;
  return { traces, layout };
}

function trimStreamsFigure(data, element) {
  const subject = subjectOf(data, element);
  const { streams, bytes } = subject.trims;
  const { low, high, unit_ns: unit, unit: name, cells } = subject.time;
  const most = bytes.reduce((top, row) => row.reduce((greatest_, value) => Math.max(greatest_, value), top), 1);
  const ink = opcodeInk(data, "trim");
  const traces = [{
    type: "heatmap", x: edges({ low, high, cells }, unit), y: streams.map((stream) => (stream === "others" ? stream : `CPU ${stream}`)),
    z: bytes.map((row) => Array.from(row, (value) => (value > 0 ? value : null))), zmin: 0, zmax: most, hoverongaps: false, showscale: !isNarrow(element),
    colorscale: [[0, withAlpha(ink, 0.35)], [1, withAlpha(ink, 1)]], colorbar: { title: { text: `trimmed in ${subject.window_words}`, side: "right" }, thickness: 10, outlinewidth: 0, tickformat: "~s", ticksuffix: "B" },
    hovertemplate: `%{x:.4~r} ${name}, %{y}: %{z:.3~s}B trimmed<extra></extra>`,
  }];
  const layout = baseLayout(element);
  layout.xaxis = timeAxis(subject, element);
  layout.yaxis = { ...baseAxis("stream"), type: "category", automargin: true };
  return { traces, layout };
}
