// The host's side of the MCP Apps protocol, for the tests: it shows the view in two
// frames, one that it can look into and one in a sandbox, plays a host to each, and
// tells the server what it saw.
const verdicts = [];
const check = (name, ok, detail = "") => verdicts.push({ name, ok: Boolean(ok), detail: ok ? "" : String(detail).slice(0, 2000) });
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(name, test) {
  for (let i = 0; i < 250; i++) {
    const got = test();
    if (got) return got;
    await rest(20);
  }
  check(name, false, "never happened");
  throw new Error(name);
}

let executed = 0;
window.addEventListener("message", (event) => { if (event.data && event.data.executed) executed++; });
window.executed = () => { executed++; };

class View {
  constructor(page, sandbox) {
    this.got = [];
    this.frame = document.createElement("iframe");
    if (sandbox) this.frame.setAttribute("sandbox", sandbox);
    this.frame.style.width = "600px";
    window.addEventListener("message", (event) => { if (event.source === this.frame.contentWindow) this.got.push(event.data); });
    this.frame.srcdoc = page;
    document.body.append(this.frame);
  }
  send(message) { this.frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*"); }
  tell(method, params) { this.send({ method, params }); }
  take(method) {
    const i = this.got.findIndex((m) => m.method === method);
    return i < 0 ? null : this.got.splice(i, 1)[0];
  }
  next(method) { return until("a message " + method, () => this.take(method)); }
  async start(theme) {
    const ask = await this.next("ui/initialize");
    await rest(50);
    check("nothing is sent before the handshake", this.got.length === 0, JSON.stringify(this.got));
    this.send({ id: ask.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "test", version: "1" }, hostCapabilities: { openLinks: {} }, hostContext: { theme } } });
    await this.next("ui/notifications/initialized");
    return ask;
  }
  get doc() { return this.frame.contentDocument; }
  get view() { return this.doc.getElementById("view"); }
  async show(result) {
    this.view.replaceChildren();
    this.tell("ui/notifications/tool-result", result);
    await until("a result is shown", () => this.view.childNodes.length > 0);
  }
}

