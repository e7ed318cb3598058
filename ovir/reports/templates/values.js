"use strict";
// Elements and texts. Nothing here, or in the other scripts, makes HTML of a text: elements get their text as text.

const data = JSON.parse(document.getElementById("data").textContent);

/** Return a new element with attributes and children; a child that is a text stays a text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return the source of a library, which the page has compressed. */
async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

const TONES = {
  error: "bad", warning: "warn", info: "info", beyond: "bad", within: "good", first: "bad", "first, largest": "bad", largest: "warn", "not compared": "plain",
  added: "good", removed: "bad", replaced: "warn", moved: "info", changed: "info", affected: "plain",
  agrees: "good", known: "info", refuses: "warn", differs: "bad", crashes: "bad",
};

/** Return the layer with a number, with names for the fields of its record. */
function layerAt(number) {
  const record = data.layers.records[number];
  if (record === undefined) return null;
  const [id, key, type, version, model, line, inputs, outputs, attributes] = record;
  return { number, id, key, type, version, model: data.layers.models[model], line, inputs, outputs, attributes };
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Return a real number with four significant digits. */
function realText(value) {
  if (typeof value === "string") return value;
  if (value === 0 || Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) {
    const [digits, power] = value.toExponential(3).split("e");
    return `${digits.replace(/\.?0+$/, "")}e${power}`;
  }
  return value.toPrecision(4).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

function bytesText(value) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (value >= 1000 && power < units.length - 1) {
    value /= 1000;
    power += 1;
  }
  return power === 0 ? `${value} bytes` : `${value.toFixed(1)} ${units[power]}`;
}

const FORMATS = {
  count: (value) => grouped.format(value),
  real: realText,
  ms: (value) => value.toFixed(3),
  bytes: bytesText,
  share: (value) => `${(100 * value).toFixed(1)} %`,
  cosine: (value) => value.toFixed(6),
  decibels: (value) => (typeof value === "string" ? value : value.toFixed(1)),
};

const isNumeric = (kind) => kind in FORMATS;

/** Return the text of a cell, which is also what a search looks at. */
function cellText(kind, value) {
  if (value === null) return "";
  if (kind === "outcome") return value.text;
  if (kind === "layer" && typeof value === "number") return layerAt(value).key;
  return isNumeric(kind) && typeof value === "number" ? FORMATS[kind](value) : String(value);
}

/** Return the parts of a name: its scope and its end, which is shown in another color. */
function nameParts(text) {
  const last = text.lastIndexOf(text.includes("/") ? "/" : ".", text.length - 2) + 1;
  return [make("span", { class: "scope" }, text.slice(0, last)), text.slice(last)];
}

/** Return an operation type with a color of its own. */
function typeElement(text) {
  let hue = 0;
  for (const letter of text) hue = (hue * 31 + letter.codePointAt(0)) % 360;
  return make("span", { class: "type", style: `--hue: ${hue}` }, text);
}

const tagElement = (text, tone = text) => make("span", { class: `tag tone-${TONES[tone] ?? "plain"}` }, text);
const linkElement = (href, content) => (href === undefined ? content : make("a", { href }, content));

/** Return the content of a cell. */
function cellElement(kind, value) {
  const text = cellText(kind, value);
  if (value === null) return make("span", { class: "x-note" }, isNumeric(kind) || kind === "outcome" ? "–" : "");
  if (kind === "outcome") return linkElement(value.href, tagElement(text, value.status));
  if (kind === "layer" || kind === "name" || kind === "path") return make("span", { class: "name", title: text }, ...nameParts(text));
  if (kind === "type") return typeElement(text);
  if (kind === "tag") return text === "" ? make("span") : tagElement(text);
  if (kind === "share") {
    return make("span", { class: "share" }, make("i", {}, make("i", { style: `width: ${(100 * value).toFixed(2)}%` })), make("b", {}, text));
  }
  return make("span", {}, text);
}

/** Return a link to a layer, or the name of one that the page does not have. */
function layerLink(layer) {
  if (typeof layer === "string") return make("span", { class: "lost" }, layer);
  return make("a", { href: `#layer:${layer}` }, layerAt(layer).key || "(no name)");
}
