// Tables that are sorted and searched, and that have elements only for the rows in sight.

const ROW = 34; // pixels, as --row in the styles
const BEYOND = 8; // rows that are drawn above and below what is in sight
const MOST_CHOICES = 8;
const LEAST = { text: 150, name: 170, path: 240, layer: 250, type: 130, tensor: 150, tag: 70, share: 150 }; // pixels
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

class DataTable {
  constructor(root, number) {
    const { columns, rows, details } = data.tables[number];
    Object.assign(this, { root, number, columns, rows, details, title: root.dataset.title });
    this.layerColumn = columns.findIndex((column) => column.kind === "layer");
    this.choiceColumn = columns.findIndex((column) => column.filtered);
    this.order = rows.map((_, index) => index);
    this.sorted = { column: -1, descending: false };
    this.words = [];
    this.choice = null;
    this.chosen = -1;
    this.drawn = null;
    if (rows.length === 0) {
      root.append(make("div", { class: "empty" }, root.dataset.empty));
      return;
    }
    this.build();
    this.update();
  }

  // ----- elements

  build() {
    const label = `Search ${this.title.toLowerCase()}`;
    this.search = make("input", { type: "search", placeholder: `${label} …`, "aria-label": label, autocomplete: "off", spellcheck: "false" });
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.chips = make("div", { class: "chips", role: "group", "aria-label": "Show only" });
    this.shown = make("span", { class: "shown", role: "status" });
    this.heads = make("div", { class: "heads", role: "row" }, ...this.columns.map((column, index) => this.headOf(column, index)));
    this.body = make("div", { class: "rows", role: "rowgroup" });
    this.grid = make("div", { class: "grid", role: "table", tabindex: "0", "aria-label": this.title }, this.heads, this.body);
    const widths = this.columns.map((column, index) => this.widthOf(column, index));
    const tracks = this.columns.map((column, index) => (grows(column) ? `minmax(${widths[index]}px, ${column.width}fr)` : `${widths[index]}px`));
    this.grid.style.setProperty("--columns", tracks.join(" "));
    this.grid.style.setProperty("--least", `${widths.reduce((sum, width) => sum + width, 0)}px`);
    this.grid.addEventListener("scroll", () => this.draw(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    this.search.addEventListener("keydown", (event) => this.onKey(event));
    this.body.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => this.draw()).observe(this.grid);
    const tools = make("div", { class: "tools" }, this.search, this.chips, this.shown);
    tools.hidden = this.rows.length < 8 && this.choiceColumn < 0;
    this.root.append(tools, this.grid);
    this.buildChips();
  }

  headOf(column, index) {
    const button = make("button", { type: "button", title: `Sort by ${column.name}` }, column.name);
    button.addEventListener("click", () => this.sort(index));
    return make("div", { role: "columnheader", class: isNumeric(column.kind) ? "right" : null, "aria-sort": "none" }, button);
  }

  /** Return the least width of a column in pixels; one of numbers or tags is as wide as its content. */
  widthOf(column, index) {
    const least = Math.max(LEAST[column.kind] ?? 0, 40 + textWidth(column.name));
    if (grows(column)) return Math.ceil(least);
    const step = Math.ceil(this.rows.length / 200);
    const widths = this.rows.filter((_, row) => row % step === 0).map((row) => textWidth(cellText(column.kind, row[index])));
    return Math.ceil(Math.max(least, 26 + Math.max(...widths) + (column.kind === "tag" ? 18 : 0)));
  }

  buildChips() {
    if (this.choiceColumn < 0) return;
    const counts = new Map();
    for (const row of this.rows) counts.set(row[this.choiceColumn], (counts.get(row[this.choiceColumn]) ?? 0) + 1);
    const choices = [...counts];
    if (choices.length < 2 || choices.length > MOST_CHOICES) return;
    for (const [value, count] of choices) {
      const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false" }, `${value} `, make("b", {}, grouped.format(count)));
      chip.addEventListener("click", () => this.choose(chip, value));
      this.chips.append(chip);
    }
  }

  // ----- what the reader does

  choose(chip, value) {
    this.choice = this.choice === value ? null : value;
    for (const other of this.chips.children) other.setAttribute("aria-pressed", String(other === chip && this.choice !== null));
    this.update();
  }

  find(text) {
    this.words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    this.update();
  }

  sort(column) {
    const numeric = isNumeric(this.columns[column].kind);
    const descending = this.sorted.column === column ? !this.sorted.descending : numeric;
    this.sorted = { column, descending };
    [...this.heads.children].forEach((head, index) => {
      head.setAttribute("aria-sort", index !== column ? "none" : descending ? "descending" : "ascending");
    });
    this.update();
  }

  onClick(event) {
    const row = event.target.closest(".row");
    if (row !== null) this.open(Number(row.dataset.row));
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || (event.target !== this.grid && event.target !== this.search)) return;
    if (this.order.length === 0) return;
    event.preventDefault();
    const place = Math.min(Math.max(this.order.indexOf(this.chosen) + step, 0), this.order.length - 1);
    this.reveal(place);
    this.open(this.order[place]);
  }

