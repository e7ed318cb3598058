// Tables: DataTables sorts, searches and divides them into pages. It parses texts as HTML unless they are escaped or in
// elements, so cells are elements, and what a search looks at is escaped.

const MOST_ROWS = 100; // of a page
const MOST_CHOICES = 8;
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const tables = [];

/** Load DataTables, and make all tables of the page. */
async function makeTables() {
  if (data.tables.length === 0) return;
  const source = URL.createObjectURL(new Blob([await unpacked("datatables")], { type: "text/javascript" }));
  const library = (await import(source)).jQuery.fn.dataTable;
  library.ext.errMode = "throw";
  for (const [name, compare] of Object.entries({ texts: collator.compare, numbers: (one, other) => one - other })) {
    const lastIfNothing = (order) => (a, b) => (a === null || b === null ? (a === null) - (b === null) : order(a, b));
    library.type(name, { detect: () => false, order: { asc: lastIfNothing(compare), desc: lastIfNothing((a, b) => compare(b, a)) } });
  }
  document.querySelectorAll("[data-table]").forEach((root, number) => tables.push(new DataTable(library, root, number)));
}

class DataTable {
  constructor(library, root, number) {
    const { columns, rows, details } = data.tables[number];
    Object.assign(this, { root, number, columns, rows, details, title: root.dataset.title, chosen: -1 });
    this.layerColumn = columns.findIndex((column) => column.kind === "layer");
    if (rows.length === 0) {
      root.append(make("div", { class: "empty" }, root.dataset.empty));
      return;
    }
    const label = `Search ${this.title.toLowerCase()}`, chips = this.chips();
    const element = make("table", { "aria-label": this.title });
    root.append(element);
    const hasTools = rows.length >= 8 || columns.some(({ filtered }) => filtered);
    this.table = new library(element, {
      data: rows, columns: columns.map((column) => columnSettings(column, columns)), order: [], autoWidth: false, deferRender: true, pageLength: MOST_ROWS,
      layout: { topStart: hasTools ? ["search", chips] : null, topEnd: hasTools ? "info" : null, bottomStart: null,
        bottomEnd: rows.length > MOST_ROWS ? "paging" : null },
      language: { search: "", searchPlaceholder: `${label} …`, info: "_TOTAL_", infoEmpty: "0", infoFiltered: "of _MAX_", zeroRecords: "Nothing matches." },
      createdRow: (row, _, index) => row.classList.add("row", ...(this.targetOf(index) ? ["opens"] : []), ...(index === this.chosen ? ["chosen"] : [])),
    });
    this.grid = element.parentElement;
    this.grid.classList.add("grid");
    this.grid.tabIndex = 0;
    this.table.on("draw", () => this.fitNames());
    new ResizeObserver(() => this.fitNames()).observe(this.grid);
    const search = root.querySelector("[type=search]");
    search?.setAttribute("aria-label", label);
    for (const target of [search, this.grid]) target?.addEventListener("keydown", (event) => this.onKey(event));
    element.tBodies[0].addEventListener("click", ({ target }) => this.open(this.table.row(target.closest("tr")).index()));
  }

  /** Return buttons for the values of the column that is filtered; null if there is none, or too much to choose from. */
  chips() {
    const column = this.columns.findIndex(({ filtered }) => filtered);
    const found = column < 0 ? new Map() : Map.groupBy(this.rows, (row) => row[column]);
    if (found.size < 2 || found.size > MOST_CHOICES) return null;
    const chips = make("div", { class: "chips", role: "group", "aria-label": "Show only" });
    for (const [value, { length }] of found) {
      const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false" }, `${value} `, make("b", {}, grouped.format(length)));
      chip.addEventListener("click", () => {
        const pressed = chip.getAttribute("aria-pressed") === "false";
        for (const other of chips.children) other.setAttribute("aria-pressed", String(other === chip && pressed));
        this.table.column(column).search(pressed ? (text) => text === value : "").draw();
      });
      chips.append(chip);
    }
    return chips;
  }

  /** Show the names that are too long for their columns in a short form in which they differ. */
  fitNames() {
    const names = [...this.grid.querySelectorAll("td .name")];
    for (const name of names) name.replaceChildren(...nameParts(name.title));
    const long = names.filter((name) => name.title in data.short && name.scrollWidth > name.clientWidth);
    for (const name of long) name.replaceChildren(...nameParts(data.short[name.title]));
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.target !== event.currentTarget) return;
    const order = this.table.rows({ search: "applied" }).indexes().toArray();
    if (order.length === 0) return;
    event.preventDefault();
    const place = Math.min(Math.max(order.indexOf(this.chosen) + step, 0), order.length - 1);
    const page = Math.floor(place / MOST_ROWS);
    if (page !== this.table.page()) this.table.page(page).draw("page");
    this.table.row(order[place]).node().scrollIntoView({ block: "nearest" });
    this.open(order[place]);
  }

  open(row) {
    const target = row === undefined ? null : this.targetOf(row);
    if (target !== null) visit(target);
  }

  /** Return the address of what a row opens; null if there is nothing. */
  targetOf(row) {
    if (this.details !== null && this.details[row] !== null) return `#row:${this.number}:${row}`;
    const layer = this.layerColumn < 0 ? null : this.rows[row][this.layerColumn];
    return typeof layer === "number" ? `#layer:${layer}` : null;
  }

  /** Mark a row as the one whose details are shown; -1 for none. */
  mark(row) {
    for (const [index, isChosen] of [[this.chosen, false], [row, true]]) {
      if (index >= 0) this.table.row(index).node()?.classList.toggle("chosen", isChosen);
    }
    this.chosen = row;
  }
}

/** Return what DataTables has to know about one of some columns. Columns of texts share the space that others leave. */
function columnSettings({ name, kind, width }, columns) {
  const all = columns.filter((column) => grows(column.kind)).reduce((sum, column) => sum + column.width, 0);
  const isNumber = isNumeric(kind);
  const uses = { display: cellElement, sort: sortKey, type: sortKey, filter: (_, value) => escapedText(cellText(kind, value)) };
  return {
    title: name, type: isNumber ? "numbers" : "texts", orderSequence: isNumber ? ["desc", "asc"] : ["asc", "desc"],
    className: `of-${kind}${isNumber ? " right" : ""}`, width: grows(kind) ? `${100 * width / all}%` : "1px",
    render: (value, use) => (use in uses ? uses[use](kind, value) : value),
    createdCell: (cell, value) => {
      cell.title = cellText(kind, value);
      cell.dataset.name = name;
    },
  };
}

const grows = (kind) => !isNumeric(kind) && kind !== "tag" && kind !== "type" && kind !== "outcome";
const escapedText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** Return what a cell is sorted by; null for nothing, which comes last. */
function sortKey(kind, value) {
  if (value === null || value === "") return null;
  if (!isNumeric(kind)) return cellText(kind, value);
  return typeof value === "number" ? value : { inf: Infinity, "-inf": -Infinity }[value] ?? null;
}
