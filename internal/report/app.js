
// The script of the view of a result inside an MCP host. It speaks the MCP Apps protocol
// with the window around it, puts the report's own HTML on the page (or, from a host
// that drops it, what it can make of the result), and has links opened by the host.
// It loads nothing, keeps nothing and calls no tool.
(() => {
  "use strict";
  const host = window.parent;
  if (host === window) return; // opened by itself
  const [view, question, status] = ["view", "question", "status"].map((id) => document.getElementById(id));
  const isObject = (x) => typeof x === "object" && x !== null && !Array.isArray(x);
  const object = (x) => (isObject(x) ? x : {});
  const list = (x) => (Array.isArray(x) ? x : []);
  // What steers the direction of text, or is no text at all, is shown as a blot.
  const text = (x) => (typeof x === "string" ? x : "").replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
  const say = (words) => { status.textContent = words; };

  // Messages. They are JSON-RPC, and only the window around the page is listened to.
  const waiting = new Map();
  let last = 0;
  const send = (message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const tell = (method, params) => send({ method, params });
  const ask = (method, params, then) => {
    waiting.set(++last, then);
    send({ id: last, method, params });
  };
  const told = new Map([
    ["ui/notifications/tool-input", (params) => {
      const asked = text(object(params.arguments).question).trim();
      if (asked) question.textContent = asked;
    }],
    ["ui/notifications/tool-result", show],
    ["ui/notifications/tool-cancelled", (params) => say("The call was cancelled. " + text(params.reason))],
    ["ui/notifications/host-context-changed", (params) => paint(params.theme)],
  ]);
  const asked = new Set(["ping", "ui/resource-teardown"]); // there is nothing to clear away
  window.addEventListener("message", (event) => {
    const m = event.data;
    if (event.source !== host || !isObject(m) || m.jsonrpc !== "2.0") return;
    const hasID = typeof m.id === "number" || typeof m.id === "string";
    if (typeof m.method !== "string") {
      const then = hasID && waiting.get(m.id);
      waiting.delete(m.id);
      if (then) then(object(m.result), isObject(m.error));
    } else if (!hasID) {
      const then = told.get(m.method);
      if (then) then(object(m.params));
    } else if (asked.has(m.method)) {
      send({ id: m.id, result: {} });
    } else {
      send({ id: m.id, error: { code: -32601, message: "no such method" } });
    }
  });

  // The theme is the host's. The style sheet asks the system, so what it asks is changed.
  const darkRules = [...document.styleSheets].filter((sheet) => !sheet.href).flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule.media && rule.media.mediaText.includes("prefers-color-scheme"));
  function paint(theme) {
    if (theme !== "light" && theme !== "dark") return;
    document.documentElement.style.colorScheme = theme;
    for (const rule of darkRules) rule.media.mediaText = theme === "dark" ? "screen" : "not all";
  }

  // The elements of a report and their attributes, and what these may be. All else is
  // left out, though the HTML was made by a program that escapes every text: pictures of
  // charts, too, whose numbers stand in a table.
  const allowed = {
    a: "href class data-source rel aria-label", article: "id class tabindex", bdi: "class title", blockquote: "lang dir", code: "", dd: "", details: "", div: "role aria-label tabindex class", dl: "", dt: "",
    figcaption: "", figure: "class", h2: "id", h3: "lang dir", h4: "lang dir", li: "id lang dir", main: "", meter: "value aria-label", nav: "aria-label", ol: "", p: "lang dir class",
    section: "id aria-labelledby", span: "class lang dir data-source", strong: "lang dir", summary: "", table: "", tbody: "", td: "lang dir", th: "scope lang dir", thead: "", tr: "", ul: "",
  };
  const name = /^[a-z]+(-[a-z0-9]+)*$/;
  const values = {
    "data-source": /^\d+$/, role: /^group$/, scope: /^(col|row)$/, "aria-label": /^[\w .]*$/, "aria-labelledby": name, class: /^[a-z]+([ -][a-z0-9]+)*$/, dir: /^auto$/, href: /^#[a-z0-9-]+$/, id: name, lang: /^$/,
    rel: /^noopener noreferrer nofollow$/, tabindex: /^(-1|0)$/, title: /^U\+[0-9A-F]{4,6}$/, value: /^[01]\.\d\d$/,
  };
  function clean(from, to) {
    for (const node of from.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) to.append(node.data);
      if (node.nodeType !== Node.ELEMENT_NODE || !Object.hasOwn(allowed, node.localName)) continue;
      const copy = document.createElement(node.localName);
      for (const key of allowed[node.localName].split(" ")) {
        const value = node.getAttribute(key);
        if (value !== null && (values[key].test(value) || key === "href" && web(value))) copy.setAttribute(key, value);
      }
      clean(node, copy);
      to.append(copy);
    }
  }

  // web is an address of the web as every browser reads it, or "".
  function web(address) {
    if (typeof address !== "string" || !/^https?:\/\//i.test(address)) return "";
    try {
      const url = new URL(address);
      return url.username || url.password ? "" : url.href;
    } catch {
      return "";
    }
  }

  function show(result) {
    const html = object(result._meta)["marchwarden/view"], res = object(result.structuredContent);
    const fresh = document.createDocumentFragment();
    if (result.isError !== true && typeof html === "string") {
      clean(new DOMParser().parseFromString(html, "text/html").body, fresh);
    } else if (result.isError !== true && typeof res.answer === "string") {
      fresh.append(...plain(res));
    } else {
      const kind = result.isError === true ? "said problem" : "said";
      fresh.append(...list(result.content).map(object).filter((c) => c.type === "text").map((c) => el("p", { class: kind, dir: "auto" }, text(c.text))));
    }
    say(fresh.textContent.trim() ? "" : "The call ended and found nothing to show.");
    view.replaceChildren(fresh);
  }

  // plain is a result without the report's HTML: its answer, gaps and sources, as text.
  function plain(res) {
    const citations = list(res.citations).map(object);
    const warnings = list(res.warnings).map((w) => el("p", { class: "problem", dir: "auto" }, text(w)));
    const gaps = list(res.gaps).map(object).map((g) => el("li", {}, el("strong", { dir: "auto" }, text(g.topic)), " — ", el("span", { dir: "auto" }, text(g.detail))));
    const sources = citations.map((c, i) => el("article", { id: "source-" + (i + 1), class: "source", tabindex: "-1" },
      el("h3", { dir: "auto" }, "[" + (i + 1) + "] " + (text(c.title) || text(c.locator))),
      el("p", { class: "locator" }, web(c.locator) ? el("a", { href: web(c.locator) }, text(c.locator)) : el("code", {}, text(c.locator))),
      ...(c.unchecked === true ? [el("p", { class: "problem" }, "Unchecked: known from its researcher's report alone.")] : []),
      el("blockquote", { dir: "auto" }, text(c.raw_excerpt))));
    return [
      ...warnings,
      section("answer", "Answer", ...text(res.answer).split(/\n[ \t]*\n\s*/).map((p) => el("p", { dir: "auto" }, ...marked(p, citations.length)))),
      ...(gaps.length ? [section("gaps", "Gaps", el("ul", {}, ...gaps))] : []),
      section("sources", "Sources", ...(sources.length ? sources : [el("p", {}, "None cited.")])),
    ];
  }

  // marked is a paragraph of an answer with its markers as links and its escapes undone.
  function marked(paragraph, citations) {
    const out = [];
    let at = 0;
    for (const m of paragraph.matchAll(/\\([!-\/:-@[-`{-~])|\[(\d{1,9})\]/g)) {
      out.push(paragraph.slice(at, m.index));
      at = m.index + m[0].length;
      const n = Number(m[2]);
      if (m[1]) out.push(m[1]);
      else if (n >= 1 && n <= citations) out.push(el("a", { href: "#source-" + n, class: "cite", "aria-label": "source " + n }, m[0]));
      else out.push(m[0]);
    }
    return [...out, paragraph.slice(at)];
  }

  const section = (id, title, ...kids) => el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title), ...kids);

  function el(tag, attributes, ...kids) {
    const element = document.createElement(tag);
    for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]);
    element.append(...kids);
    return element;
  }

  // Links. The page goes nowhere: within it the script moves the focus, and what leads
  // away is the host's to open.
  let here = null;
  const back = el("button", { type: "button", class: "back" }, "Back to where you were");
  function go(element) {
    element.focus({ preventScroll: true });
    (element.querySelector("h2, h3") || element).scrollIntoView({ block: "center" });
  }
  function leave() {
    if (here) here.classList.remove("here");
    here = null;
    back.remove();
  }
  function jump(link, id) {
    const target = document.getElementById(id);
    if (!target) return;
    leave();
    here = target;
    here.classList.add("here");
    if (!here.hasAttribute("tabindex")) here.tabIndex = -1;
    const title = here.querySelector("h2, h3");
    if (title) title.after(back);
    else here.append(back);
    back.onclick = () => {
      leave();
      if (link.isConnected) go(link);
    };
    go(here);
  }
  function follow(event) {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const href = link.getAttribute("href") || "";
    if (href.startsWith("#")) return jump(link, href.slice(1));
    const url = web(href);
    if (!url) return;
    ask("ui/open-link", { url }, (result, failed) => {
      if ((failed || result.isError === true) && !link.dataset.refused) {
        link.dataset.refused = "yes";
        link.after(el("span", { class: "facts", role: "status" }, " (the host did not open it)"));
      }
    });
  }
  document.addEventListener("click", follow);
  document.addEventListener("auxclick", follow);

  // The size of the page is the host's to know, from the end of the handshake on.
  let size = "";
  function measure() {
    const width = window.innerWidth, height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    const now = width + "x" + height;
    if (!height || now === size) return;
    size = now;
    tell("ui/notifications/size-changed", { width, height });
  }

  say("Waiting for the result.");
  ask("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "marchwarden", title: "Marchwarden research report", version: "1.0.0" },
    appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
  }, (result, failed) => {
    if (failed) return say("The host did not accept this view.");
    paint(object(result.hostContext).theme);
    tell("ui/notifications/initialized", {});
    measure();
    new ResizeObserver(measure).observe(document.documentElement);
  });
})();
