// The page "Try it": F-optimal decisions for a few independent labels, computed in the browser.
"use strict";

// Return the most probable labels first, the expected F-measure of the best set of each size, and
// the sizes of the F-optimal set and of the set of labels above 0.5.
//
// With p(y_i = 1, |y| = s) = p_i d_i[s - 1], d_i the distribution of the number of other labels, a
// set h of k labels has the expectation sum_{i in h} (1 + beta^2) sum_s p_i d_i[s - 1] / (beta^2 s + k).
function decideLabels(p, beta) {
  const b2 = beta * beta;
  const order = p.map((_, i) => i).sort((i, j) => p[j] - p[i] || i - j);
  const d = countDistribution(p);
  const values = [d[0]];  // the empty set scores 1 if the true set is empty
  const hits = new Float64Array(p.length);  // sum over h of p_i d_i
  order.forEach((i, rank) => {
    const k = rank + 1;
    const others = withoutLabel(d, p[i]);
    let value = 0;
    for (let s = 0; s < p.length; s++) {
      hits[s] += p[i] * others[s];
      value += hits[s] * ((1 + b2) / (b2 * (s + 1) + k));
    }
    values.push(value);
  });
  // Values that differ by less than 1e-12, relatively, are equal: the smallest set wins.
  const peak = values.reduce((a, b) => Math.max(a, b));
  const best = values.findIndex((value) => value >= peak * (1 - 1e-12));
  return { order, values, best, half: p.filter((x) => x > 0.5).length };
}

// Return the distribution of the number of true labels (Poisson binomial), by adding label after label.
function countDistribution(p) {
  const d = new Float64Array(p.length + 1);
  d[0] = 1;
  p.forEach((x, n) => { for (let s = n + 1; s >= 0; s--) d[s] = d[s] * (1 - x) + (s ? d[s - 1] * x : 0); });
  return d;
}

// Remove a label of probability x from a distribution. Errors do not grow from the end at which the
// label is the less surprising.
function withoutLabel(d, x) {
  const n = d.length - 1, others = new Float64Array(n);
  if (x < 0.5) for (let s = 0; s < n; s++) others[s] = (d[s] - (s ? others[s - 1] * x : 0)) / (1 - x);
  else for (let s = n; s > 0; s--) others[s - 1] = (d[s] - (s < n ? others[s] * (1 - x) : 0)) / x;
  return others;
}

const makeElement = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

