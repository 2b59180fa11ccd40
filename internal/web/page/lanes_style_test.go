package page

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

// palettes reads the colours of the style sheet: light, dark by the system, light and
// dark by the page.
func palettes(t *testing.T) []map[string][3]float64 {
	t.Helper()
	var out []map[string][3]float64
	for _, block := range regexp.MustCompile(`\.chart \{[^}]*--chart-page[^}]*\}`).FindAllString(chartStyle(t), -1) {
		p := map[string][3]float64{}
		for _, m := range regexp.MustCompile(`--chart-([a-z]+): #([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})`).FindAllStringSubmatch(block, -1) {
			var c [3]float64
			for i := range c {
				var v int
				if _, err := fmt.Sscanf(m[2+i], "%x", &v); err != nil {
					t.Fatal(err)
				}
				if c[i] = float64(v) / 255; c[i] <= 0.04045 {
					c[i] /= 12.92
				} else {
					c[i] = math.Pow((c[i]+0.055)/1.055, 2.4)
				}
			}
			p[m[1]] = c
		}
		out = append(out, p)
	}
	if len(out) != 4 {
		t.Fatalf("%d palettes, want 4", len(out))
	}
	return out
}

// chartContrast is as WCAG defines it, of linear colours.
func chartContrast(a, b [3]float64) float64 {
	light := func(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] + 0.05 }
	return max(light(a), light(b)) / min(light(a), light(b))
}

func TestChartContrast(t *testing.T) {
	for i, p := range palettes(t) {
		for _, name := range strings.Fields("ink soft strong good bad a b c d e f") { // letters on bars have the page's colour
			if c := chartContrast(p[name], p["page"]); c < 4.5 {
				t.Errorf("palette %d: %s on the page has %.2f", i, name, c)
			}
		}
	}
}

func TestThemesAgree(t *testing.T) {
	p := palettes(t)
	for i := range 2 {
		for name, c := range p[i] {
			if p[i+2][name] != c || len(p[i]) != len(p[i+2]) {
				t.Errorf("%s differs between what the system and what the page says", name)
			}
		}
	}
}

// sights are what colours become to those who lack a kind of cones (Viénot, Brettel and
// Mollon 1999; linear RGB), and to all others.
var sights = map[string][3][3]float64{
	"all":          {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.11238, 0.88762, 0}, {0.11238, 0.88762, 0}, {0.00401, -0.00401, 1}},
	"deuteranopia": {{0.29275, 0.70725, 0}, {0.29275, 0.70725, 0}, {-0.02234, 0.02234, 1}},
}

// lab is a linear colour in CIELAB.
func lab(c [3]float64) [3]float64 {
	f := func(v float64) float64 {
		if v = max(v, 0); v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x, y, z := f((0.4124*c[0]+0.3576*c[1]+0.1805*c[2])/0.9505), f(0.2126*c[0]+0.7152*c[1]+0.0722*c[2]), f((0.0193*c[0]+0.1192*c[1]+0.9505*c[2])/1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// TestColoursAreTold says that colours that stand side by side are told apart by those
// who see fewer of them, too; textures, heights and letters come on top.
func TestColoursAreTold(t *testing.T) {
	const least = 14 // of CIE76; 2.3 is just to be seen
	for i, p := range palettes(t) {
		for sight, m := range sights {
			seen := map[string][3]float64{}
			for _, name := range strings.Fields("a b c d e f") {
				var c [3]float64
				for r := range c {
					c[r] = m[r][0]*p[name][0] + m[r][1]*p[name][1] + m[r][2]*p[name][2]
				}
				seen[name] = lab(c)
			}
			for _, pair := range strings.Fields("ab ac ad ae af bc bd be bf cd ce cf de df ef") {
				a, b := seen[pair[:1]], seen[pair[1:]]
				if d := math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2])); d < least {
					t.Errorf("palette %d, %s: %s and %s are %.1f apart", i, sight, pair[:1], pair[1:], d)
				}
			}
		}
	}
}

func chartStyle(t *testing.T) string {
	t.Helper()
	css, err := assets.ReadFile("assets/chart.css")
	if err != nil {
		t.Fatal(err)
	}
	return string(css)
}
