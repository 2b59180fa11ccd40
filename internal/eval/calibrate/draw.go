package calibrate

import (
	"fmt"
	"html"
	"math"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
)

// width is of a bar in the terminal, in characters.
const width = 40

// Text is the reliability diagram for a terminal: a line for each interval with answers,
// a bar as long as the share of them that was right, and a mark where the mean of what
// was said lies. Calibrated, the bar ends at the mark.
func Text(b []metric.Bin) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-11s %7s %7s %7s  %s\n", "confidence", "answers", "said", "right", "right, and | where it was said")
	for _, bin := range b {
		if bin.N == 0 {
			continue
		}
		line := []rune(strings.Repeat("█", int(math.Round(bin.True*width))) + strings.Repeat("·", width-int(math.Round(bin.True*width))))
		line[min(width-1, int(bin.Said*width))] = '|'
		fmt.Fprintf(&out, "%.1f – %.1f   %7d   %.3f   %.3f  %s\n", bin.Low, bin.High, bin.N, bin.Said, bin.True, string(line))
	}
	return out.String()
}

// side is of the square in the picture, and margin around it, in pixels.
const side, margin = 400.0, 56.0

// SVG is the reliability diagram as a picture: what was said to the right, what was right
// upwards, the scores before as rings and the probabilities after as discs, the larger
// the more answers. On the diagonal the two agree.
func SVG(f *Fit) string {
	var out strings.Builder
	size := side + 2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13" role="img" aria-label="Reliability diagram">`+"\n", size, size)
	fmt.Fprintf(&out, `<rect width="%g" height="%g" fill="#fff"/>`+"\n", size, size)
	fmt.Fprintf(&out, `<text x="%g" y="24" text-anchor="middle" font-weight="bold">%s</text>`+"\n", size/2,
		html.EscapeString(fmt.Sprintf("%d answers: ECE %.3f before, %.3f after (held back)", f.Table.Answers, f.Table.Before.ECE, f.Table.After.ECE)))
	for i := 0; i <= 10; i += 2 {
		v := float64(i) / 10
		x, y := at(v, v)
		fmt.Fprintf(&out, `<path d="M%.1f %g V%g M%g %.1f H%g" stroke="#ddd"/>`+"\n", x, margin, margin+side, margin, y, margin+side)
		fmt.Fprintf(&out, `<text x="%.1f" y="%g" text-anchor="middle">%.1f</text><text x="%g" y="%.1f" text-anchor="end">%.1f</text>`+"\n", x, margin+side+18, v, margin-8, y+4, v)
	}
	fmt.Fprintf(&out, `<path d="M%g %g L%g %g" stroke="#888" stroke-dasharray="6 4"/>`+"\n", margin, margin+side, margin+side, margin)
	dots(&out, f.Before, f.Table.Answers, `fill="none" stroke="#b35900" stroke-width="2"`, "before")
	dots(&out, f.After, f.Table.Answers, `fill="#0b57d0" fill-opacity="0.75"`, "after")
	fmt.Fprintf(&out, `<text x="%g" y="%g" text-anchor="middle">said</text>`+"\n", size/2, size-12)
	fmt.Fprintf(&out, `<text x="18" y="%g" text-anchor="middle" transform="rotate(-90 18 %g)">right</text>`+"\n", size/2, size/2)
	out.WriteString("</svg>\n")
	return out.String()
}

// at is where a point of the unit square lies in the picture.
func at(said, right float64) (x, y float64) { return margin + said*side, margin + side - right*side }

func dots(out *strings.Builder, b []metric.Bin, answers int, style, when string) {
	for _, bin := range b {
		if bin.N == 0 {
			continue
		}
		x, y := at(bin.Said, bin.True)
		radius := 3 + 22*math.Sqrt(float64(bin.N)/float64(answers))
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="%.1f" %s><title>%s: %d answers, said %.3f, right %.3f</title></circle>`+"\n",
			x, y, radius, style, when, bin.N, bin.Said, bin.True)
	}
}
