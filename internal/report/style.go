package report

// style is the style sheet of a report. It is light or dark as the reader's system
// is, fits a phone and paper, and loads nothing.
const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --page: #ffffff; --box: #f6f8fa; --line: #d0d7de; --link: #0a56a8; --mark: #fff1a8; --good: #1a6b34; --fair: #7d5200; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #a3abb5; --page: #14171a; --box: #1e2226; --line: #3a4149; --link: #7db7ff; --mark: #5c4d00; --good: #6fd08c; --fair: #e3b341; --bad: #ff8f87; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 50rem; background: var(--page); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.3; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .5rem 0; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; padding: .5rem 1rem; background: var(--page); border: 1px solid var(--line); }
.kind, .facts, .label, .cut, footer { color: var(--soft); font-size: .875rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; padding: 0; list-style: none; font-size: .875rem; }
nav li { margin: 0; }
nav a { display: inline-block; padding: .25rem 0; }
#answer p { font-size: 1.0625rem; }
.marker { text-decoration: none; font-size: .875em; white-space: nowrap; padding: 0 .1em; }
.claim.partial, .claim.unchecked { text-decoration: underline dotted var(--fair); text-underline-offset: .2em; }
.claim.unsupported { text-decoration: underline dashed var(--bad); text-underline-offset: .2em; }
.verdict { font-size: .75rem; border: 1px solid currentColor; border-radius: .25rem; padding: 0 .35rem; white-space: nowrap; }
.verdict.supported { color: var(--good); }
.verdict.partial, .verdict.unchecked { color: var(--fair); }
.verdict.unsupported { color: var(--bad); }
meter { width: 10rem; max-width: 40vw; height: 1rem; vertical-align: middle; }
dl { margin: .5rem 0; }
dl > div { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: .15rem 0; }
dt { flex: 0 0 14rem; color: var(--soft); }
dd { margin: 0; flex: 1 1 12rem; }
li { margin: .35rem 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.side, .source { border: 1px solid var(--line); border-radius: .5rem; padding: .25rem 1rem .75rem; margin: .75rem 0; }
.side { margin: 0; }
.source:target, li:target { border-color: var(--link); box-shadow: 0 0 0 2px var(--link); }
.locator { font-size: .875rem; }
code { font: .875rem/1.5 ui-monospace, monospace; }
.command { background: var(--box); border-radius: .25rem; padding: .25rem .75rem; }
blockquote { margin: .5rem 0; padding: .5rem .75rem; background: var(--box); border-left: .25rem solid var(--line); white-space: pre-wrap; }
.text { max-height: 22rem; overflow: auto; font-size: .9375rem; }
mark { background: var(--mark); color: inherit; padding: .1em 0; }
.hidden-character { unicode-bidi: isolate; color: var(--bad); }
.hidden-character::before { content: "[" attr(title) "]"; font-size: .75em; }
.problem { border: 1px solid var(--bad); border-radius: .25rem; padding: .25rem .75rem; }
summary { cursor: pointer; padding: .25rem 0; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
@media (prefers-contrast: more) { :root { --soft: var(--ink); --line: var(--ink); } }
@media print {
  :root { --ink: #000; --soft: #333; --page: #fff; --box: #fff; --line: #999; --link: #000; --mark: #eee; --good: #000; --fair: #000; --bad: #000; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav, .skip { display: none; }
  .text { max-height: none; overflow: visible; }
  .side, h2, h3 { break-inside: avoid; break-after: auto; }
  mark { border-bottom: 1.5pt solid #000; }
}
`
