// The drawer beside the page: the detail of a row, and layers with links to the layers around them.

const MOST_READERS = 60;
const drawer = document.getElementById("drawer");

/** Return by layer which inputs read its outputs: pairs of an output and the number of the reader. */
const readersOf = (() => {
  let readers = null;
  return (number) => {
    if (readers === null) {
      readers = new Map();
      data.layers.records.forEach((record, reader) => {
        for (const input of record[6]) {
          if (input === null || typeof input[0] !== "number") continue;
          if (!readers.has(input[0])) readers.set(input[0], []);
          readers.get(input[0]).push([input[1], reader]);
        }
      });
    }
    return readers.get(number) ?? [];
  };
})();

const part = (title, ...children) => make("div", { class: "part" }, title === "" ? null : make("h3", {}, title), ...children);

function pairsElement(rows) {
  return make("table", { class: "pairs" }, ...rows.map(([name, ...values]) => make("tr", {}, make("th", { scope: "row" }, name),
    ...values.map((value, index) => make("td", { class: values.length < 2 ? null : index === 0 ? "old" : "new" }, value)))));
}

// ----- source lines

const XML = /(<!--.*?-->)|(<[/?]?[\w:.-]+|[/?]?>)|([\w:.-]+)(?==["'])|("[^"]*"|'[^']*')/g;

/** Return a line of XML in pieces with the class of their color. */
function xmlPieces(line) {
  const pieces = [];
  let end = 0;
  for (const match of line.matchAll(XML)) {
    if (match.index > end) pieces.push(line.slice(end, match.index));
    const kind = ["x-note", "x-tag", "x-name", "x-text"][match.slice(1).findIndex((group) => group !== undefined)];
    pieces.push(make("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  pieces.push(line.slice(end));
  return pieces;
}

function excerptElement({ file, line, column, title }, tone) {
  const run = data.sources[file].find(([first, lines]) => first <= line && line < first + lines.length);
  const [first, lines] = run, from = Math.max(line - 6, first), to = Math.min(line + 6, first + lines.length - 1);
  const shown = lines.slice(from - first, to - first + 1);
  const indent = Math.min(...shown.filter((text) => text.trim() !== "").map((text) => text.length - text.trimStart().length));
  const list = make("ol");
  for (let number = from; number <= to; number++) {
    const marked = number === line ? `marked tone-${tone}` : null;
    list.append(make("li", { value: number, class: marked, "aria-current": number === line }, make("span", {}, ...xmlPieces(lines[number - first].slice(indent)))));
  }
  const place = `${file}:${line}${column === null ? "" : `:${column}`}`;
  return part(title, make("div", { class: "place" }, place), make("div", { class: "source", tabindex: "0" }, list));
}

// ----- the documentation of codes

/** Return the elements of a line of Markdown. */
function inlineElements(text) {
  return text.split(/(`[^`]*`|https:[^\s)]+)/).map((word) => {
    if (word.startsWith("https:")) return linkElement(word, word);
    return word.startsWith("`") ? make("code", {}, word.slice(1, -1)) : word.replace(/\*\*?/g, "");
  });
}

/** Return the element of a paragraph, a heading, a list or a table. */
function blockElement(text) {
  const lines = text.split("\n");
  if (text.startsWith("#")) return make("h3", {}, text.replace(/^#+ /, ""));
  if (lines.every((line) => line.startsWith("- "))) return make("ul", {}, ...lines.map((line) => make("li", {}, ...inlineElements(line.slice(2)))));
  if (!text.startsWith("|")) return make("p", {}, ...inlineElements(text));
  const rows = lines.filter((line) => !line.startsWith("|--")).map((line) => line.slice(2, -2).split(" | "));
  return make("table", { class: "pairs" }, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, ...inlineElements(cell))))));
}

/** Return the elements of the little Markdown that reports and the documentation of codes use, without its title. */
function markdownElement(text) {
  const box = make("div", { class: "markdown" });
  text.split(/^```.*$/m).forEach((piece, index) => {
    if (index % 2 === 1) return box.append(make("pre", {}, piece.trim()));
    for (const paragraph of piece.split(/\n\s*\n/).map((lines) => lines.trim())) {
      if (paragraph !== "" && !text.startsWith(paragraph)) box.append(blockElement(paragraph));
    }
  });
  return box;
}

const BLOCKS = {
  text: ({ title, form, text }) => part(title, make("p", { class: form }, text)),
  markdown: ({ text }) => part("", markdownElement(text)),
  link: ({ text, href }) => part("", linkElement(href, text)),
  pairs: ({ title, rows }) => part(title, pairsElement(rows)),
  excerpt: excerptElement,
  explanation: ({ code }) => {
    const { meaning, text } = data.codes[code];
    return part("", make("details", {}, make("summary", {}, `${code}: ${meaning}`), markdownElement(text)));
  },
  chart: (chart) => {
    const figure = make("figure", { class: "chart part" });
    showChart(figure, chart);
    return figure;
  },
};

// ----- layers

function endElement(layer, note) {
  const type = typeof layer === "number" ? typeElement(layerAt(layer).type) : null;
  return make("li", {}, layerLink(layer), type, make("small", {}, note));
}

/** Return a layer with its neighbors: what it reads, what it is, and what reads it. */
function neighborsElement(layer) {
  const inputs = layer.inputs.map((input, index) => {
    if (input === null) return make("li", {}, make("span", { class: "lost" }, `input ${index}: nothing feeds it`));
    const [source, output] = input;
    return endElement(source, typeof source === "number" ? layerAt(source).outputs[output] ?? "" : "");
  });
  const found = readersOf(layer.number);
  const readers = found.slice(0, MOST_READERS).map(([output, reader]) => endElement(reader, layer.outputs.length > 1 ? `reads output ${output}` : ""));
  if (found.length > MOST_READERS) readers.push(make("li", {}, `and ${grouped.format(found.length - MOST_READERS)} more`));
  const outputs = make("small", {}, layer.outputs.join(", "));
  return part("Neighbors",
    inputs.length > 0 ? make("ul", { class: "ends", "aria-label": "Inputs" }, ...inputs) : null,
    inputs.length > 0 ? make("div", { class: "arrow", "aria-hidden": "true" }, "↓") : null,
    make("div", { class: "this" }, typeElement(layer.type), outputs),
    readers.length > 0 ? make("div", { class: "arrow", "aria-hidden": "true" }, "↓") : null,
    readers.length > 0 ? make("ul", { class: "ends", "aria-label": "Readers" }, ...readers) : null);
}

/** Return what the tables of the page say about a layer. */
function rowsAbout(number) {
  return tables.filter((table) => table.layerColumn >= 0).flatMap((table) => {
    const rows = table.rows.map((row, index) => [row, index]).filter(([row]) => row[table.layerColumn] === number).slice(0, 20);
    return rows.map(([row, index]) => {
      const cells = table.columns.map(({ name, kind }, place) => [name, cellText(kind, row[place])]);
      const pairs = cells.filter(([, text], place) => place !== table.layerColumn && text !== "" && !REPEATED.has(table.columns[place].name));
      const title = table.details === null ? table.title : make("a", { href: `#row:${table.number}:${index}` }, table.title);
      return pairs.length > 0 ? make("div", { class: "part" }, make("h3", {}, title), pairsElement(pairs)) : null;
    });
  }).filter((element) => element !== null);
}

