package drift

import "testing"

func TestPaperOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://dl.acm.org/doi/10.1145/3292500.3330701":                            "10.1145/3292500.3330701",
		"https://dl.acm.org/doi/abs/10.1145/3292500.3330701":                        "10.1145/3292500.3330701",
		"https://onlinelibrary.wiley.com/doi/full/10.1002/adma.201":                 "10.1002/adma.201",
		"https://link.springer.com/article/10.1007/s11192-020-1":                    "10.1007/s11192-020-1",
		"https://www.frontiersin.org/articles/10.3389/fpsyg.2013.00863/full":        "10.3389/fpsyg.2013.00863",
		"https://journals.plos.org/plosone/article?id=10.1371/journal.pone.0000001": "10.1371/journal.pone.0000001",
		"https://link.springer.com/content/pdf/10.1007/s11192-020-1.pdf":            "",
		"https://www.biorxiv.org/content/10.1101/2020.01.01.123456v2.full":          "",
		"https://example.org/blog/10.1000/x/comments/7":                             "",
		"https://example.org/?q=10.1000/x":                                          "",
		"https://example.org/article?id=17":                                         "",
		"https://example.org/doi/10.1000/x/supplement/3":                            "",
		"https://example.org/doi/pdf/10.1000/x.pdf":                                 "",
	} {
		id, ok := paperOf(address)
		if got := id.DOI(); got != want || ok != (want != "") {
			t.Errorf("%s names %q, want %q", address, got, want)
		}
	}
}
