// Colours of the plots follow the page's: light, dark, or paper.

const darkScreen = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function isDark() {
  return darkScreen.matches && !printing;
}

function paint(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// On paper the style sheet of the screen may still be in force while the script draws, so these are given here too.
const PAPER = {
  ink: "#000000", quiet: "#444444", paper: "#ffffff", grid: "#dddddd", rule: "#bbbbbb",
  "density-low": "#d3e3f1", "density-high": "#08306b", "line-max": "#c84800", "line-p99": "#7a5200", "line-mean": "#000000",
};

function colour(name) {
  return printing ? PAPER[name] : paint(name);
}

function inkColour(ink) {
  return isDark() ? ink.dark : ink.light;
}

function withAlpha(hex, alpha) {
  const part = (at) => parseInt(hex.slice(at, at + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${alpha})`;
}

// Plotly reads a small HTML in its texts; a drive's name must stay text.
function plainText(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function isNarrow(element) {
  return element.clientWidth < 560 || (printing && element.closest(".pair") !== null);
}

function baseAxis(title) {
  return {
    title: { text: title, standoff: 8 },
    color: colour("quiet"),
    gridcolor: colour("grid"),
    linecolor: colour("rule"),
    zeroline: false,
    showline: true,
    ticks: "outside",
    ticklen: 4,
    tickcolor: colour("rule"),
  };
}

// Seconds with an SI prefix: 10 µs, 1 ms, 2 s, at any zoom.
function latencyAxis(title) {
  return { ...baseAxis(title), type: "log", exponentformat: "SI", tickformat: "~s", ticksuffix: "s", dtick: 1, minor: { ticks: "outside", ticklen: 2, tickcolor: colour("rule") } };
}

function baseLayout(element) {
  const narrow = isNarrow(element);
  return {
    font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12, color: colour("ink") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    // Where there is no room for both in a row, the legend stands below the buttons.
    margin: { l: narrow ? 58 : 76, r: narrow ? 10 : 24, t: element.clientWidth < 760 ? 58 : 34, b: 46 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("quiet"), activecolor: colour("ink") },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", xanchor: "left", bgcolor: "rgba(0,0,0,0)" },
    hovermode: "closest",
    // Near a line its value is shown, elsewhere the cell's count: with the default of 20 pixels hardly any cell would be.
    hoverdistance: 6,
    hoverlabel: { font: { family: getComputedStyle(document.body).fontFamily } },
    dragmode: "zoom",
  };
}

// The legend stands on the plot, in as many rows as its names need, and must not reach up into the buttons.
function roomForLegend(element, names, layout) {
  const needed = Array.from(new Set(names), (name) => 62 + 6.6 * name.length).reduce((sum, width) => sum + width, 0);
  const width = printing ? (element.closest(".pair") ? 335 : 690) : element.clientWidth;
  const room = width - layout.margin.l - layout.margin.r;
  if (needed > room - 200) layout.margin.t = 32 + 20 * Math.ceil(needed / room);
}

function plotConfig(name) {
  return {
    displaylogo: false,
    responsive: true,
    scrollZoom: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { filename: name, scale: 2 },
  };
}
