package browsertest

import (
	"cmp"
	"os"
	"path/filepath"
)

// Screen is what a page is shown on.
type Screen struct {
	Width, Height int     // in CSS pixels; default 1280 by 800
	Scale         float64 // pixels of the picture for each of them; default 1
	Phone         bool    // a touch screen that keeps to the page's viewport
	Dark          bool    // its user prefers dark pages; light otherwise
	Still         bool    // and no motion
	Print         bool    // it is paper
}

// Show shows the page on a screen, from now on.
func (p *Page) Show(s Screen) {
	p.t.Helper()
	p.must("Emulation.setDeviceMetricsOverride", params{"width": cmp.Or(s.Width, 1280), "height": cmp.Or(s.Height, 800), "deviceScaleFactor": cmp.Or(s.Scale, 1), "mobile": s.Phone}, nil)
	p.must("Emulation.setTouchEmulationEnabled", params{"enabled": s.Phone}, nil)
	media, scheme, motion := "", "light", "no-preference"
	if s.Print {
		media = "print"
	}
	if s.Dark {
		scheme = "dark"
	}
	if s.Still {
		motion = "reduce"
	}
	p.must("Emulation.setEmulatedMedia", params{"media": media, "features": []params{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}}}, nil)
}

// Screenshot is a PNG picture of the page: all of it, or what is in view. It is taken when fonts are there and the page has painted.
func (p *Page) Screenshot(whole bool) []byte {
	p.t.Helper()
	p.Eval(`(async () => { await document.fonts.ready;
		await new Promise(done => { const late = setTimeout(done, 1000); requestAnimationFrame(() => requestAnimationFrame(() => { clearTimeout(late); done(); })); }); })()`, nil)
	with := params{"format": "png"}
	if whole {
		var layout struct {
			Size struct {
				Width  float64 `json:"width"`
				Height float64 `json:"height"`
			} `json:"cssContentSize"`
		}
		p.must("Page.getLayoutMetrics", nil, &layout)
		with["captureBeyondViewport"] = true
		with["clip"] = params{"x": 0, "y": 0, "width": layout.Size.Width, "height": layout.Size.Height, "scale": 1}
	}
	var answer struct {
		Data []byte `json:"data"`
	}
	p.must("Page.captureScreenshot", with, &answer)
	return answer.Data
}

// Save writes a Screenshot into a file, and makes its folder.
func (p *Page) Save(path string, whole bool) {
	p.t.Helper()
	picture := p.Screenshot(whole)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatalf("browsertest: %v", err)
	}
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		p.t.Fatalf("browsertest: %v", err)
	}
}

// Scripts sets whether documents that are loaded from now on may run their scripts. Those of the test run all the same, but nothing calls them back: no timer and
// no frame.
func (p *Page) Scripts(on bool) {
	p.t.Helper()
	p.must("Emulation.setScriptExecutionDisabled", params{"value": !on}, nil)
	p.scriptless = !on
}
