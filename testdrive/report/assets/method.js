// Figures of the standard tests: panels and series as the page's data describes them.

const DASHES = { solid: "solid", dash: "dash", dot: "dot", dashdot: "dashdot", longdash: "longdash" };

function methodAxis(spec, narrow) {
  const axis = baseAxis(narrow ? spec.title.replace(/ \(.*\)$/, "") : spec.title);
  if (spec.scale === "log") {
    Object.assign(axis, { type: "log", dtick: 1, minor: { ticks: "outside", ticklen: 2, tickcolor: colour("rule") } });
  }
  const ends = [spec.low, spec.high];
  if (ends.every((end) => end !== null)) axis.range = spec.scale === "log" ? ends.map(Math.log10) : ends;
  else if (spec.scale !== "log" && spec.low === 0) axis.rangemode = "tozero";
  if (spec.labels.length > 0) Object.assign(axis, { tickmode: "array", tickvals: spec.labels.map((_, index) => index), ticktext: spec.labels });
  else if (spec.si_unit === "IOPS") axis.tickformat = "~s";
  else if (spec.si_unit) Object.assign(axis, { tickformat: "~s", ticksuffix: spec.si_unit, exponentformat: "SI" });
  return axis;
}

function methodTrace(spec, series, shown) {
  const ink = inkColour(series.ink);
  const trace = {
    name: plainText(series.name), x: series.x, y: series.y, yaxis: series.panel === 0 ? "y" : `y${series.panel + 1}`,
    legendgroup: series.name, showlegend: !shown.has(series.name),
    hovertemplate: `${spec.x.labels.length > 0 ? "" : "%{x:,.4~r}: "}%{y:,.4~s}${spec.y[series.panel].si_unit === "s" ? "s" : ""}<extra>%{fullData.name}</extra>`,
  };
  shown.add(series.name);
  if (series.style === "bars") return { ...trace, type: "bar", marker: { color: ink } };
  if (series.style === "points") return { ...trace, type: series.x.length > 4000 ? "scattergl" : "scatter", mode: "markers", marker: { color: ink, size: 4 } };
  return {
    ...trace, type: "scatter", mode: series.x.length <= 32 ? "lines+markers" : "lines",
    line: { color: ink, width: 1.6, dash: DASHES[series.ink.dash], shape: series.style === "steps" ? "hv" : "linear" }, marker: { color: ink, size: 6 },
  };
}

function methodFigure(data, element) {
  const spec = data.figures[element.dataset.figure];
  const shown = new Set();
  const layout = baseLayout(element);
  const narrow = isNarrow(element);
  const panels = spec.y.length;
  const last = panels > 1 ? `y${panels}` : "y";
  layout.xaxis = { ...methodAxis(spec.x, narrow), anchor: last };
  spec.y.forEach((axis, index) => {
    const height = 1 / panels;
    const top = 1 - index * height;
    layout[index === 0 ? "yaxis" : `yaxis${index + 1}`] = { ...methodAxis(axis, narrow), domain: [top - height + (index < panels - 1 ? 0.06 : 0), top] };
  });
  layout.barmode = "group";
  layout.showlegend = true;
  return { traces: spec.series.map((series) => methodTrace(spec, series, shown)), layout };
}