const tags = "a article bdi blockquote button code dd details div dl dt h2 figcaption figure h3 h4 li main meter nav ol p section span strong summary table tbody td th thead tr ul".split(" ");
const attributes = "aria-label aria-labelledby class dir href id lang rel tabindex title value type data-source role scope".split(" ");
function inert(name, view) {
  const bad = [];
  for (const e of view.querySelectorAll("*")) {
    if (!tags.includes(e.localName)) bad.push("<" + e.localName + ">");
    for (const a of e.attributes) if (!attributes.includes(a.name)) bad.push(e.localName + " " + a.name);
    const href = e.getAttribute("href");
    if (href && !/^(https?:\/\/[^@]*$|#)/.test(href)) bad.push(href);
  }
  check(name + ": only what a report has is on the page", bad.length === 0, bad.join(", "));
}
async function clickAll(name, v) {
  v.got.length = 0;
  const links = [...v.view.querySelectorAll("a")];
  for (const link of links) {
    link.click();
    link.dispatchEvent(new v.frame.contentWindow.MouseEvent("auxclick", { button: 1, bubbles: true, cancelable: true }));
  }
  await rest(40);
  const opened = v.got.filter((m) => m.method === "ui/open-link").map((m) => m.params.url);
  check(name + ": only web addresses are opened", opened.every((u) => /^https?:\/\//.test(u)), opened.join(" "));
  check(name + ": a click leads nowhere", v.frame.contentWindow.location.href === "about:srcdoc", v.frame.contentWindow.location.href);
  check(name + ": nothing else is asked for", v.got.every((m) => m.method === "ui/open-link" || m.method === "ui/notifications/size-changed"), JSON.stringify(v.got));
}

async function talk(v, given) {
  const ask = await v.start("dark");
  check("the handshake names the protocol", ask.params.protocolVersion === "2026-01-26" && ask.params.appInfo.name && ask.params.appInfo.version && ask.params.appCapabilities, JSON.stringify(ask));
  const first = await v.next("ui/notifications/size-changed");
  const paper = () => v.frame.contentWindow.getComputedStyle(v.doc.body).backgroundColor;
  check("the theme of the handshake is dark", paper() === "rgb(20, 23, 26)", paper());
  for (const [theme, colour] of [["light", "rgb(255, 255, 255)"], ["dark", "rgb(20, 23, 26)"], ["light", "rgb(255, 255, 255)"]]) {
    v.tell("ui/notifications/host-context-changed", { theme });
    await until("the theme becomes " + theme, () => paper() === colour);
  }
  v.tell("ui/notifications/host-context-changed", { theme: "url(x)", displayMode: "inline" });
  v.tell("ui/notifications/tool-input", { arguments: { question: given.question } });
  await until("the question is the title", () => v.doc.querySelector("h1").textContent === given.question);

  const result = { content: [], structuredContent: {}, _meta: { "marchwarden/view": given.view } };
  const sibling = document.createElement("iframe");
  document.body.append(sibling);
  sibling.contentWindow.target = v.frame.contentWindow;
  sibling.contentWindow.eval("(m) => target.postMessage(m, '*')")({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: result });
  for (const m of [null, 1, "x", [], {}, { method: "ui/notifications/tool-result", params: result }, { jsonrpc: "1.0", method: "ui/notifications/tool-result", params: result },
    { jsonrpc: "2.0", method: ["ui/notifications/tool-result"], params: result }, { jsonrpc: "2.0", method: "constructor", params: result }, { jsonrpc: "2.0", id: 99, result }]) v.frame.contentWindow.postMessage(m, "*");
  await rest(100);
  check("strangers and other shapes are not heard", v.view.childNodes.length === 0, v.view.innerHTML);

  for (const [method, wanted] of [["ping", "result"], ["ui/resource-teardown", "result"], ["tools/list", "error"], ["constructor", "error"]]) {
    v.send({ id: "q-" + method, method, params: {} });
    const reply = await until("an answer to " + method, () => v.got.find((m) => m.id === "q-" + method));
    check("the answer to " + method, wanted in reply && !("method" in reply) && (wanted === "result" || reply.error.code === -32601), JSON.stringify(reply));
  }

  v.got.length = 0;
  await v.show(result);
  const whole = new DOMParser().parseFromString(given.view, "text/html").body;
  check("the report's HTML is shown whole", v.view.innerHTML === whole.innerHTML, difference(v.view.innerHTML, whole.innerHTML));
  for (const words of given.words) check("the view says " + words, v.view.textContent.includes(words), v.view.textContent);
  inert("a report", v.view);
  const grown = await v.next("ui/notifications/size-changed");
  check("the size grows", grown.params.height > first.params.height && grown.params.width === 600, JSON.stringify([first, grown]));
  await walk(v);
  await clickAll("a report", v);
  v.frame.style.width = "320px";
  await rest(100);
  const wide = v.doc.documentElement.scrollWidth;
  check("it fits 320 pixels", wide <= 320, wide);
  v.frame.style.width = "600px";
}

function difference(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return "at " + i + ": " + a.slice(i, i + 200) + " | " + b.slice(i, i + 200);
}

// walk goes to a source and back with the keyboard's focus, and has a link opened.
async function walk(v) {
  const marker = v.view.querySelector("#answer .cite, [id=answer] a");
  marker.click();
  const source = v.doc.getElementById(marker.getAttribute("href").slice(1));
  check("a marker leads to its source", v.doc.activeElement === source && source.classList.contains("here"), v.doc.activeElement.outerHTML);
  const back = source.querySelector("button");
  check("there is a way back", back && back.textContent !== "", source.innerHTML);
  back.click();
  check("it leads back to the marker", v.doc.activeElement === marker && !v.doc.querySelector("button, .here"), v.doc.activeElement.outerHTML);
  const link = v.view.querySelector("a[href^=http]");
  v.got.length = 0;
  (link.querySelector("*") || link).click();
  const ask = await v.next("ui/open-link");
  check("a link is the host's to open", ask.params.url === link.href, JSON.stringify(ask));
  link.dispatchEvent(new v.frame.contentWindow.MouseEvent("auxclick", { button: 1, bubbles: true, cancelable: true }));
  await v.next("ui/open-link");
  v.send({ id: ask.id, error: { code: -32000, message: "no" } });
  await until("a refusal is shown", () => link.nextElementSibling && link.nextElementSibling.textContent.includes("did not open"));
}

async function attack(v, given) {
  for (const [i, html] of (given.hostile || []).entries()) {
    await v.show({ content: [], _meta: { "marchwarden/view": "<p>hostile</p>" + html } });
    await rest(20);
    inert("hostile HTML " + i, v.view);
    await clickAll("hostile HTML " + i, v);
  }
}

async function fall(v, given) {
  await v.show({ content: [], structuredContent: given.structured, _meta: { "other/view": "<p>x</p>" } });
  inert("the result as text", v.view);
  for (const words of given.structuredWords) check("the result as text says " + words, v.view.textContent.includes(words), v.view.textContent);
  check("the result as text has its markers", v.view.querySelectorAll("#answer a.cite").length === 2 && !v.view.textContent.includes("\\["), v.view.innerHTML);
  await walk(v);
  await clickAll("the result as text", v);
  for (const odd of [{ answer: "a [1]", citations: [null, 7, "x", { locator: 5, title: {}, raw_excerpt: [] }], gaps: "no", warnings: { a: 1 } }, { answer: "a", citations: { length: 5 } }]) {
    await v.show({ structuredContent: odd });
    check("an odd result is shown", v.view.textContent.includes("a"), v.view.innerHTML);
  }
  await v.show({ content: [{ type: "text", text: given.question }, { type: "image" }, null], structuredContent: given.structured, _meta: { "marchwarden/view": given.view }, isError: true });
  check("an error is text", v.view.textContent === given.question && v.view.querySelector(".problem"), v.view.innerHTML);
  v.tell("ui/notifications/tool-result", { content: [] });
  await until("an empty result is told", () => v.doc.getElementById("status").textContent.includes("nothing to show"));
  v.tell("ui/notifications/tool-cancelled", { reason: given.question });
  await until("a cancelled call is told", () => v.doc.getElementById("status").textContent.includes(given.question));
}

async function main() {
  const [page, given] = await Promise.all([fetch("/app").then((r) => r.text()), fetch("/given").then((r) => r.json())]);
  if (!given.only) {
    const boxed = new View(page, "allow-scripts");
    await boxed.start("light");
    const first = await boxed.next("ui/notifications/size-changed");
    boxed.tell("ui/notifications/tool-input", { arguments: {} });
    boxed.tell("ui/notifications/tool-result", { content: [], _meta: { "marchwarden/view": given.view } });
    const grown = await boxed.next("ui/notifications/size-changed");
    check("it works in a sandbox", grown.params.height > first.params.height, JSON.stringify([first, grown]));
    boxed.frame.remove();
  }
  const open = new View(page);
  if (given.only) await open.start("light");
  else await talk(open, given);
  open.frame.contentWindow.alert = window.executed;
  await attack(open, given);
  if (!given.only) await fall(open, given);
  await rest(100);
}

main().catch((e) => check("the test ran", false, e.stack)).finally(() => fetch("/verdict", { method: "POST", body: JSON.stringify({ verdicts, executed }) }));
