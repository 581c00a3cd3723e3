// What the page does beside being read: one cluster alone, or all again; and on paper nothing is folded away.
"use strict";

(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  let alone = null;

  function show(cluster) {
    alone = cluster === alone ? null : cluster;
    all("[data-of]").forEach((one) => { one.hidden = alone !== null && one.dataset.of !== alone; });
    all("[data-show]").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.show === alone)));
  }

  all(".live").forEach((one) => { one.hidden = false; });
  all("[data-show]").forEach((one) => one.addEventListener("click", () => show(one.dataset.show)));
  addEventListener("beforeprint", () => all("details").forEach((one) => { one.open = true; }));
})();