  open(row) {
    const target = this.targetOf(row);
    if (target !== null) location.hash = target;
  }

  /** Return the address of what a row opens; null if there is nothing. */
  targetOf(row) {
    if (this.details !== null && this.details[row] !== null) return `#row:${this.number}:${row}`;
    const layer = this.layerColumn < 0 ? null : this.rows[row][this.layerColumn];
    return typeof layer === "number" ? `#layer:${layer}` : null;
  }

  // ----- what is shown

  /** Mark a row as the one whose details are shown; -1 for none. */
  mark(row) {
    if (this.rows.length === 0 || this.chosen === row) return;
    this.chosen = row;
    this.drawn = null;
    this.draw();
  }

  /** Scroll to a row by its place in the order. */
  reveal(place) {
    const top = place * ROW, room = this.grid.clientHeight - this.heads.offsetHeight;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    if (top + ROW > this.grid.scrollTop + room) this.grid.scrollTop = top + ROW - room;
  }

  /** Return the texts that a search looks at, in lower case; they are made by the first search. */
  texts() {
    this.haystack ??= this.rows.map((row) => row.map((value, index) => cellText(this.columns[index].kind, value)).join("\n").toLowerCase());
    return this.haystack;
  }

  update() {
    let order = this.rows.map((_, index) => index);
    if (this.choice !== null) order = order.filter((row) => this.rows[row][this.choiceColumn] === this.choice);
    if (this.words.length > 0) {
      const texts = this.texts();
      order = order.filter((row) => this.words.every((word) => texts[row].includes(word)));
    }
    this.order = this.sortedRows(order);
    const all = grouped.format(this.rows.length), found = grouped.format(order.length);
    this.shown.textContent = order.length < this.rows.length ? `${found} of ${all}` : all;
    this.body.style.height = `${Math.max(order.length, 1) * ROW}px`;
    this.grid.setAttribute("aria-rowcount", order.length + 1);
    this.grid.scrollTop = 0;
    this.drawn = null;
    this.draw();
  }

  sortedRows(order) {
    const { column, descending } = this.sorted;
    if (column < 0) return order;
    const { kind } = this.columns[column];
    const keys = new Map(order.map((row) => [row, keyOf(kind, this.rows[row][column])]));
    const compare = isNumeric(kind) ? (one, other) => one - other : collator.compare;
    return order.sort((a, b) => {
      const one = keys.get(a), other = keys.get(b);
      if (one === null || other === null) return (one === null) - (other === null) || a - b; // nothing comes last
      return (descending ? compare(other, one) : compare(one, other)) || a - b;
    });
  }

  /** Draw the rows in sight, unless they are drawn already. */
  draw() {
    const first = Math.max(Math.floor(this.grid.scrollTop / ROW) - BEYOND, 0);
    const last = Math.min(first + Math.ceil(this.grid.clientHeight / ROW) + 2 * BEYOND, this.order.length);
    const drawn = `${first} ${last}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const rows = [];
    for (let place = first; place < last; place++) rows.push(this.rowAt(place));
    if (this.order.length === 0) rows.push(make("div", { class: "nothing" }, "Nothing matches."));
    this.body.replaceChildren(...rows);
  }

  rowAt(place) {
    const number = this.order[place];
    const opens = this.targetOf(number) !== null;
    const cells = this.columns.map(({ kind }, index) => {
      const value = this.rows[number][index];
      const shape = isNumeric(kind) ? " right" : kind === "tensor" ? " code" : "";
      return make("div", { class: `cell${shape}`, role: "cell", title: cellText(kind, value) }, cellElement(kind, value));
    });
    const state = `${opens ? " opens" : ""}${number === this.chosen ? " chosen" : ""}`;
    const row = make("div", { class: `row${state}`, role: "row", "data-row": number, "aria-rowindex": place + 2 }, ...cells);
    row.style.top = `${place * ROW}px`;
    return row;
  }
}

const ruler = make("canvas").getContext("2d");
ruler.font = getComputedStyle(document.body).font;
const textWidth = (text) => ruler.measureText(text).width;
const grows = (column) => !isNumeric(column.kind) && column.kind !== "tag";

/** Return what a cell is sorted by; null for nothing, which comes last. */
function keyOf(kind, value) {
  if (value === null || value === "") return null;
  if (!isNumeric(kind)) return cellText(kind, value);
  return typeof value === "number" ? value : { inf: Infinity, "-inf": -Infinity }[value] ?? null;
}
