// Power in steps, and the temperature on an axis of its own where the drive tells it.

// All drives have the same scale, as everywhere else.
function mostWatts(data) {
  const measured = Object.values(data.subjects).filter((subject) => subject.power);
  return measured.flatMap((subject) => Array.from(subject.power.watts)).reduce((most, watts) => (watts > most ? watts : most), 0);
}

function powerFigure(data, element) {
  const subject = data.subjects[element.dataset.subject];
  const { edges, watts, celsius } = subject.power;
  const layout = baseLayout(element);
  // A step that nobody measured is not a number, and a gap.
  const steps = Array.from(watts);
  const traces = [{
    type: "scatter", mode: "lines", name: "power", x: Array.from(edges), y: [...steps, steps[steps.length - 1]],
    line: { color: inkColour(data.opcodes.write), width: 1.5, shape: "hv" },
    hovertemplate: "from %{x:.1f} s: %{y:.2f} W<extra></extra>",
  }];
  layout.xaxis = { ...baseAxis("time since the start (s)"), range: [data.scales.time.low / 1e9, data.scales.time.high / 1e9] };
  layout.yaxis = { ...baseAxis("power (W)"), rangemode: "tozero", range: [0, mostWatts(data) * 1.1 || 1] };
  if (celsius) {
    traces.push({
      type: "scatter", mode: "lines", name: "temperature", x: Array.from(edges).slice(1), y: Array.from(celsius), yaxis: "y2",
      line: { color: colour("line-p99"), width: 1.5, dash: "dot" }, hovertemplate: "%{x:.1f} s: %{y:.1f} °C<extra></extra>",
    });
    layout.yaxis2 = { ...baseAxis("temperature (°C)"), overlaying: "y", side: "right", showgrid: false, tickmode: "auto", nticks: 5 };
    layout.margin.r = 62;
  }
  layout.showlegend = Boolean(celsius);
  return { traces, layout };
}
