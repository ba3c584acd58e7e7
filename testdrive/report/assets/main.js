// Draws every plot of the page, redraws them when a choice or the theme changes, and keeps time axes together.

const FIGURES = {
  latency: latencyFigure, offsets: offsetsFigure, "io-weighted": ioWeightedFigure,
  "latency-weighted": latencyWeightedFigure, lateness: latenessFigure, power: powerFigure,
  rates: ratesFigure, mix: mixFigure, sizes: sizesFigure, places: placesFigure, hot: hotFigure, growth: growthFigure,
  arrivals: arrivalsFigure, "in-flight": inFlightFigure, "statement-latency": statementLatencyFigure,
  "opcode-latency": opcodeLatencyFigure, "trim-streams": trimStreamsFigure,
  method: methodFigure,
};
const choices = {};
let pageData = null;
let following = false;

function plots() {
  return Array.from(document.querySelectorAll(".plot"));
}

async function draw(element) {
  const { traces, layout } = FIGURES[element.dataset.plot](pageData, element, choices);
  await Plotly.react(element, traces, layout, plotConfig(element.dataset.file));
  if (!element.dataset.drawn) {
    element.on("plotly_relayout", (change) => {
      if (element.dataset.plot === "places") refinePlaces(element, change);
      follow(element, change);
    });
    element.dataset.drawn = "true";
  }
}

// What is folded has no width to draw for, and waits until it is opened.
function inSight(element) {
  return element.closest("details:not([open])") === null;
}

async function drawAll(chosen = plots()) {
  for (const element of chosen.filter(inSight)) {
    await draw(element);
    // A breath after each, so that the page scrolls and answers while plots further down are still being drawn.
    await new Promise((resolve) => { setTimeout(resolve, 0); });
  }
}

// Plots with the same axis of time: all of a report's, and those of a statement that say so.
function timeGroup(element) {
  return element.dataset.time || (["latency", "offsets", "power"].includes(element.dataset.plot) ? "report" : null);
}

const FOLLOWED_UP = ["latency", "statement-latency"];

// A zoom in time on one plot is made on all, so that the same scales stay the same.
async function follow(source, change) {
  const group = timeGroup(source);
  if (following || group === null) return;
  const keys = Object.keys(change);
  const upwards = FOLLOWED_UP.includes(source.dataset.plot);
  if (!keys.some((key) => key.startsWith("xaxis") || (key.startsWith("yaxis.") && upwards))) return;
  following = true;
  try {
    const reset = keys.includes("xaxis.autorange") && source.dataset.plot === "places";
    const range = reset ? placesRange(subjectOf(pageData, source)).x : source.layout.xaxis.range.slice();
    const time = { "xaxis.range": range };
    const both = { ...time, "yaxis.range": source.layout.yaxis.range.slice() };
    for (const element of plots()) {
      if (element === source || !element.dataset.drawn || timeGroup(element) !== group) continue;
      if (upwards && element.dataset.plot === source.dataset.plot) await Plotly.relayout(element, both);
      else await Plotly.relayout(element, time);
    }
  } finally {
    following = false;
  }
}

function listenToChoices() {
  for (const field of document.querySelectorAll("fieldset[data-choice]")) {
    const name = field.dataset.choice;
    const read = () => { choices[name] = field.querySelector("input:checked").value; };
    read();
    field.addEventListener("change", () => {
      read();
      drawAll(plots().filter((element) => (element.dataset.choices || "").split(" ").includes(name)));
    });
  }
}

function listenToFolding() {
  for (const part of document.querySelectorAll("details")) {
    part.addEventListener("toggle", () => {
      if (part.open && !printing) drawAll(plots().filter((element) => part.contains(element)));
    });
  }
}

// As the style sheet has it for paper, which is not in force yet when the plots are drawn for it.
function paperHeight(element) {
  if (element.dataset.plot === "latency") return element.classList.contains("with-trims") ? 432 : 256;
  if (element.dataset.plot === "method") return element.closest(".pair") ? 336 : 108 + 180 * Number(element.dataset.panels);
  return { offsets: 224, power: 200, rates: 340, mix: 230, places: 300, growth: 250, "statement-latency": 250, "trim-streams": 150 }[element.dataset.plot] || 336;
}

function listenToPrinting() {
  const opened = [];
  const redraw = () => {
    for (const element of plots()) {
      // What was folded is drawn for paper only: on the screen it waits until it is opened.
      if (!element.dataset.drawn && !printing) continue;
      const { traces, layout } = FIGURES[element.dataset.plot](pageData, element, choices);
      // Drawn for the width of an A4 sheet: nothing redraws once the print has begun.
      if (printing) Object.assign(layout, { autosize: false, width: element.closest(".pair") ? 335 : 690, height: paperHeight(element) });
      else Object.assign(layout, { autosize: true, width: undefined, height: undefined });
      Plotly.react(element, traces, layout, plotConfig(element.dataset.file));
    }
  };
  window.addEventListener("beforeprint", () => {
    printing = true;
    for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; opened.push(part); }
    redraw();
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    for (const part of opened.splice(0)) part.open = false;
    redraw();
  });
}

async function start() {
  const status = document.getElementById("status");
  try {
    [pageData] = await Promise.all([unpackData(), loadPlotly()]);
    listenToChoices();
    listenToPrinting();
    listenToFolding();
    await drawAll();
    darkScreen.addEventListener("change", () => drawAll());
    document.documentElement.dataset.ready = "true";
    status.remove();
  } catch (failure) {
    status.className = "failure";
    status.textContent = `The plots could not be drawn: ${failure.message}. The tables are complete; the figures folder beside this page has the plots as images.`;
    throw failure;
  }
}

start();
