package keys

import "io/fs"

// private allows every mode: Windows has none that would say who can get at a file.
func private(fs.FileInfo) fs.FileMode { return fs.ModePerm }
