// Figures of the standard tests: panels and series as the page's data describes them.

const DASHES = { solid: "solid", dash: "dash", dot: "dot", dashdot: "dashdot", longdash: "longdash" };

function methodAxis(spec, narrow) {
  const axis = baseAxis(narrow ? spec.title.replace(/ \(log\)$/, "") : spec.title);
  if (spec.scale === "log") {
    // Less than two decades may hold a single power of ten, from which nothing can be read.
    const decades = spec.low > 0 && spec.high > 0 ? Math.log10(spec.high / spec.low) : Infinity;
    Object.assign(axis, { type: "log", dtick: decades < 2 ? "D2" : 1, minor: { ticks: "outside", ticklen: 2, tickcolor: colour("rule") } });
  }
  // Its marks are long, and the title must not lie over them.
  if (spec.scale === "nines") axis.automargin = true;
  const ends = [spec.low, spec.high];
  if (ends.every((end) => end !== null)) axis.range = spec.scale === "log" ? ends.map(Math.log10) : ends;
  else if (spec.scale !== "log" && spec.low === 0) axis.rangemode = "tozero";
  if (spec.ticks.length > 0) {
    const texts = spec.ticks.map((tick) => plainText(tick[1]).replaceAll("\n", "<br>"));
    Object.assign(axis, { tickmode: "array", tickvals: spec.ticks.map((tick) => tick[0]), ticktext: texts });
    if (spec.labels.length > 0) axis.automargin = true;
  } else if (spec.si_unit === "IOPS") axis.tickformat = "~s";
  else if (spec.si_unit) Object.assign(axis, { tickformat: "~s", ticksuffix: spec.si_unit, exponentformat: "SI" });
  if (spec.ink) Object.assign(axis, { color: inkColour(spec.ink), title: { ...axis.title, font: { color: inkColour(spec.ink) } } });
  return axis;
}

// Left axes come first, from the top, then the right ones.
function methodAxisNumber(spec, series) {
  return 1 + series.panel + (series.side === "right" ? spec.y.length : 0);
}

function methodAxisKey(prefix, number) {
  return number === 1 ? prefix : `${prefix}${number}`;
}

// A share from its place on an axis of nines, with the digits that the place has.
function percentAt(place) {
  return `${(100 * (1 - 10 ** -place)).toFixed(Math.max(1, Math.ceil(place)))} %`;
}

function hoverValue(axis, name) {
  if (axis.scale === "nines") return "%{customdata}";
  if (axis.labels.length > 0) return "";
  if (axis.si_unit === "s") return `%{${name}:.3~s}s`;
  return name === "x" ? "%{x:,.4~r}" : "%{y:,.4~s}";
}

function methodTraces(spec, series, shown) {
  const ink = inkColour(series.ink);
  const vertical = (series.side === "right" ? spec.right : spec.y)[series.panel];
  const trace = {
    name: plainText(series.name), x: series.x, y: series.y, yaxis: methodAxisKey("y", methodAxisNumber(spec, series)),
    legendgroup: series.name, showlegend: !shown.has(series.name),
    hovertemplate: `${[hoverValue(spec.x, "x"), hoverValue(vertical, "y")].filter(Boolean).join(": ")}<extra>%{fullData.name}</extra>`,
  };
  if (vertical.scale === "nines") trace.customdata = Array.from(series.y, percentAt);
  shown.add(series.name);
  if (series.style === "bars") return [{ ...trace, type: "bar", marker: { color: ink } }];
  if (series.style === "points") return [{ ...trace, type: series.x.length > 4000 ? "scattergl" : "scatter", mode: "markers", cliponaxis: false, marker: { color: ink, size: series.x.length > 100 ? 4 : 7 } }];
  const line = {
    ...trace, type: "scatter", mode: series.style === "line" && series.x.length <= 32 ? "lines+markers" : "lines",
    line: { color: ink, width: 1.6, dash: DASHES[series.ink.dash], shape: series.style === "steps" ? "hv" : "linear" }, marker: { color: ink, size: 6 },
  };
  if (series.faint_from === null) return [line];
  const part = (from, to) => ({ ...line, x: line.x.slice(from, to), y: line.y.slice(from, to), customdata: line.customdata && line.customdata.slice(from, to) });
  return [part(0, series.faint_from), { ...part(Math.max(series.faint_from - 1, 0)), showlegend: false, opacity: 0.4 }];
}

function methodFigure(data, element) {
  const spec = data.figures[element.dataset.figure];
  const shown = new Set();
  const layout = baseLayout(element);
  const narrow = isNarrow(element);
  const panels = spec.y.length;
  // What lies between two panels and above each, as shares of the whole, is as high however many there are.
  const gap = panels > 1 ? 0.12 / panels : 0;
  const above = spec.headings.length > 0 ? 0.08 / panels : 0;
  layout.xaxis = { ...methodAxis(spec.x, narrow), anchor: methodAxisKey("y", panels) };
  spec.y.forEach((axis, index) => {
    const height = 1 / panels;
    const top = 1 - index * height;
    const domain = [top - height + (index < panels - 1 ? gap : 0), top - above];
    layout[methodAxisKey("yaxis", index + 1)] = { ...methodAxis(axis, narrow), domain };
    if (spec.right.length > 0) {
      const under = methodAxisKey("y", index + 1);
      layout[methodAxisKey("yaxis", panels + index + 1)] = { ...methodAxis(spec.right[index], narrow), overlaying: under, side: "right", showgrid: false, anchor: "x" };
    }
  });
  if (spec.right.length > 0) layout.margin.r = narrow ? 52 : 72;
  layout.annotations = spec.headings.map((heading, index) => ({
    text: `<b>${plainText(heading)}</b>`, showarrow: false, xref: "paper", x: 0, xanchor: "left",
    yref: "paper", y: layout[methodAxisKey("yaxis", index + 1)].domain[1], yanchor: "bottom",
  }));
  roomForLegend(element, spec.series.map((series) => series.name), layout);
  layout.barmode = "group";
  layout.showlegend = true;
  // Points are drawn too small for a legend.
  layout.legend.itemsizing = "constant";
  return { traces: spec.series.flatMap((series) => methodTraces(spec, series, shown)), layout };
}