function tryIt(root) {
  const NAMES = ["drama", "comedy", "crime", "romance", "mystery", "horror", "fantasy", "western", "musical", "war"];
  const START = [0.8, 0.45, 0.4, 0.25, 0.1];
  const element = makeElement;

  const sliders = element("div", {});
  const more = element("button", { type: "button", textContent: "Add a label" });
  const less = element("button", { type: "button", textContent: "Remove the last" });
  const beta = element("input", { type: "number", id: "try-beta", value: "1", min: "0.01", max: "100", step: "any" });
  const power = element("input", { type: "range", min: "-3", max: "3", step: "0.05", value: "0" });
  power.setAttribute("aria-label", "beta, from 1/8 to 8");
  const summary = element("p", { className: "try-summary" });
  summary.setAttribute("role", "status");
  const sizes = element("tbody", {});
  const caption = element("caption", {});
  const head = element("tr", {}, ...["size", "best set of this size", "expected F"].map(
    (textContent) => element("th", { scope: "col", textContent })));

  const inputs = () => [...sliders.querySelectorAll("input")];
  const setOf = (found, size) => found.order.slice(0, size).sort((i, j) => i - j).map((i) => NAMES[i]);
  const written = (names) => (names.length ? "{" + names.join(", ") + "}" : "the empty set");

  function addLabel(p) {
    const name = NAMES[inputs().length];
    const input = element("input", { type: "range", id: "try-" + name, min: "0", max: "1", step: "0.01", value: String(p) });
    const shown = element("output", { htmlFor: input.id });
    sliders.append(element("div", { className: "try-slider" },
      element("label", { htmlFor: input.id, textContent: name }), input, shown));
  }

  function update() {
    const p = inputs().map((input) => Number(input.value));
    inputs().forEach((input) => { input.nextSibling.textContent = Number(input.value).toFixed(2); });
    more.disabled = p.length === NAMES.length;
    less.disabled = p.length === 1;
    const valid = beta.checkValidity() && beta.value !== "";
    beta.setAttribute("aria-invalid", String(!valid));
    if (!valid) {
      summary.textContent = "beta must be a number from 0.01 to 100.";
      return;
    }
    const found = decideLabels(p, Number(beta.value));
    const f = "F" + Number(Number(beta.value).toPrecision(3));
    const best = written(setOf(found, found.best)), half = written(setOf(found, found.half));
    const value = (size) => found.values[size].toFixed(4);
    summary.textContent = found.best === found.half
      ? `F-optimal: ${best}, expected ${f} ${value(found.best)}. The threshold 0.5 chooses the same set.`
      : `F-optimal: ${best}, expected ${f} ${value(found.best)}. ` +
        `The threshold 0.5 chooses ${half}: ${value(found.half)}.`;
    caption.textContent = `Expected ${f} of the best set of each size`;
    sizes.replaceChildren(...found.values.map((v, k) => {
      const marks = [];
      if (k === found.best) marks.push(element("strong", { textContent: "F-optimal" }));
      if (k === found.half) marks.push(element("span", { textContent: "p > 0.5" }));
      const bar = element("div", { className: "try-bar" });
      bar.style.width = 100 * v + "%";
      const row = element("tr", { className: k === found.best ? "try-best" : k === found.half ? "try-half" : "" },
        element("th", { scope: "row", textContent: String(k) }),
        element("td", {}, setOf(found, k).join(", ") || "none",
          ...marks.map((mark) => element("span", { className: "try-mark" }, mark))),
        element("td", {}, element("span", { className: "try-value", textContent: value(k) }),
          element("div", { className: "try-track" }, bar)));
      row.querySelector(".try-track").setAttribute("aria-hidden", "true");
      return row;
    }));
  }

  root.replaceChildren(
    element("form", { className: "try-inputs", onsubmit: () => false },
      element("fieldset", {}, element("legend", { textContent: "Probability of each label" }), sliders,
        element("div", { className: "try-buttons" }, more, less)),
      element("fieldset", {}, element("legend", { textContent: "Weight of recall" }),
        element("div", { className: "try-slider" },
          element("label", { htmlFor: beta.id, textContent: "beta" }), power, beta))),
    element("div", { className: "try-results" }, summary,
      element("table", {}, caption, element("thead", {}, head), sizes)));
  START.forEach(addLabel);
  more.addEventListener("click", () => { addLabel(0.2); update(); });
  less.addEventListener("click", () => { sliders.lastChild.remove(); update(); });
  power.addEventListener("input", () => { beta.value = String(Number((2 ** Number(power.value)).toPrecision(3))); });
  beta.addEventListener("input", () => { power.value = String(Math.log2(Number(beta.value))); });
  root.addEventListener("input", update);
  update();
}

// Split CSV into rows of cells. The delimiter is the most frequent one of the first line.
function parseTable(text) {
  const lines = text.replace(/^\uFEFF/, "");
  const first = lines.split("\n", 1)[0];
  const delimiter = [",", ";", "\t", "|"].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a));
  const rows = [[""]];
  let quoted = false;
  for (let at = 0; at < lines.length; at++) {
    const c = lines[at], row = rows[rows.length - 1];
    if (c === '"' && quoted && lines[at + 1] === '"') row[row.length - 1] += lines[at++];
    else if (c === '"') quoted = !quoted;
    else if (c === delimiter && !quoted) row.push("");
    else if (c === "\n" && !quoted) rows.push([""]);
    else if (c !== "\r" || quoted) row[row.length - 1] += c;
  }
  return rows.filter((row) => row.length > 1 || row[0].trim() !== "").map((row) => row.map((cell) => cell.trim()));
}

