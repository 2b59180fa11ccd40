package durable

import "io/fs"

// allowed is every mode: Windows has none that would say who can get at a file.
func allowed(fs.FileInfo) fs.FileMode { return fs.ModePerm }
