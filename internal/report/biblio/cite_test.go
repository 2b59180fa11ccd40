package biblio

import "testing"

func TestReference(t *testing.T) {
	page := Entry{Title: "Frost dates", Published: "2025-03-02", Accessed: "2026-11-14", Publisher: "example.org", URL: "https://example.org/frost", Authors: []Name{{Literal: "Ann Bee"}}}
	paper := Entry{Title: "Of frost?", Published: "2024-05", Accessed: "2026-05-01", Journal: "Journal of Frost", DOI: "10.1000/xyz", Authors: []Name{{Family: "Bee", Given: "Ann Mary"}, {Family: "van der Berg", Given: "Jan"}}}
	bare := Entry{URL: "https://gone.example/a", Accessed: "never"}
	file := Entry{Title: "Notes", Locator: "notes/frost.md", Published: "2020"}
	many := Entry{Title: "T", Locator: "x", Authors: []Name{{Family: "A", Given: "B"}, {Family: "C", Given: "D"}, {Family: "E", Given: "F"}}, MoreAuthors: 2}
	hostile := Entry{Title: "a\x1b[31m\nb\u202e", Locator: "c\td"}
	for _, c := range []struct {
		e             Entry
		want, address string
	}{
		{page, "Ann Bee, “Frost dates,” example.org, Mar. 2, 2025. Accessed: Nov. 14, 2026. [Online]. Available:", page.URL},
		{paper, "A. M. Bee and J. van der Berg, “Of frost?,” Journal of Frost, May 2024. Accessed: May 1, 2026. [Online]. Available:", "https://doi.org/10.1000/xyz"},
		{bare, "“gone.example.” [Online]. Available:", bare.URL},
		{file, "“Notes,” 2020. notes/frost.md.", ""},
		{many, "B. A, D. C, F. E, et al., “T.” x.", ""},
		{hostile, "“a b.” c d.", ""},
	} {
		if got, address := c.e.Reference(); got != c.want || address != c.address {
			t.Errorf("got %q %s\nwant %q %s", got, address, c.want, c.address)
		}
	}
}
