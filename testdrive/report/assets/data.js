// Unpacks what the page carries: the data (a JSON head and a body of arrays) and Plotly, both gzipped and in base64.

async function inflate(id) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the plots (it has no DecompressionStream)");
  }
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

function withArrays(value, buffer, base) {
  if (Array.isArray(value)) return value.map((item) => withArrays(item, buffer, base));
  if (value === null || typeof value !== "object") return value;
  if (value.array) {
    const [start, length, type, shape] = value.array;
    const flat = new TYPES[type](buffer, base + start, length);
    if (shape.length === 1) return flat;
    const [rows, columns] = shape;
    return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withArrays(item, buffer, base)]));
}

async function unpackData() {
  const buffer = await inflate("page-data");
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return withArrays(head, buffer, 4 + length);
}

async function loadPlotly() {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await inflate("plotly-source"));
  document.head.append(script);
}
