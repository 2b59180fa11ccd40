package datatest

import "os"

// temporary is the folder of temporary files before InMemory names another: what one
// package leaves there, the next finds.
var temporary = os.TempDir()

// InMemory has the temporary files of a package's tests in memory, where the machine has a
// file system for that with room enough: what is made durable there waits for no disk. It is
// for TestMain, before the tests run.
func InMemory() {
	if dir := memory(); dir != "" {
		if err := os.Setenv("TMPDIR", dir); err != nil {
			panic(err)
		}
	}
}