const REPEATED = new Set(["id", "operation", "output type"]); // the head of a layer has them

function layerElements(layer, isAlone) {
  const place = layer.line === null ? "" : `line ${layer.line}`;
  const facts = [`id ${layer.id}`, layer.version, place, layer.model].filter((text) => text !== "");
  const attributes = Object.entries(layer.attributes);
  return [
    isAlone ? null : part("Layer", layerLink(layer.number)),
    make("div", { class: "subtitle" }, typeElement(layer.type), ...facts.map((text) => make("span", {}, text))),
    isAlone ? make("div", {}, ...rowsAbout(layer.number)) : null,
    neighborsElement(layer),
    attributes.length > 0 ? part("Attributes", pairsElement(attributes)) : null,
  ];
}

// ----- opening and closing

function fill(heading, tag, ...elements) {
  const close = make("button", { type: "button", class: "close", "aria-label": "Close", title: "Close (Esc)" }, "✕");
  close.addEventListener("click", closeDrawer);
  drawer.replaceChildren(make("header", {}, make("h2", {}, heading, " ", tag), close), ...elements.filter((element) => element !== null));
  drawer.hidden = false;
  drawer.scrollTop = 0;
  drawer.style.scrollPaddingTop = `${drawer.firstElementChild.offsetHeight + 6}px`; // the title covers nothing
  document.body.classList.add("open");
  drawer.querySelector(".marked")?.scrollIntoView({ block: "nearest" });
}

function openRow(table, row) {
  const detail = table.details[row];
  const tone = TONES[detail.tag] ?? "plain";
  const layer = detail.layer === null ? null : layerAt(detail.layer);
  fill(detail.title, detail.tag === "" ? "" : tagElement(detail.tag), ...detail.blocks.map((block) => BLOCKS[block.kind](block, tone)),
    ...(layer === null ? [] : layerElements(layer, false)));
}

function openLayer(number) {
  const layer = layerAt(number);
  fill(make("span", { class: "mono" }, layer.key || "(no name)"), "", ...layerElements(layer, true));
}

function closeDrawer() {
  if (drawer.hidden) return;
  drawer.hidden = true;
  document.body.classList.remove("open");
  for (const table of tables) table.mark(-1);
  if (/^#(layer|row):/.test(location.hash)) history.replaceState(null, "", "#");
}

/** Go to a layer or a row, and show it at once: the next key starts from the row that is marked now. */
function visit(target) {
  if (target !== location.hash) history.pushState(null, "", target);
  followAddress();
}

/** Show what the address of the page names after its #, a layer or a row. */
function followAddress() {
  const [kind, first, second] = location.hash.slice(1).split(":");
  const isRow = kind === "row" && (tables[first]?.details?.[second] ?? null) !== null;
  const isLayer = kind === "layer" && layerAt(first) !== null;
  if (!isRow && !isLayer) return closeDrawer();
  for (const table of tables) {
    table.mark(isRow ? (table.number === Number(first) ? Number(second) : -1) : table.rows.findIndex((row) => row[table.layerColumn] === Number(first)));
  }
  if (isRow) openRow(tables[first], second);
  else openLayer(Number(first));
}