// Return the names of the labels, their probabilities p and, if the table has them, the true labels y
// (both by row), and a note on each column that is left out.
function readProbabilities([names, ...rows]) {
  if (!rows.length) throw new Error("The file needs a header with the names of the labels, and a row of probabilities.");
  rows.forEach((row, r) => {
    if (row.length !== names.length) throw new Error(`Row ${r + 1} has ${row.length} cells, the header ${names.length}.`);
  });
  const columns = [], truths = {}, notes = [];
  let sets = null;
  names.forEach((name, c) => {
    const wrong = rows.findIndex((row) => row[c] === "" || !(Number(row[c]) >= 0 && Number(row[c]) <= 1));
    if (name.toLowerCase() === "labels") sets = c;
    else if (name.startsWith("true_")) truths[name.slice(5)] = c;
    else if (name === "" || /^(.*_)?(id|index)$/i.test(name)) notes.push(`${name || "the column without a name"} (an identifier)`);
    else if (wrong >= 0) notes.push(`${name} ("${rows[wrong][c]}" in row ${wrong + 1} is not a probability)`);
    else columns.push(c);
  });
  const labels = columns.map((c) => names[c]);
  if (!labels.length) throw new Error(`No column has probabilities from 0 to 1. Left out: ${notes.join(", ")}.`);
  let y = null;
  if (sets !== null) {
    y = rows.map((row, r) => {
      const chosen = row[sets].split(/[;|]/).map((name) => name.trim()).filter(Boolean);
      const unknown = chosen.find((name) => !labels.includes(name));
      if (unknown !== undefined) throw new Error(`Row ${r + 1} has the label "${unknown}", for which there are no probabilities.`);
      return labels.map((name) => Number(chosen.includes(name)));
    });
  } else if (Object.keys(truths).length) {
    const missing = labels.find((name) => !(name in truths));
    if (missing !== undefined) throw new Error(`There is no column true_${missing}, although other labels have one.`);
    y = rows.map((row, r) => labels.map((name) => {
      const value = row[truths[name]];
      if (value === "" || ![0, 1].includes(Number(value))) throw new Error(`true_${name} is "${value}" in row ${r + 1}: it must be 0 or 1.`);
      return Number(value);
    }));
  }
  return { labels, p: rows.map((row) => columns.map((c) => Number(row[c]))), y, notes };
}

// The problems of each average: lists of entries [row, label] that are decided and scored together.
const PROBLEMS = {
  samples: (n, m) => Array.from({ length: n }, (_, r) => Array.from({ length: m }, (_, i) => [r, i])),
  macro: (n, m) => Array.from({ length: m }, (_, i) => Array.from({ length: n }, (_, r) => [r, i])),
  micro: (n, m) => [PROBLEMS.samples(n, m).flat()],
};

// Return the mean F-measure of decisions h over the problems; 0/0 is 1.
function meanF(y, h, problems, b2) {
  let sum = 0;
  for (const entries of problems) {
    let hits = 0, total = 0;
    for (const [r, i] of entries) {
      hits += y[r][i] * h[r][i];
      total += b2 * y[r][i] + h[r][i];
    }
    sum += total ? (1 + b2) * hits / total : 1;
  }
  return sum / problems.length;
}

// Decide with p > 0.5, with one threshold and F-optimally. The threshold of the rows of each half
// (even and odd rows) is that with the largest F-measure on the other half.
function compareRules({ p, y }, average, beta) {
  const n = p.length, m = p[0].length, b2 = beta * beta;
  const problems = PROBLEMS[average](n, m);
  const work = problems.reduce((sum, entries) => sum + entries.length ** 2, 0);
  if (work > 4e8) throw new Error("This is too large for a page: fgfm.decision.from_marginals decides it in Python.");
  const above = (t) => p.map((row, r) => row.map((x) => Number(x > (Array.isArray(t) ? t[r % 2] : t))));
  const h = p.map((row) => row.map(() => 0));
  let expected = 0;
  for (const entries of problems) {
    const found = decideLabels(entries.map(([r, i]) => p[r][i]), beta);
    for (const at of found.order.slice(0, found.best)) h[entries[at][0]][entries[at][1]] = 1;
    expected += found.values[found.best] / problems.length;
  }
  const rules = [{ name: "p > 0.5", h: above(0.5) }, { name: "F-optimal", h, expected }];
  if (y && n > 1) {
    const thresholds = [0, 1].map((half) => {
      const rest = (rows) => rows.filter((_, r) => r % 2 !== half);
      const others = PROBLEMS[average](rest(p).length, m);
      let best = [-1, 0];
      for (let t = 1; t < 100; t++) {
        const f = meanF(rest(y), rest(p).map((row) => row.map((x) => Number(x > t / 100))), others, b2);
        if (f > best[0]) best = [f, t / 100];
      }
      return best[1];
    });
    rules.splice(1, 0, { name: `p > t, tuned (${thresholds.join(" and ")})`, h: above(thresholds) });
  }
  for (const rule of rules) {
    rule.size = rule.h.flat().reduce((a, b) => a + b, 0) / n;
    rule.f = y ? meanF(y, rule.h, problems, b2) : null;
  }
  return rules;
}

