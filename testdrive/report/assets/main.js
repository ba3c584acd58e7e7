// Draws every plot of the page, redraws them when a choice or the theme changes, and keeps time axes together.

const FIGURES = {
  latency: latencyFigure, offsets: offsetsFigure, "io-weighted": ioWeightedFigure,
  "latency-weighted": latencyWeightedFigure, lateness: latenessFigure,
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
    element.on("plotly_relayout", (change) => follow(element, change));
    element.dataset.drawn = "true";
  }
}

async function drawAll(chosen = plots()) {
  for (const element of chosen) {
    await draw(element);
    // A breath after each, so that the page scrolls and answers while plots further down are still being drawn.
    await new Promise((resolve) => { setTimeout(resolve, 0); });
  }
}

// A zoom in time on one drive is made on all, so that the same scales stay the same.
async function follow(source, change) {
  if (following || !["latency", "offsets"].includes(source.dataset.plot)) return;
  const keys = Object.keys(change);
  if (!keys.some((key) => key.startsWith("xaxis") || (key.startsWith("yaxis.") && source.dataset.plot === "latency"))) return;
  following = true;
  try {
    const time = { "xaxis.range": source.layout.xaxis.range.slice() };
    const both = { ...time, "yaxis.range": source.layout.yaxis.range.slice() };
    for (const element of plots()) {
      if (element === source || !element.dataset.drawn) continue;
      if (element.dataset.plot === "latency" && source.dataset.plot === "latency") await Plotly.relayout(element, both);
      else if (["latency", "offsets"].includes(element.dataset.plot)) await Plotly.relayout(element, time);
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

// As the style sheet has it for paper, which is not in force yet when the plots are drawn for it.
function paperHeight(element) {
  if (element.dataset.plot === "latency") return element.classList.contains("with-trims") ? 432 : 256;
  return element.dataset.plot === "offsets" ? 224 : 288;
}

function listenToPrinting() {
  const opened = [];
  const redraw = () => {
    for (const element of plots()) {
      if (!element.dataset.drawn) continue;
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
