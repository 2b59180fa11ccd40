package extract_test

import (
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
)

func init() {
	extract.OpenPDF = func(cacheDir string) extract.PDF { return pdf.New(pdf.Config{CacheDir: cacheDir}) }
}
