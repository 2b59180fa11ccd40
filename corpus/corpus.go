// Package corpus owns the embedded library: the short documents that ship inside the
// program so that a question can be answered with no key, no network and no set-up.
//
// Each document is a Markdown file with a header of exactly three keys, title, date
// and topic. The package hands out the files as they are; it does not parse headers,
// index, rank or cite. Two documents disagree on purpose about tomatoes above 6,000
// feet, so that the report of contradictions can be seen on a fresh machine.
package corpus

import (
	"embed"
	"io/fs"
)

// Name is how the embedded library is called wherever a person reads about it.
const Name = "embedded library"

//go:embed *.md
var documents embed.FS

// FS returns the documents as a read-only file system. All files lie at its root and
// end in .md; listings are sorted by name. FS never fails, and its value is safe for
// use by several goroutines.
func FS() fs.FS { return documents }
