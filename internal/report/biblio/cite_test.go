package biblio

import (
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	page := Entry{Kind: WebPage, Title: "Frost dates", Published: "2025-03-02", Accessed: "2026-11-14", Publisher: "example.org", URL: "https://example.org/frost", Authors: []Name{{Literal: "Ann Bee"}}}
	paper := Entry{Kind: Paper, Title: "Of frost?", Published: "2024-05", Accessed: "2026-05-01", Journal: "Journal of Frost", DOI: "10.1000/xyz", Authors: []Name{{Family: "Bee", Given: "Ann Mary"}, {Family: "van der Berg", Given: "Jan"}}}
	bare := Entry{Kind: WebPage, URL: "https://gone.example/a", Accessed: "never"}
	file := Entry{Kind: Document, Title: "Notes", Locator: "notes/frost.md", Published: "2020"}
	many := Entry{Title: "T", Locator: "x", Authors: []Name{{Family: "A", Given: "B"}, {Family: "C", Given: "D"}, {Family: "E", Given: "F"}}, MoreAuthors: 2}
	hostile := Entry{Title: "a\x1b[31m\nb\u202e", Locator: "c\td"}
	for _, c := range []struct {
		style         Style
		e             Entry
		want, address string
	}{
		{IEEE, page, "Ann Bee, “Frost dates,” example.org, Mar. 2, 2025. Accessed: Nov. 14, 2026. [Online]. Available:", page.URL},
		{"", paper, "A. M. Bee and J. van der Berg, “Of frost?,” Journal of Frost, May 2024. Accessed: May 1, 2026. [Online]. Available:", "https://doi.org/10.1000/xyz"},
		{IEEE, bare, "“gone.example.” [Online]. Available:", bare.URL},
		{IEEE, file, "“Notes,” 2020. notes/frost.md.", ""},
		{IEEE, many, "B. A, D. C, F. E, et al., “T.” x.", ""},
		{APA, page, "Ann Bee. (2025, March 2). Frost dates. example.org. Retrieved November 14, 2026, from", page.URL},
		{APA, paper, "Bee, A. M., & van der Berg, J. (2024, May). Of frost? Journal of Frost. Retrieved May 1, 2026, from", "https://doi.org/10.1000/xyz"},
		{APA, bare, "gone.example. (n.d.).", bare.URL},
		{APA, file, "Notes. (2020). notes/frost.md.", ""},
		{Chicago, page, "Ann Bee. “Frost dates.” example.org. March 2, 2025. Accessed November 14, 2026.", page.URL},
		{Chicago, paper, "Bee, Ann Mary, and Jan van der Berg. “Of frost?” Journal of Frost. May 2024. Accessed May 1, 2026.", "https://doi.org/10.1000/xyz"},
		{Chicago, hostile, "“a b.” c d.", ""},
	} {
		if got, address := c.style.Reference(c.e); got != c.want || address != c.address {
			t.Errorf("%s:\n got %q %s\nwant %q %s", c.style, got, address, c.want, c.address)
		}
	}
	if strings.Join(Styles(), " ") != "apa ieee chicago" || IEEE.Alphabetical() || !APA.Alphabetical() {
		t.Error("the styles are others")
	}
}
