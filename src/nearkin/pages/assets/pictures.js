/* The map of the embeddings: the point under the pointer, or chosen by the arrow keys, shows its picture, class and row. */
nearkin.part("map", (element, data) => {
  const svg = element.querySelector("svg.points"), field = element.querySelector(".map-field");
  const [ROW, CLASS] = ["row", "class"].map(name => data.table.header.indexOf(name));
  const points = new Array(data.table.rows.length);
  for (const circle of svg.querySelectorAll("circle")) {
    const i = +circle.dataset.i, row = data.table.rows[i];
    points[i] = { i, circle, x: +circle.getAttribute("cx"), y: +circle.getAttribute("cy"), row: row[ROW], name: row[CLASS], tile: data.tiles[i] };
  }

  const make = (tag, className, parent) => parent.appendChild(Object.assign(document.createElement(tag), { className }));
  const tip = make("div", "map-tip", field), picture = make("span", "thumb", tip);
  const title = make("strong", "", tip), words = make("span", "", tip), said = make("div", "map-said", field);
  said.setAttribute("aria-live", "polite");
  tip.hidden = true;
  let at = null;

  const highlight = name => {
    svg.classList.toggle("faded", name !== "");
    for (const point of points) point.circle.classList.toggle("same", name !== "" && point.name === name);
  };

  const show = (point, aloud) => {
    if (at) at.circle.classList.remove("at");
    at = point;
    tip.hidden = !point;
    if (!point) { highlight(menu.value); return; }
    point.circle.classList.add("at");
    highlight(menu.value || point.name);
    picture.className = point.tile === null ? "thumb gone" : `thumb sheet-${Math.floor(point.tile / (data.columns * data.rows))}`;
    if (point.tile !== null) {
      const within = point.tile % (data.columns * data.rows);
      picture.style.setProperty("--x", within % data.columns);
      picture.style.setProperty("--y", Math.floor(within / data.columns));
    }
    title.textContent = point.name;
    words.textContent = `row ${point.row}` + (point.tile === null ? ", no picture" : "");
    if (aloud) said.textContent = `${point.name}, row ${point.row}`;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width, x = point.x * scale, y = point.y * scale;
    const left = x + 14 + tip.offsetWidth > field.clientWidth ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = `${Math.max(0, Math.min(left, field.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y - tip.offsetHeight / 2, svg.clientHeight - tip.offsetHeight))}px`;
  };

  const nearest = (x, y, fits = () => true) => {
    let best = null, least = Infinity;
    for (const point of points) {
      const away = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (away < least && fits(point)) { best = point; least = away; }
    }
    return best && { point: best, away: Math.sqrt(least) };
  };

  const pointed = event => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const found = nearest((event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
    const point = found && found.away * scale <= 20 ? found.point : null;
    if (point !== at) show(point, false);
  };
  svg.addEventListener("pointermove", pointed);
  svg.addEventListener("pointerdown", pointed);
  svg.addEventListener("pointerleave", event => { if (event.pointerType === "mouse" && document.activeElement !== svg) show(null); });

  const towards = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  svg.tabIndex = 0;
  svg.addEventListener("keydown", event => {
    if (event.key === "Escape") { show(null); return; }
    const step = towards[event.key];
    if (!step) return;
    event.preventDefault();
    if (!at) { show(nearest(svg.viewBox.baseVal.width / 2, svg.viewBox.baseVal.height / 2).point, true); return; }
    const ahead = point => {                              // within 45 degrees of the arrow
      const along = (point.x - at.x) * step[0] + (point.y - at.y) * step[1];
      return along > 0 && along >= Math.abs((point.x - at.x) * step[1]) + Math.abs((point.y - at.y) * step[0]);
    };
    const found = nearest(at.x, at.y, ahead);
    if (found) show(found.point, true);
  });
  svg.addEventListener("blur", () => show(null));

  const label = make("label", "", element.querySelector(".map-tools"));
  label.textContent = "show the class ";
  const menu = make("select", "", label);
  const names = [...new Set(points.map(point => point.name))].sort((a, b) => a.localeCompare(b, "en"));
  for (const name of ["", ...names]) {
    const option = make("option", "", menu);
    option.value = name;
    option.textContent = name === "" ? "all" : name;
  }
  menu.addEventListener("change", () => highlight(menu.value));
  element.querySelector(".map-help").textContent +=
    " Point at an image to see it and its class; with the keyboard, go to the map and use the arrow keys, Escape ends.";
});
