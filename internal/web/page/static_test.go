package page

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStatic: what pages name is served, for good; nothing else is.
func TestStatic(t *testing.T) {
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		Static.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	named := regexp.MustCompile(`(?:src|href)="(/static/[^"]*)"`).FindAllStringSubmatch(string(page("ask", Ask{}, Ask.Page).render()), -1)
	kinds := map[string]int{}
	for _, m := range named {
		w := get("GET", m[1])
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d, %d bytes, %v", m[1], w.Code, w.Body.Len(), w.Header())
		}
		kinds[w.Header().Get("Content-Type")]++
		if head := get("HEAD", m[1]); head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != strconv.Itoa(w.Body.Len()) {
			t.Errorf("HEAD %s: %d, %v", m[1], head.Code, head.Header())
		}
	}
	if kinds["text/css; charset=utf-8"] != 1 || kinds["text/javascript; charset=utf-8"] != 1 || kinds["image/svg+xml"] != 2 {
		t.Errorf("pages load %v", kinds)
	}
	for _, path := range []string{"/static/", "/static/style.css", "/static/../page.go", "/static/style.000000000000.css", "/static/assets/style.css", "/"} {
		if w := get("GET", path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestNamesFollowContent: another style sheet has another name.
func TestNamesFollowContent(t *testing.T) {
	for at, body := range Static {
		if sum := fmt.Sprintf("%x", sha256.Sum256(body)); !strings.Contains(at, "."+sum[:12]+".") {
			t.Errorf("%s has the hash %s", at, sum)
		}
	}
}

// TestAssetsLoadNothing: style sheet, script and icon name no other file, and the script
// makes no code of texts.
func TestAssetsLoadNothing(t *testing.T) {
	for name, banned := range map[string]string{
		"style.css": `url\(|@import|expression|http`, "icon.svg": `<script|<image|href|on\w+=`,
		"app.js": `eval|Function\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|import |https?:`,
	} {
		body, err := assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "icon.svg" {
			body = []byte(strings.Replace(string(body), `xmlns="http://www.w3.org/2000/svg"`, "", 1))
		}
		if m := regexp.MustCompile(banned).Find(body); m != nil {
			t.Errorf("%s has %q", name, m)
		}
	}
}

// TestContrast holds the colours to WCAG AA: 4.5 to 1 for text, 3 to 1 for the edges of
// fields and marks; and the two ways to dark to each other.
func TestContrast(t *testing.T) {
	css, err := assets.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`:root[^{]*\{([^}]*--paper[^}]*)\}`).FindAllStringSubmatch(string(css), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d sets of colours, want light, dark by the system, dark by choice", len(blocks))
	}
	if fold := strings.Fields; strings.Join(fold(blocks[1][1]), " ") != strings.Join(fold(blocks[2][1]), " ") {
		t.Error("dark by the system and dark by choice differ")
	}
	for i, theme := range []string{"light", "dark"} {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+)`).FindAllStringSubmatch(blocks[i][1], -1) {
			colour[m[1]] = m[2]
		}
		pairs := map[string]float64{"mark-ink mark": 4.5, "accent-ink accent": 4.5, "accent accent-wash": 4.5, "ink accent-wash": 4.5}
		for _, ground := range []string{"paper", "card", "sunk"} {
			for _, ink := range []string{"ink", "soft", "accent", "good", "fair", "bad"} {
				pairs[ink+" "+ground] = 4.5
			}
		}
		pairs["edge paper"], pairs["edge card"] = 3, 3
		pairs["good line"], pairs["fair line"], pairs["bad line"] = 3, 3, 3
		for pair, least := range pairs {
			a, b, _ := strings.Cut(pair, " ")
			if got := contrast(t, colour[a], colour[b]); got < least {
				t.Errorf("%s: %s on %s is %.2f, below %.1f", theme, a, b, got, least)
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	if len(colour) == 4 {
		colour = fmt.Sprintf("#%c%c%c%c%c%c", colour[1], colour[1], colour[2], colour[2], colour[3], colour[3])
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil || len(colour) != 7 {
		t.Fatalf("%q is no colour", colour)
	}
	sum := 0.
	for i, weight := range []float64{.0722, .7152, .2126} {
		c := float64(v>>(8*i)&0xff) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
