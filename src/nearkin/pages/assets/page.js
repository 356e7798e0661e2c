"use strict";
// Each script registers what it brings to life: nearkin.part("grid", (element, data) => ...). Data become text, never markup.
const nearkin = (() => {
  const kinds = {};
  const repaint = [];
  let all = {};

  function make(tag, text, settings) {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    return Object.assign(element, settings || {});
  }

  // a cell of a CSV file; a text that a spreadsheet would take for a formula is told to be text
  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    let text = String(value);
    if (/^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function csv(table) {
    return [table.header, ...table.rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
  }

  function save(name, text) {
    const address = URL.createObjectURL(new Blob(["\ufeff" + text], {type: "text/csv;charset=utf-8"}));
    const link = make("a", null, {href: address, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // "@series-0" under a key that is a colour -> the colour of the style in use
  function themed(value, key) {
    if (Array.isArray(value)) return value.map((each) => themed(each, key));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, themed(each, name)]));
    }
    const isColour = typeof value === "string" && value.startsWith("@") && /color(scale)?$/.test(key || "");
    return isColour ? colour(value.slice(1)) : value;
  }

  function start() {
    all = JSON.parse(document.getElementById("data").textContent);
    for (const element of document.querySelectorAll("[data-part]")) {
      const begin = kinds[element.dataset.part];
      if (begin) begin(element, all[element.id] || {});
    }
    for (const button of document.querySelectorAll("button.download")) {
      const table = all[button.dataset.table].table;
      button.hidden = false;
      button.addEventListener("click", () => save(table.name + ".csv", csv(table)));
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint.forEach((draw) => draw()));
    document.documentElement.dataset.ready = "yes";
  }

  return {part: (kind, begin) => { kinds[kind] = begin; }, start, make, csv, themed, colour, repaint, data: (id) => all[id]};
})();

nearkin.part("grid", (element, data) => {
  const body = element.querySelector("tbody");
  const heads = [...element.querySelectorAll("th")];
  const lines = [...body.rows].map((line) => ({line, values: data.table.rows[Number(line.dataset.row)]}));
  const chosen = {};
  let wanted = "";

  function compare(a, b) {
    if (a === b) return 0;
    if (a === null) return 1;                       // gaps last, whichever way
    if (b === null) return -1;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", {numeric: true});
  }

  function sort(head) {
    const column = Number(head.dataset.column);
    const numbers = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numbers;        // numbers: the highest first
    heads.forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    lines.sort((a, b) => {
      const [x, y] = [a.values[column], b.values[column]];
      const way = x === null || y === null ? 1 : down ? -1 : 1;
      return way * compare(x, y) || Number(a.line.dataset.row) - Number(b.line.dataset.row);
    });
    body.append(...lines.map((each) => each.line));
  }

  function filter() {
    for (const {line, values} of lines) {
      const kept = Object.entries(chosen).every(([column, value]) => value === "" || String(values[column]) === value);
      line.hidden = !kept || !(wanted === "" || line.textContent.toLowerCase().includes(wanted));
    }
  }

  for (const head of heads) {
    const button = nearkin.make("button", head.textContent, {type: "button"});
    head.replaceChildren(button);
    button.addEventListener("click", () => sort(head));
  }
  const place = element.querySelector(".filters");
  for (const name of data.filters || []) {
    const column = data.table.header.indexOf(name);
    const menu = nearkin.make("select");
    menu.append(nearkin.make("option", "all", {value: ""}));
    for (const value of new Set(data.table.rows.map((row) => String(row[column])))) menu.append(nearkin.make("option", value, {value}));
    menu.addEventListener("change", () => { chosen[column] = menu.value; filter(); });
    const label = nearkin.make("label", name + " ");
    label.append(menu);
    place.append(label);
  }
  if (data.search) {
    const field = nearkin.make("input", null, {type: "search"});
    field.addEventListener("input", () => { wanted = field.value.toLowerCase(); filter(); });
    const label = nearkin.make("label", "find ");
    label.append(field);
    place.append(label);
  }
});

nearkin.part("chart", (element, data) => {
  const place = element.querySelector(".plot");
  const settings = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"], displayModeBar: "hover"};
  function draw() {
    const figure = nearkin.themed(data.figure);
    if (place.clientWidth < 560) {                                // a phone: short names, few ticks
      if (data.figure.short) figure.layout.yaxis.ticktext = data.figure.short;
      if (!figure.layout.xaxis.type) Object.assign(figure.layout.xaxis, {nticks: 5, tickangle: 0});
      figure.layout.font.size = 11;
    }
    place.style.height = data.figure.height + "px";
    Plotly.react(place, figure.data, figure.layout, settings);
  }
  place.style.minHeight = data.figure.height + "px";
  const watch = new IntersectionObserver((seen) => {            // a figure is drawn when it comes near
    if (!seen.some((each) => each.isIntersecting)) return;
    watch.disconnect();
    place.style.minHeight = "";
    draw();
    nearkin.repaint.push(draw);
  }, {rootMargin: "1200px"});
  place.classList.add("waiting");
  watch.observe(place);
  addEventListener("beforeprint", () => { if (!place.firstChild) { watch.disconnect(); draw(); } });
});

nearkin.part("lines", (element) => {
  const text = element.querySelector("pre").textContent;
  if (!navigator.clipboard) return;
  const button = nearkin.make("button", "copy", {type: "button", className: "copy"});
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  });
  (element.querySelector("details") || element).append(button);
});
