// Addresses against time, drawn again from finer cells wherever it is zoomed into.

const PLACES_COLUMNS = 600;
const PLACES_ROWS = 220;

// The cells of an opcode as the page carries them: how many each column holds, and rows as steps. Unpacked once.
function unpackCells(cells) {
  if (cells.column) return cells;
  const length = cells.ios.length;
  const column = new Uint32Array(length);
  const first = new Uint32Array(length);
  let at = 0;
  cells.in_column.forEach((count, index) => {
    let row = 0;
    for (let end = at + count; at < end; at += 1) {
      row += cells.step[at];
      column[at] = index;
      first[at] = row;
    }
  });
  return Object.assign(cells, { column, first });
}

function axisCells(axis, bits, range, scale) {
  const width = (axis.high - axis.low) / 2 ** bits;
  const from = Math.max(Math.floor((range[0] * scale - axis.low) / width), 0);
  const to = Math.min(Math.ceil((range[1] * scale - axis.low) / width), 2 ** bits);
  return { width, from: Math.min(from, 2 ** bits - 1), to: Math.max(to, from + 1) };
}

// The axis of addresses has stretches without the gaps between them: where an address is, and which one is where.
function addressAt(segments, position) {
  const inside = segments.filter((segment) => segment.at <= position);
  const segment = inside.length > 0 ? inside[inside.length - 1] : segments[0];
  return segment.low + position - segment.at;
}

function niceStep(length, count) {
  const rough = length / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= rough);
}

// Round addresses within each stretch that is in sight, and the begin of each.
function addressTicks(segments, range, bytes) {
  const length = range[1] - range[0];
  const step = niceStep(length, 6);
  const ticks = [];
  const add = (position, address) => {
    if (ticks.length === 0 || position - ticks[ticks.length - 1].position > length / 22) ticks.push({ position, address });
  };
  for (const segment of segments) {
    const at = segment.at / bytes;
    const low = segment.low / bytes;
    const from = Math.max(range[0], at);
    const to = Math.min(range[1], at + segment.high / bytes - low);
    if (from >= to) continue;
    add(from, low + from - at);
    for (let round = Math.ceil((low + from - at) / step) * step; round <= low + to - at; round += step) add(at + round - low, round);
  }
  const digits = Math.max(0, Math.ceil(-Math.log10(step)) + 1);
  return { tickvals: ticks.map(({ position }) => position), ticktext: ticks.map(({ address }) => Number(address.toFixed(digits)).toLocaleString("en", { maximumFractionDigits: digits })) };
}

function wordedGaps(gaps, room) {
  const worded = [];
  for (const gap of gaps) {
    const last = worded[worded.length - 1];
    if (last !== undefined && gap.at - last.at < room) last.left += gap.left;
    else worded.push({ ...gap });
  }
  return worded;
}

function gapLines(segments, range, bytes, unit) {
  const gaps = segments.slice(1).map((segment, index) => ({ at: segment.at / bytes, left: (segment.low - segments[index].high) / bytes }));
  return {
    shapes: gaps.map(({ at }) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at, line: { color: colour("quiet"), width: 1, dash: "dash" } })),
    // Gaps may lie so close to each other that there is room for one line of words: it has what they leave out together.
    annotations: wordedGaps(gaps, (range[1] - range[0]) / 18).map(({ at, left }) => ({
      xref: "paper", x: 1, y: at, xanchor: "right", yanchor: "bottom", showarrow: false, font: { size: 10, color: colour("quiet") },
      text: `${Number(left.toPrecision(3)).toLocaleString("en")} ${unit} left out`,
    })),
  };
}

// The smallest power of two by which so many cells become few enough to be drawn.
function shiftFor(cells, most) {
  let shift = 0;
  while (cells / 2 ** shift > most) shift += 1;
  return shift;
}

function windowOf(axis, bits, range, scale, most) {
  const { width, from, to } = axisCells(axis, bits, range, scale);
  const shift = shiftFor(to - from, most);
  const begin = Math.floor(from / 2 ** shift);
  const count = Math.ceil(to / 2 ** shift) - begin;
  const edge = (index) => (axis.low + (begin + index) * 2 ** shift * width) / scale;
  return { shift, begin, count, cell: 2 ** shift * width, edges: Float64Array.from({ length: count + 1 }, (_, index) => edge(index)) };
}

// Each I/O counts once in every row that it touches: starts less ends, summed up the rows.
function placesRaster(cells, columns, rows) {
  const { column, first, more, ios } = unpackCells(cells);
  const change = Array.from({ length: rows.count + 1 }, () => new Float64Array(columns.count));
  for (let at = 0; at < ios.length; at += 1) {
    const x = (column[at] >> columns.shift) - columns.begin;
    if (x < 0 || x >= columns.count) continue;
    const low = (first[at] >> rows.shift) - rows.begin;
    const high = ((first[at] + more[at]) >> rows.shift) - rows.begin;
    if (high < 0 || low >= rows.count) continue;
    change[Math.max(low, 0)][x] += ios[at];
    change[Math.min(high + 1, rows.count)][x] -= ios[at];
  }
  for (let y = 1; y < rows.count; y += 1) for (let x = 0; x < columns.count; x += 1) change[y][x] += change[y - 1][x];
  return change.slice(0, rows.count);
}

