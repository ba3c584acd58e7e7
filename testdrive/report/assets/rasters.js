// Figures made of density rasters: latency against time, and addresses against time.

function edges(axis, scale) {
  const result = new Float64Array(axis.cells + 1);
  for (let index = 0; index <= axis.cells; index += 1) {
    const share = index / axis.cells;
    const value = axis.logarithmic ? axis.low * (axis.high / axis.low) ** share : axis.low + (axis.high - axis.low) * share;
    result[index] = value / scale;
  }
  return result;
}

function addRasters(rasters) {
  if (rasters.length === 1) return rasters[0];
  return rasters[0].map((row, at) => {
    const sum = new Float64Array(row.length);
    for (const raster of rasters) for (let index = 0; index < sum.length; index += 1) sum[index] += raster[at][index];
    return sum;
  });
}

// Counts span decades, so the colour follows their logarithm; empty cells stay empty.
function logCounts(raster) {
  return raster.map((row) => Array.from(row, (count) => (count > 0 ? Math.log10(count) : null)));
}

function greatest(raster) {
  return raster.reduce((most, row) => row.reduce((high, count) => Math.max(high, count), most), 0);
}

function countBar(most, title) {
  const decades = Array.from({ length: Math.floor(Math.log10(Math.max(most, 1))) + 1 }, (_, power) => power);
  return {
    title: { text: title, side: "right" }, thickness: 10, outlinewidth: 0, len: 1, y: 1, yanchor: "top",
    tickvals: decades, ticktext: decades.map((power) => (10 ** power).toLocaleString("en")),
  };
}

const SHOWN = {
  "reads and writes": ["read", "write"], reads: ["read"], writes: ["write"], trims: ["trim"], flushes: ["flush"],
  "write zeroes": ["write_zeroes"],
};

function densityTrace(data, subject, opcodes, narrow) {
  const rasters = opcodes.map((name) => subject.latency[name]).filter(Boolean);
  if (rasters.length === 0) return null;
  const counts = addRasters(rasters);
  return {
    type: "heatmap", x: edges(data.scales.time, 1e9), y: edges(data.scales.latency, 1e9), z: logCounts(counts),
    customdata: counts.map((row) => Array.from(row)), name: "I/Os", hoverongaps: false, showscale: !narrow,
    zmin: 0, zmax: Math.log10(Math.max(data.scales.latency_count_max, 2)),
    colorscale: [[0, colour("density-low")], [1, colour("density-high")]],
    colorbar: { ...countBar(data.scales.latency_count_max, "I/Os in a cell"), len: subject.trims ? 0.6 : 1 },
    hovertemplate: "%{x:.2f} s, %{y:.3s}s<br>%{customdata:,} I/Os<extra></extra>",
  };
}

// A line between windows, and a dot for a window with nothing on either side, which a line would not show.
function lineTraces(data, values, name, ink, width, dash) {
  const line = lineTrace(data, values, name, ink, width, dash);
  const alone = line.x.map((_, index) => index).filter((index) =>
    line.y[index] !== null && (line.y[index - 1] ?? null) === null && (line.y[index + 1] ?? null) === null);
  if (alone.length === 0) return [line];
  const dots = { ...line, mode: "markers", showlegend: false, marker: { color: ink, size: width + 2.5 } };
  return [line, { ...dots, x: alone.map((index) => line.x[index]), y: alone.map((index) => line.y[index]) }];
}

function lineTrace(data, values, name, ink, width, dash) {
  const step = data.scales.window_ns / 1e9;
  return {
    type: "scatter", mode: "lines", name, x: Array.from(values, (_, index) => (index + 0.5) * step),
    y: Array.from(values, (value) => (value > 0 ? value / 1e9 : null)), line: { color: ink, width, dash },
    hovertemplate: `%{x:.1f} s: ${name} %{y:.3s}s<extra></extra>`,
  };
}