function tryFile(root) {
  const element = makeElement;
  const AVERAGES = { samples: "of rows", macro: "macro", micro: "micro" };
  const EXAMPLE = "doc,art,law,war,labels\na17,0.8,0.45,0.4,art;law\na18,0.1,0.2,0.05,\n" +
    "a19,0.3,0.35,0.6,law;war\na20,0.7,0.2,0.3,art\na21,0.45,0.4,0.2,law\na22,0.2,0.1,0.9,war\n";
  const input = element("input", { type: "file", id: "try-csv", accept: ".csv,.tsv,.txt,text/csv" });
  const average = element("select", { id: "try-average" },
    ...Object.entries(AVERAGES).map(([value, name]) => element("option", { value, textContent: `F-measure ${name}` })));
  const beta = element("input", { type: "number", id: "try-file-beta", value: "1", min: "0.01", max: "100", step: "any" });
  const example = element("button", { type: "button", textContent: "Show an example" });
  const save = element("button", { type: "button", textContent: "Save the F-optimal sets", disabled: true });
  const summary = element("p", { className: "try-summary" });
  summary.setAttribute("role", "status");
  const caption = element("caption", {}), head = element("tr", {}), body = element("tbody", {});
  const zone = element("div", { className: "try-drop" },
    element("label", { htmlFor: input.id, textContent: "Drop a CSV file of probabilities here, or choose one: " }), input);
  let data = null, rules = [];

  function update() {
    if (!data) return;
    try {
      if (!beta.checkValidity() || beta.value === "") throw new Error("beta must be a number from 0.01 to 100.");
      rules = compareRules(data, average.value, Number(beta.value));
    } catch (error) {
      fail(error);
      return;
    }
    const [half, best] = [rules[0], rules[rules.length - 1]];
    const changed = best.h.filter((row, r) => row.some((x, i) => x !== half.h[r][i])).length;
    const f = "F" + Number(Number(beta.value).toPrecision(3));
    summary.textContent = `${data.p.length} rows, ${data.labels.length} labels (${data.labels.slice(0, 8).join(", ")}` +
      `${data.labels.length > 8 ? ", ..." : ""}). F-optimal decisions differ from p > 0.5 in ${changed} rows.` +
      (data.notes.length ? ` Left out: ${data.notes.join(", ")}.` : "");
    if (data.y && best.expected - best.f > 0.05) {
      summary.textContent += " Less is obtained than expected: with few rows that may be chance; with many, the " +
        "probabilities are not calibrated, and FDecider learns from such a file how to correct them.";
    }
    caption.textContent = `Mean ${f} ${AVERAGES[average.value]}`;
    const heads = ["decision", "labels per row", ...(data.y ? ["obtained"] : []), "expected"];
    head.replaceChildren(...heads.map((textContent) => element("th", { scope: "col", textContent })));
    body.replaceChildren(...rules.map((rule) => element("tr", { className: rule === best ? "try-best" : "" },
      element("th", { scope: "row", textContent: rule.name }),
      element("td", { textContent: rule.size.toFixed(2) }),
      ...(data.y ? [element("td", { textContent: rule.f.toFixed(4) })] : []),
      element("td", { textContent: rule.expected === undefined ? "" : rule.expected.toFixed(4) }))));
    save.disabled = false;
  }

  function fail(error) {
    summary.textContent = error.message;
    head.replaceChildren();
    body.replaceChildren();
    caption.textContent = "";
    save.disabled = true;
  }

  function show(text) {
    try {
      data = readProbabilities(parseTable(text));
    } catch (error) {
      data = null;
      fail(error);
      return;
    }
    update();
  }

  function saveSets() {
    const { h } = rules[rules.length - 1];
    const quote = (name) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const lines = h.map((row) => row.join(","));
    const file = new Blob([[data.labels.map(quote).join(","), ...lines, ""].join("\n")], { type: "text/csv" });
    const link = element("a", { href: URL.createObjectURL(file), download: "sets.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  root.replaceChildren(zone,
    element("div", { className: "try-inputs try-row" },
      element("label", { htmlFor: average.id, textContent: "maximise the" }), average,
      element("label", { htmlFor: beta.id, textContent: "beta" }), beta, example, save),
    element("div", { className: "try-results" }, summary, element("table", {}, caption, element("thead", {}, head), body)));
  input.addEventListener("change", async () => { if (input.files.length) show(await input.files[0].text()); });
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("try-over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("try-over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("try-over");
    if (event.dataTransfer.files.length) show(await event.dataTransfer.files[0].text());
  });
  average.addEventListener("input", update);
  beta.addEventListener("input", update);
  example.addEventListener("click", () => show(EXAMPLE));
  save.addEventListener("click", saveSets);
}

document.querySelectorAll("#try-labels").forEach(tryIt);
document.querySelectorAll("#try-file").forEach(tryFile);