function filledShare(counts) {
  const filled = counts.reduce((sum, row) => row.reduce((part, count) => part + (count > 0 ? 1 : 0), sum), 0);
  return filled / (counts.length * counts[0].length);
}

function addressUnit(high) {
  return [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([bytes]) => high >= bytes) || [1, "B"];
}

function placesUnit({ places: { segments } }) {
  return addressUnit(segments[segments.length - 1].high);
}

function placesRange(subject) {
  const { time, length_bytes: length } = subject.places;
  const [bytes] = placesUnit(subject);
  return { x: [time.low / subject.time.unit_ns, time.high / subject.time.unit_ns], y: [0, length / bytes] };
}

// What is in sight: all of it, until something was zoomed into.
function placesView(element, subject) {
  return element.placesView || placesRange(subject);
}

function placesFigure(data, element, choices) {
  const subject = subjectOf(data, element);
  const { places } = subject;
  const [bytes, unit] = placesUnit(subject);
  const view = placesView(element, subject);
  const narrow = isNarrow(element);
  const columns = windowOf(places.time, places.column_bits, view.x, subject.time.unit_ns, narrow ? PLACES_COLUMNS / 2 : PLACES_COLUMNS);
  const rows = windowOf({ low: 0, high: places.length_bytes }, places.row_bits, view.y, bytes, PLACES_ROWS);
  const shown = present(places.opcodes).filter((name) => choices.places === "all" || choices.places === subject.words[name]);
  const gapped = places.segments.length > 1 || places.segments[0].low > 0;
  // The address of each row, in words: on the axis it is not that of the place where gaps are left out.
  const said = Array.from({ length: rows.count }, (_, row) => {
    const address = addressAt(places.segments, ((rows.edges[row] + rows.edges[row + 1]) / 2) * bytes) / bytes;
    return Array(columns.count).fill(`${Number(address.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 4 })} ${unit}`);
  });
  const traces = shown.map((name) => {
    const counts = placesRaster(places.opcodes[name], columns, rows);
    const ink = opcodeInk(data, name);
    // Where hardly a cell is empty, few I/Os must be pale, or many of them would not stand out.
    const pale = filledShare(counts) > 0.3 ? 0.1 : 0.45;
    return {
      type: "heatmap", x: columns.edges, y: rows.edges, z: logCounts(counts), customdata: counts.map((row) => Array.from(row)), text: said, name: subject.words[name],
      hoverongaps: false, showscale: false, zmin: 0, zmax: Math.log10(Math.max(greatest(counts), 2)), colorscale: [[0, withAlpha(ink, pale)], [1, withAlpha(ink, 1)]],
      hovertemplate: `%{x:.5~r} ${subject.time.unit}, %{text}<br>%{customdata:,} ${subject.words[name]}<extra></extra>`,
    };
  });
  for (const name of shown) {
    traces.push({
      type: "scatter", mode: "markers", x: [null], y: [null], name: subject.words[name], hoverinfo: "skip", marker: { symbol: "square", size: 11, color: opcodeInk(data, name) },
    });
  }
  const layout = { ...baseLayout(element), showlegend: true };
  layout.legend.itemclick = false;
  layout.legend.itemdoubleclick = false;
  layout.xaxis = { ...timeAxis(subject, element), range: view.x.slice() };
  layout.yaxis = { ...baseAxis(`address (${unit})`), range: view.y.slice() };
  if (gapped) {
    Object.assign(layout.yaxis, addressTicks(places.segments, view.y, bytes));
    Object.assign(layout, gapLines(places.segments, view.y, bytes, unit));
  }
  tellCell(element, columns.cell, rows.cell);
  return { traces, layout };
}

// The size of the cells in sight stands under the plot, so that nobody takes a cell for an I/O.
function tellCell(element, ns, bytes) {
  const place = element.parentElement.querySelector(".cell-size");
  if (!place) return;
  place.textContent = `A cell is now ${durationWords(ns)} by ${sizeWords(bytes)}.`;
}

function durationWords(ns) {
  const units = [["d", 86400e9], ["h", 3600e9], ["min", 60e9], ["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
  const [name, length] = units.find(([, each]) => ns >= 2 * each) || units[units.length - 1];
  return `${Number((ns / length).toPrecision(3))} ${name}`;
}

function sizeWords(bytes) {
  const [length, name] = addressUnit(bytes);
  return `${Number((bytes / length).toPrecision(3))} ${name}`;
}

// After a zoom: draw what is in sight from cells as fine as there are. A double click shows all of it again.
async function refinePlaces(element, change) {
  const keys = Object.keys(change);
  if (!keys.some((key) => /^[xy]axis\./.test(key))) return;
  const whole = placesRange(subjectOf(pageData, element));
  const view = { x: element.layout.xaxis.range.slice(), y: element.layout.yaxis.range.slice() };
  if (change["xaxis.autorange"]) view.x = whole.x;
  if (change["yaxis.autorange"]) view.y = whole.y;
  element.placesView = view;
  await draw(element);
}