function latencyFigure(data, element, choices) {
  const subject = data.subjects[element.dataset.subject];
  const narrow = isNarrow(element);
  const traces = [densityTrace(data, subject, SHOWN[choices.density], narrow)];
  if (choices.density === "reads and writes") {
    const each = data.scales.window_words;
    traces.push(
      ...lineTraces(data, subject.lines.max, `max of each ${each}`, colour("line-max"), 1, "solid"),
      ...(subject.has_p99 ? lineTraces(data, subject.lines.p99, "p99", colour("line-p99"), 1.4, "dot") : []),
      ...lineTraces(data, subject.lines.mean, "mean", colour("line-mean"), 1.8, "solid"),
    );
  }
  const layout = baseLayout(element);
  const seconds = [data.scales.time.low / 1e9, data.scales.time.high / 1e9];
  const bounds = [Math.log10(data.scales.latency.low / 1e9), Math.log10(data.scales.latency.high / 1e9)];
  layout.margin.l += narrow ? 6 : 26;
  layout.xaxis = { ...baseAxis("time since the start (s)"), range: seconds };
  layout.yaxis = { ...latencyAxis("service time (log)"), range: bounds };
  if (data.scales.trims) {
    layout.yaxis.domain = [0.42, 1];
    layout.xaxis.anchor = "y3";
    layout.yaxis2 = { ...baseAxis(narrow ? "bytes" : `bytes trimmed<br>in ${data.scales.window_words}`), domain: [0.22, 0.37], tickformat: "~s", ticksuffix: "B", nticks: 3, range: [0, data.scales.trimmed_bytes_max * 1.05] };
    layout.yaxis3 = { ...baseAxis(narrow ? "trims" : "trims<br>outstanding"), domain: [0, 0.15], nticks: 3, range: [0, data.scales.trims_outstanding_max * 1.05] };
    traces.push(...trimTraces(data, subject));
  }
  return { traces: traces.filter(Boolean), layout };
}

function trimTraces(data, subject) {
  if (!subject.trims) return [];
  const step = data.scales.window_ns / 1e9;
  const ink = inkColour(data.opcodes.trim);
  const shape = (values, axis, name, hover) => ({
    type: "scatter", mode: "lines", yaxis: axis, name, showlegend: false, fill: "tozeroy", fillcolor: withAlpha(ink, 0.35),
    x: Array.from(values, (_, index) => index * step), y: Array.from(values), line: { color: ink, width: 1.2, shape: "hv" }, hovertemplate: hover,
  });
  return [
    shape(subject.trims.bytes, "y2", "trimmed bytes", "%{x:.1f} s: %{y:.3s}B trimmed<extra></extra>"),
    shape(subject.trims.outstanding, "y3", "trims outstanding", "%{x:.1f} s: %{y} trims outstanding<extra></extra>"),
  ];
}

function offsetsFigure(data, element, choices) {
  const subject = data.subjects[element.dataset.subject];
  const unit = subject.offset_unit;
  const shown = choices.opcodes === "all" ? ["read", "write", "trim", "write_zeroes"] : SHOWN[choices.opcodes];
  const traces = shown.filter((name) => subject.offsets[name]).map((name) => {
    const counts = subject.offsets[name];
    const ink = inkColour(data.opcodes[name]);
    return {
      type: "heatmap", x: edges(data.scales.time, 1e9), y: edges(subject.offset_axis, unit.bytes), z: logCounts(counts),
      customdata: counts.map((row) => Array.from(row)), name: name.replace("_", " "), hoverongaps: false, showscale: false, zmin: 0,
      zmax: Math.log10(Math.max(data.scales.offset_count_max[name], 2)), colorscale: [[0, withAlpha(ink, 0.45)], [1, withAlpha(ink, 1)]],
      hovertemplate: `%{x:.2f} s, %{y:.3f} ${unit.name}<br>%{customdata:,} ${name.replace("_", " ")} I/Os<extra></extra>`,
    };
  });
  // A heatmap has no legend of its own: an empty marker trace stands for each opcode.
  for (const name of shown.filter((opcode) => subject.offsets[opcode])) {
    traces.push({
      type: "scatter", mode: "markers", x: [null], y: [null], name: name.replace("_", " "), hoverinfo: "skip",
      marker: { symbol: "square", size: 11, color: inkColour(data.opcodes[name]) },
    });
  }
  const layout = { ...baseLayout(element), showlegend: true };
  layout.legend.itemclick = false;
  layout.legend.itemdoubleclick = false;
  layout.xaxis = { ...baseAxis("time since the start (s)"), range: [data.scales.time.low / 1e9, data.scales.time.high / 1e9] };
  layout.yaxis = { ...baseAxis(`offset (${unit.name})`), range: [0, subject.offset_axis.high / unit.bytes] };
  return { traces, layout };
}
