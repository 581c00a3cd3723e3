// What the page does beside being read: names, the map with its slider, two clusters side by side, a table that sorts.
// Everything is on the page without it. Texts are set as text, never as markup; nothing is fetched or kept.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  /** An element with text and attributes. */
  function make(tag, text = "", attributes = {}) {
    const svg = ["svg", "rect", "text"].includes(tag);
    const element = svg ? document.createElementNS(at("terrain").namespaceURI, tag) : document.createElement(tag);
    if (text !== "") element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }

  const press = (buttons, chosen) => buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === chosen)));

  // --- names and notes ---

  // What is refused in a file of names: control characters, and what is printable and yet nothing to see.
  const FILLERS = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\u{e0100}-\\u{e01ef}";
  const LEFT_OUT = new RegExp(`[\\p{C}\\p{Zl}\\p{Zp}${FILLERS}]`, "gu");
  const inputs = all("[data-name]");
  const notes = new Map(all("[data-note]").map((one) => [one.dataset.note, one]));

  /** What was typed as it is kept: on one line, without what nobody sees. */
  const plain = (text) => text.replace(/\s+/gu, " ").replace(LEFT_OUT, "").normalize("NFC").trim();

  /** Two names that look the same would be taken for each other. */
  const look = (text) => plain(text).normalize("NFKC");

  function called(input) {
    const taken = inputs.some((one) => one !== input && plain(one.value) && look(one.value) === look(input.value));
    input.setAttribute("aria-invalid", String(taken));
    at(`wrong-${input.dataset.name}`).textContent = taken ? "Another cluster is called so." : "";
    at("save").disabled = inputs.some((one) => one.getAttribute("aria-invalid") === "true");
    at("saving").hidden = false;
    const name = plain(input.value);
    all(`[data-name-of="${input.dataset.name}"]`).forEach((one) => { one.textContent = name; });
    const place = inputs.indexOf(input);
    all(`option[value="${place}"]`).forEach((one) => { one.textContent = `${input.dataset.name} ${name}`.trim(); });
    if (at("versus")) compare();
  }

  function noted(area) {
    all(`[data-note-of="${area.dataset.note}"]`).forEach((one) => { one.textContent = plain(area.value); });
    at("saving").hidden = false;
  }

  /** A text in quotes, as TOML has it. */
  function quoted(text) {
    const signs = [...text].map((sign) => {
      const code = sign.codePointAt(0);
      if (sign === '"' || sign === "\\") return `\\${sign}`;
      return code < 32 || code === 127 ? `\\u${code.toString(16).padStart(4, "0")}` : sign;
    });
    return `"${signs.join("")}"`;
  }

  function namesFile() {
    const own = inputs.map((one) => {
      const id = one.dataset.name;
      return { id, name: plain(one.value), note: plain(notes.get(id).value) };
    });
    const told = [...own, ...data.others].filter((one) => one.name || one.note);
    const parts = told.map((one) => {
      const lines = ["[[clusters]]", `id = ${one.id}`];
      if (one.name) lines.push(`name = ${quoted(one.name)}`);
      if (one.note) lines.push(`note = ${quoted(one.note)}`);
      return lines.join("\n");
    });
    const head = `# What people call the clusters; put it beside the model.\nmodel = ${quoted(data.model)}`;
    return `${[head, ...parts].join("\n\n")}\n`;
  }

  function save() {
    const address = URL.createObjectURL(new Blob([namesFile()], { type: "application/toml" }));
    const link = make("a", "", { href: address, download: "names.toml" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // --- the map ---

  // More groups than these have small names on the map, or none.
  const [MANY, MOST_NAMED] = [12, 30];
  const map = at("terrain");
  const discs = all(".disc", map);
  const taken = Number(at("stop").value);
  // Where there is room in a disc, its cluster stands in it: colours alone would not do.
  const numbers = discs.map((disc) => {
    if (Number(disc.getAttribute("r")) < 8) return null;
    const text = make("text", "", { class: "number", x: disc.getAttribute("cx"), y: disc.getAttribute("cy") });
    map.append(text);
    return text;
  });
  let here = -1;
  let shown = taken;
  let group = -1;

  const titleOf = (disc) => disc.querySelector("title").textContent.replace(/, cluster \d+$/, "");

  function sayDisc(place) {
    discs[here]?.classList.remove("here");
    here = place;
    const stop = data.stops[shown];
    discs[here]?.classList.add("here");
    const what = shown === taken ? "cluster" : "group";
    at("said").textContent = here < 0 ? "" : `${titleOf(discs[here])}: ${what} ${stop.names[stop.groups[here]]}`;
  }

  function walk(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") sayDisc(-1);
    if (!step) return;
    event.preventDefault();
    sayDisc((here + step + discs.length) % discs.length);
  }

  /** Where the name of every group stands: on the disc that is nearest to the middle of the group, by size. */
  function centres(stop) {
    const sums = stop.names.map(() => [0, 0, 0]);
    discs.forEach((disc, place) => {
      const size = Number(disc.getAttribute("r")) ** 2;
      const sum = sums[stop.groups[place]];
      sum[0] += size * Number(disc.getAttribute("cx"));
      sum[1] += size * Number(disc.getAttribute("cy"));
      sum[2] += size;
    });
    const best = sums.map(() => [Infinity, null]);
    discs.forEach((disc, place) => {
      const [x, y] = [Number(disc.getAttribute("cx")), Number(disc.getAttribute("cy"))];
      const own = stop.groups[place];
      const [sumX, sumY, size] = sums[own];
      const distance = (x - sumX / size) ** 2 + (y - sumY / size) ** 2;
      if (distance < best[own][0]) best[own] = [distance, [x, y]];
    });
    return best.map(([, where]) => where);
  }

  /** Which part of its cluster a group is, by its letter: the largest, the second, or a smaller one. */
  function partOf(name) {
    const letter = name.replace(/[\d+]/g, "")[0] ?? "a";
    return letter === "a" ? 0 : letter === "b" ? 1 : 2;
  }

  function showStop(number) {
    shown = number;
    const stop = data.stops[number];
    const part = stop.names.map(partOf);
    discs.forEach((disc, place) => {
      const own = stop.groups[place];
      disc.setAttribute("class", `disc k${stop.paints[own]} part${part[own]}`);
      if (numbers[place]) numbers[place].textContent = stop.names[own];
      if (numbers[place]) numbers[place].setAttribute("class", `number ${part[own] ? "" : `t${stop.paints[own]}`}`);
    });
    showPlaces(stop);
    at("stop").value = number;
    at("stop").setAttribute("aria-valuetext", `${stop.count} clusters`);
    at("stop-count").textContent = `${stop.count} clusters`;
    at("stop-said").textContent = stop.sentence;
    press(all("[data-stop]"), all("[data-stop]")[number]);
    showGroups(stop);
    dim(-1);
  }

  function showPlaces(stop) {
    all(".place", map).forEach((one) => one.remove());
    if (stop.count > MOST_NAMED) return;
    const many = stop.count > MANY ? " many" : "";
    centres(stop).forEach((centre, place) => {
      if (centre) map.append(make("text", stop.names[place], { class: `place${many}`, x: centre[0], y: centre[1] }));
    });
  }

  function showGroups(stop) {
    const counts = stop.names.map((_, place) => stop.groups.filter((own) => own === place).length);
    const lines = stop.names.slice(0, 40).map((name, place) => {
      const line = make("li");
      const tag = make("span", name, { class: `tag k${stop.paints[place]}` });
      line.append(tag, ` ${counts[place]} of ${discs.length} discs`);
      return line;
    });
    at("groups").replaceChildren(...(shown === taken ? [] : lines));
  }

  /** Everything on the map, line by line; made when somebody asks for it. */
  function list() {
    const table = at("listed").querySelector("table");
    const stop = data.stops[taken];
    const head = make("tr");
    head.append(make("th", "what", { scope: "col" }), make("th", "cluster", { scope: "col" }));
    table.replaceChildren(make("thead"), make("tbody"));
    table.tHead.append(head);
    table.tBodies[0].append(...discs.map((disc, place) => {
      const row = make("tr");
      row.append(make("th", titleOf(disc), { scope: "row" }), make("td", stop.names[stop.groups[place]]));
      return row;
    }));
  }

  /** All but one cluster step back. */
  function dim(cluster) {
    group = cluster;
    const own = data.stops[taken].groups;
    discs.forEach((disc, place) => {
      const away = group >= 0 && own[place] !== group;
      disc.classList.toggle("dim", away);
      numbers[place]?.classList.toggle("dim", away);
    });
    press(all("[data-show]"), all("[data-show]")[group]);
  }

  // --- two clusters side by side ---

  const heat = at("heat");
  const lines = all("tbody tr", heat);
  const [MOST_APART, LEAST_APART, MOST_ALSO] = [8, 0.5, 4];

  /** How far the means of two clusters are apart in every column, in spreads; what says the same thing once. */
  function apart(one, other) {
    const found = lines.map((_, f) => {
      const spread = Math.sqrt((data.spread[one][f] ** 2 + data.spread[other][f] ** 2) / 2);
      return { f, distance: spread > 0 ? (data.z[one][f] - data.z[other][f]) / spread : 0, also: [] };
    }).sort((a, b) => Math.abs(b.distance) - Math.abs(a.distance) || a.f - b.f);
    const kept = [];
    for (const each of found.filter(({ distance }) => Math.abs(distance) >= LEAST_APART)) {
      const first = kept.find(({ f }) => data.alike[f].includes(each.f));
      if (first) first.also.push(each.f);
      else kept.push(each);
    }
    return kept.slice(0, MOST_APART);
  }

  /** The name of a column without its unit; and the unit. */
  function nameOf(f) {
    const cell = lines[f].cells[0].cloneNode(true);
    const unit = cell.querySelector("small")?.textContent ?? "";
    cell.querySelector("small")?.remove();
    return [cell.textContent, unit];
  }

  function valueIn(f, cluster) {
    const cell = lines[f].cells[2 + cluster];
    const spread = cell.querySelector("small")?.textContent;
    const mean = cell.firstChild.textContent.replace(/ [\u2191\u2193]$/u, "");
    return [mean, spread ? `\u00b1 ${spread}` : ""];
  }

  function compare() {
    const [one, other] = [Number(at("one").value), Number(at("other").value)];
    const table = at("versus");
    const head = make("tr");
    const title = (place) => all(`#${place} option`)[Number(at(place).value)].textContent;
    const titles = ["column", title("one"), title("other"), "apart, in spreads"];
    head.append(...titles.map((text) => make("th", text, { scope: "col" })));
    const found = one === other ? [] : apart(one, other);
    const longest = Math.max(3, ...found.map(({ distance }) => Math.abs(distance)));
    const rows = found.map((each) => compared(each, one, other, longest));
    if (!rows.length) {
      const row = make("tr");
      const why = one === other ? "Choose two." : "No column tells them apart by half a spread.";
      row.append(make("td", why, { colspan: 4, class: "left" }));
      rows.push(row);
    }
    const [thead, tbody] = [make("thead"), make("tbody")];
    thead.append(head);
    tbody.append(...rows);
    table.replaceChildren(thead, tbody);
  }

  function compared({ f, distance, also }, one, other, longest) {
    const row = make("tr");
    const [name, unit] = nameOf(f);
    const first = make("th", name, { scope: "row" });
    if (unit) first.append(make("small", unit));
    const same = [...new Set(also.map((each) => nameOf(each)[0]))].filter((each) => each !== name);
    const more = same.length > MOST_ALSO ? " \u2026" : "";
    if (same.length) first.append(make("small", `also: ${same.slice(0, MOST_ALSO).join(", ")}${more}`));
    row.append(first);
    for (const cluster of [one, other]) {
      const [mean, spread] = valueIn(f, cluster);
      const cell = make("td", mean);
      if (spread) cell.append(make("small", spread));
      row.append(cell);
    }
    const cell = make("td", `${distance > 0 ? "higher" : "lower"} by ${Math.abs(distance).toFixed(1)}`);
    const flat = { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" };
    const width = (100 * Math.abs(distance) / longest).toFixed(1);
    const bar = make("svg", "", flat);
    bar.append(make("rect", "", { class: distance > 0 ? "above" : "below", width, height: 1 }));
    cell.append(bar);
    row.append(cell);
    return row;
  }

  // --- the table that sorts ---

  /** Lines by what is highest in a cluster; once more, lowest; a third time as they were. */
  function sortBy(cluster, header) {
    const before = header.getAttribute("aria-sort");
    all("th[aria-sort]", heat).forEach((one) => one.removeAttribute("aria-sort"));
    const way = { null: "descending", descending: "ascending" }[before];
    if (way) header.setAttribute("aria-sort", way);
    const sign = way === "ascending" ? 1 : -1;
    const order = lines.map((_, f) => f);
    if (way) order.sort((a, b) => sign * (data.z[cluster][a] - data.z[cluster][b]) || a - b);
    heat.tBodies[0].append(...order.map((f) => lines[f]));
  }

  function makeSortable() {
    [...heat.tHead.rows[0].cells].slice(2).forEach((header, cluster) => {
      const button = make("button", "", { type: "button", class: "sort", title: "Sort by this cluster" });
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(cluster, header));
    });
  }

  // --- all of it at work ---

  all(".live").forEach((one) => { one.hidden = false; });
  inputs.forEach((one) => one.addEventListener("input", () => called(one)));
  notes.forEach((one) => one.addEventListener("input", () => noted(one)));
  at("save").addEventListener("click", save);
  map.addEventListener("pointerover", ({ target }) => { if (discs.includes(target)) sayDisc(discs.indexOf(target)); });
  map.addEventListener("keydown", walk);
  map.addEventListener("blur", () => sayDisc(-1));
  at("stop").addEventListener("input", (event) => showStop(Number(event.target.value)));
  all("[data-stop]").forEach((one, number) => one.addEventListener("click", () => showStop(number)));
  all("[data-show]").forEach((one, cluster) => one.addEventListener("click", () => {
    const again = group === cluster;
    showStop(taken);
    dim(again ? -1 : cluster);
  }));
  addEventListener("beforeprint", () => all("details:not(.live)").forEach((one) => { one.open = true; }));
  at("listed").addEventListener("toggle", list, { once: true });
  makeSortable();
  showStop(taken);
  if (at("versus")) {
    ["one", "other"].forEach((id) => at(id).addEventListener("change", compare));
    compare();
  }
})();
