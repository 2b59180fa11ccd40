// What the pages do by themselves. Everything here is a convenience: without it the
// same links and forms work, but a run is not followed.
(() => {
  "use strict";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const memory = {
    get(key) { try { return localStorage.getItem("marchwarden." + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("marchwarden." + key, value); } catch { /* not remembered */ } },
  };

  // The theme is set before anything is painted: this script stands in the head.
  const themes = ["system", "light", "dark"];
  let theme = themes.includes(memory.get("theme")) ? memory.get("theme") : "system";
  function dress() {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  }
  dress();
  root.classList.add("js");

  function themeSwitch() {
    const button = byId("theme");
    if (!button) return;
    const label = () => { button.textContent = "Theme: " + theme; };
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      memory.set("theme", theme);
      dress();
      label();
    });
    label();
  }

  // A page of a PDF that cannot be drawn is left out: its text is there. The event does not bubble.
  document.addEventListener("error", (event) => {
    const leaf = event.target.closest?.(".leaf");
    if (leaf) leaf.hidden = true;
  }, true);

  // Counters say how much of a text's limit is used, in characters as the contract
  // counts them.
  function counters() {
    for (const counter of document.querySelectorAll(".counter")) {
      const field = byId(counter.dataset.for);
      const limit = Number(field.dataset.limit);
      const show = () => {
        const n = [...field.value].length;
        counter.textContent = n > limit * 0.8 ? `${n} of ${limit}` : "";
        counter.classList.toggle("over", n > limit);
        field.setCustomValidity(n > limit ? `This is ${n - limit} characters too long.` : "");
      };
      field.addEventListener("input", show);
      show();
    }
  }

  // Enter asks; with Shift it begins a line.
  function asking() {
    byId("question")?.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing) return;
      event.preventDefault();
      event.target.form.requestSubmit();
    });
  }

  // Documents are handed over one by one: chosen, or dropped anywhere on the page.
  function documents() {
    const form = byId("upload");
    if (!form) return;
    const handOver = async (file) => {
      const headers = { "X-CSRF-Token": form.elements.csrf.value, "Content-Type": "application/octet-stream" };
      const answer = await fetch("/library/files?name=" + encodeURIComponent(file.name), { method: "POST", headers, body: file });
      if (answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      throw new Error(page.querySelector(".says")?.textContent || "it was not taken");
    };
    const send = async (files) => {
      const failed = [];
      for (const [i, file] of files.entries()) {
        byId("sent").textContent = `${i + 1} of ${files.length}: ${file.name}`;
        try { await handOver(file); } catch (why) { failed.push(`${file.name}: ${why.message}`); }
      }
      byId("sent").textContent = failed.join("; ");
      byId("rest").hidden = !failed.length || failed.length === files.length;
      if (files.length && !failed.length) form.submit();
    };
    byId("files").addEventListener("change", (event) => send([...event.target.files]));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      send([...event.dataTransfer.files]);
    });
  }

  const parsed = (html, id) => new DOMParser().parseFromString(html, "text/html").getElementById(id);

  // Evidence: one source at a time is in the panel.
  function evidence() {
    const split = byId("split");
    if (!split || !byId("source")) return;
    const sentences = [...document.querySelectorAll("#answer .sentence[data-source]")];
    let opener = null; // what had the focus when the panel opened
    let at = -1;       // the sentence that j and k go from
    let asked = 0;
    const cited = () => Number(new URLSearchParams(location.search).get("source")) || 0;
    let shown = byId("source").classList.contains("open") ? cited() : 0;

    // The way from a sentence to its source: the first number behind it, or, where the
    // text has none, the sentence itself.
    const way = (sentence) => sentence.querySelector("a.cite") || sentence;

    function settle() {
      const panel = byId("source"); // one that the reader did not choose is announced only where it is seen
      const n = String(cited() || getComputedStyle(panel).position === "sticky" && Number(panel.dataset.preview) || 0);
      for (const a of split.querySelectorAll(".column a[data-source]")) a.classList.toggle("current", a.dataset.source === n);
      sentences.forEach((s, i) => {
        const here = [s, ...s.querySelectorAll("a.cite")].some((a) => a.dataset.source === n);
        s.classList.toggle("current", here && (at < 0 || at === i || !sentences[at].classList.contains("current")));
      });
      const mark = byId("excerpt");
      const box = mark && mark.closest(".stored");
      if (box) box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - Math.min(80, box.clientHeight / 4);
      for (const box of document.querySelectorAll("[data-keys]")) box.checked = letters();
    }

    async function open(n, remember) {
      const mine = ++asked;
      const address = `?source=${n}#source`;
      byId("source").setAttribute("aria-busy", "true");
      let fresh = null;
      try {
        const answer = await fetch(`${split.dataset.run}/panel?source=${n}`, { headers: { Accept: "text/html" } });
        if (answer.ok) fresh = parsed(await answer.text(), "source");
      } catch { /* the plain way says what is wrong */ }
      if (mine !== asked) return;
      if (!fresh) {
        location.assign(split.dataset.run + address);
        return;
      }
      byId("source").replaceWith(fresh);
      if (remember) history.pushState(null, "", address);
      shown = n;
      settle();
      fresh.focus({ preventScroll: true });
      // On a narrow screen the source comes up from below: what it is about stays in view.
      const under = opener && getComputedStyle(fresh).position === "fixed" && (opener.closest(".sentence") || opener).getBoundingClientRect();
      if (under && (under.bottom > fresh.getBoundingClientRect().top || under.top < 0)) scrollBy({ top: under.top - 24 });
    }

    function close(remember) {
      asked++;
      const panel = byId("source");
      panel.replaceChildren(byId("no-source").content.cloneNode(true));
      panel.classList.remove("open");
      delete panel.dataset.preview;
      panel.removeAttribute("aria-busy");
      panel.removeAttribute("aria-labelledby");
      panel.setAttribute("aria-label", "Source");
      if (remember) history.pushState(null, "", split.dataset.run);
      shown = 0;
      settle();
      if (opener && opener.isConnected) opener.focus({ preventScroll: true });
      else byId("answer").focus({ preventScroll: true });
    }

    function go(step) {
      if (!sentences.length) return;
      const here = document.activeElement.closest(".sentence");
      if (here) at = sentences.indexOf(here);
      at = at < 0 ? (step > 0 ? 0 : sentences.length - 1) : Math.min(Math.max(at + step, 0), sentences.length - 1);
      const link = way(sentences[at]);
      if (link === sentences[at]) link.tabIndex = -1;
      link.focus({ preventScroll: true });
      sentences[at].scrollIntoView({ block: "nearest" });
    }

    split.addEventListener("click", (event) => {
      if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const link = event.target.closest("a");
      if (link && link.classList.contains("close")) {
        event.preventDefault();
        close(true);
        return;
      }
      const sentence = event.target.closest(".sentence");
      const cite = link ? (link.dataset.source ? link : null) : sentence && sentence.dataset.source && getSelection().isCollapsed ? way(sentence) : null;
      if (!cite) return;
      event.preventDefault();
      if (cite.closest(".column")) {
        opener = cite;
        at = sentence ? sentences.indexOf(sentence) : -1;
      }
      open(Number(cite.dataset.source), true);
    });
    split.addEventListener("change", (event) => {
      if (event.target.matches("[data-keys]")) memory.set("letters", event.target.checked ? "on" : "off");
    });
    const letters = () => memory.get("letters") !== "off";
    document.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select")) return;
      const onSentence = event.target.closest(".sentence");
      const step = { j: letters() && 1, k: letters() && -1, ArrowDown: onSentence && 1, ArrowUp: onSentence && -1 }[event.key];
      if (step) {
        event.preventDefault();
        go(step);
      } else if (event.key === "Enter" && event.target === onSentence) {
        opener = onSentence;
        at = sentences.indexOf(onSentence);
        open(Number(onSentence.dataset.source), true);
      } else if (event.key === "Escape" && byId("source").classList.contains("open")) {
        close(true);
      }
    });
    // Going to another part of the page is no change of the source.
    addEventListener("popstate", () => {
      const n = cited();
      if (n === shown) return;
      if (n) open(n, false);
      else close(false);
    });
    settle();
  }

  // A run that goes on is followed: its page is asked for every second, and what changes is taken from it.
  function follow() {
    const run = byId("run");
    if (!run) return;
    const links = "a[href], summary, [tabindex]";
    let last = null; // what was put in place last
    let room = 0; // in pixels
    let since = performance.now();
    let looks = 0; // so far: only the latest counts

    // What is said aloud is said every ten seconds at most, and never twice.
    let told = "";
    let quiet = 0;
    const say = () => {
      const text = byId("live").dataset.summary;
      if (text === told || performance.now() < quiet) return;
      told = text;
      quiet = performance.now() + 10000;
      byId("said").textContent = text;
    };

    const put = (page) => {
      const fresh = page.getElementById("live");
      const old = byId("live");
      const seen = fresh.cloneNode(true);
      seen.querySelector("[data-elapsed]").remove(); // the clock goes on by itself
      if (seen.isEqualNode(last)) return;
      last = seen;
      // A draft takes the place of who is at what, and as much room at least: nothing below moves up.
      room = old.querySelector(":scope > .work")?.offsetHeight || room;
      const draft = fresh.querySelector(".draft");
      if (draft) draft.style.minHeight = `${room}px`;
      const opened = [...old.querySelectorAll("details")].map((d) => d.open);
      fresh.querySelectorAll("details").forEach((d, i) => { d.open = opened[i] || false; });
      const focus = old.contains(document.activeElement) ? [...old.querySelectorAll(links)].indexOf(document.activeElement) : -1;
      old.replaceWith(fresh);
      run.querySelector("h1").textContent = page.querySelector("h1").textContent; // it comes with the record
      document.title = page.title;
      if (focus >= 0) fresh.querySelectorAll(links)[focus]?.focus({ preventScroll: true });
      since = performance.now();
    };

    const tick = () => {
      say();
      const clock = document.querySelector("#live [data-elapsed]");
      if (!clock) return;
      const s = Number(clock.dataset.elapsed) + Math.floor((performance.now() - since) / 1000);
      clock.textContent = s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    };

    const leave = () => { looks++; };
    const look = async () => {
      const mine = ++looks;
      if (document.hidden) return;
      let page = null;
      let why = ""; // it stays as it is
      try {
        const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
        if (answer.status === 401) why = "This browser is not signed in any more. When it is, this page goes on.";
        else if (answer.headers.has("Retry-After")) why = "This run cannot be watched just now. Trying again.";
        page = new DOMParser().parseFromString(await answer.text(), "text/html");
      } catch { /* there is no page */ }
      if (mine !== looks) return;
      if (!page?.getElementById("main")) why = "The connection is lost; trying again. The run goes on meanwhile."; // or another answers
      byId("connection").textContent = why;
      if (!why && !page.getElementById("live")) {
        location.replace(location.pathname);
        return;
      }
      if (!why) put(page);
      setTimeout(() => { if (mine === looks) look(); }, 1000);
    };
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : look()));
    addEventListener("pagehide", leave);
    addEventListener("pageshow", look);
    document.addEventListener("submit", leave); // where a form leads, the end of the run must not lead away from
    setInterval(tick, 1000);
  }

  // What was just done is said once: loading the page again does not say it again.
  function once() {
    const here = new URL(location.href);
    if (!here.searchParams.has("notice")) return;
    here.searchParams.delete("notice");
    history.replaceState(null, "", here);
  }

  document.addEventListener("DOMContentLoaded", () => {
    once();
    themeSwitch();
    counters();
    asking();
    documents();
    evidence();
    follow();
    byId("faults")?.focus();
    document.addEventListener("click", (event) => {
      for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    });
  });
})();
