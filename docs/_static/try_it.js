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
  const others = p.map((_, i) => countDistribution(p.filter((_, j) => j !== i)));
  const values = [countDistribution(p)[0]];  // the empty set scores 1 if the true set is empty
  for (let k = 1; k <= p.length; k++) {
    let value = 0;
    for (const i of order.slice(0, k)) {
      others[i].forEach((d, s) => { value += p[i] * d * ((1 + b2) / (b2 * (s + 1) + k)); });
    }
    values.push(value);
  }
  // Values that differ by less than 1e-12, relatively, are equal: the smallest set wins.
  const peak = Math.max(...values);
  const best = values.findIndex((value) => value >= peak * (1 - 1e-12));
  return { order, values, best, half: p.filter((x) => x > 0.5).length };
}

// Return the distribution of the number of true labels (Poisson binomial), by adding label after label.
function countDistribution(p) {
  let d = [1];
  for (const x of p) d = [...d, 0].map((q, s) => q * (1 - x) + (s ? d[s - 1] * x : 0));
  return d;
}

function tryIt(root) {
  const NAMES = ["drama", "comedy", "crime", "romance", "mystery", "horror", "fantasy", "western", "musical", "war"];
  const START = [0.8, 0.45, 0.4, 0.25, 0.1];
  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

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

document.querySelectorAll("#try-labels").forEach(tryIt);
