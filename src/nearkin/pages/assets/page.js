"use strict";
// Each script registers what it brings to life: nearkin.part("grid", (element, data) => ...). Data become text, never markup.
const nearkin = (() => {
  const kinds = {};
  const repaint = [];
  const followers = {};
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

  // the menus of one grid choose methods; other grids and charts show the same ones. null: all of them
  function follow(grid, show) { (followers[grid] ||= []).push(show); }
  function choose(grid, methods) { (followers[grid] || []).forEach((show) => show(methods)); }

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

  return {part: (kind, begin) => { kinds[kind] = begin; }, start, make, csv, themed, colour, repaint, follow, choose, data: (id) => all[id]};
})();

nearkin.part("grid", (element, data) => {
  const body = element.querySelector("tbody");
  const heads = [...element.querySelectorAll("th")];
  const lines = [...body.rows].map((line) => ({line, values: data.table.rows[Number(line.dataset.row)]}));
  const chosen = {};
  const methodColumn = data.table.header.indexOf("method");
  let wanted = "";
  let methods = null;

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
      const followed = methods === null || methods.has(String(values[methodColumn]));
      line.hidden = !kept || !followed || !(wanted === "" || line.textContent.toLowerCase().includes(wanted));
    }
    if (data.slice !== element.id) return;
    const shown = lines.filter((each) => !each.line.hidden).map((each) => String(each.values[methodColumn]));
    nearkin.choose(element.id, shown.length === lines.length ? null : new Set(shown));
  }
  if (data.slice && data.slice !== element.id) nearkin.follow(data.slice, (others) => { methods = others; filter(); });

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

// A figure with some of its names: the methods that are chosen, and of those the first ones; see slicing.py.
nearkin.sliced = (figure, data, methods) => {
  const among = data.names.filter(([, method]) => methods === null || methods.has(method));
  const names = new Set(among.slice(0, data.most).map(([name]) => name));
  const cut = among.length > names.size ? `Drawn are the first ${names.size} of ${among.length.toLocaleString("en")}; the numbers have all.` : "";
  if (names.size === data.names.length) return [figure, cut];
  if (data.at === "name") {
    const groups = new Set(figure.data.filter((trace) => names.has(trace.name)).map((trace) => trace.legendgroup));
    const traces = figure.data.filter((trace) => groups.has(trace.legendgroup));
    return [{...figure, data: methods === null ? traces : traces.map((trace) => ({...trace, visible: true}))}, cut];
  }
  const traces = figure.data.map((trace) => {
    const some = (values) => (Array.isArray(values) ? values.filter((_, i) => names.has(trace[data.at][i])) : values);
    const kept = {...trace};
    for (const key of ["x", "y", "text", "textposition"]) if (key in trace) kept[key] = some(trace[key]);
    for (const key of ["error_x", "error_y"]) {
      if (key in trace) kept[key] = {...trace[key], array: some(trace[key].array), arrayminus: some(trace[key].arrayminus)};
    }
    return kept;
  });
  const layout = {...figure.layout};
  const side = {x: "xaxis", y: "yaxis"}[data.at];
  let short = figure.short;
  if (side && layout[side].categoryarray) {
    const all = layout[side].categoryarray;
    const kept = all.filter((name) => names.has(name));
    layout[side] = {...layout[side], categoryarray: kept};
    if (layout[side].ticktext) {
      Object.assign(layout[side], {ticktext: kept, tickvals: kept.map((_, i) => i), range: [kept.length - 0.4, -0.6]});
      short = short && short.filter((_, i) => names.has(all[i]));
    }
  }
  return [{...figure, data: traces, layout, short, height: figure.height - data.row * (data.names.length - names.size)}, cut];
};

nearkin.part("chart", (element, data) => {
  const place = element.querySelector(".plot");
  const settings = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"], displayModeBar: "hover"};
  let methods = null;
  function draw() {
    const [drawn, cut] = data.names ? nearkin.sliced(data.figure, data, methods) : [data.figure, ""];
    element.querySelector(".note.rows").textContent = cut;
    const phone = place.clientWidth < 560;
    const {layout, height} = (phone && drawn.narrow) || drawn;
    const figure = nearkin.themed({...drawn, layout});
    if (phone) {                                                  // short names, few ticks
      if (drawn.short) figure.layout.yaxis.ticktext = drawn.short;
      if (!figure.layout.xaxis.type) Object.assign(figure.layout.xaxis, {nticks: 5, tickangle: 0});
      figure.layout.font.size = 11;
    }
    place.style.height = height + "px";
    Plotly.react(place, figure.data, figure.layout, settings);
  }
  if (data.slice) nearkin.follow(data.slice, (others) => { methods = others; if (place.firstChild) draw(); });
  if (!data.names) place.style.minHeight = data.figure.height + "px";
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
