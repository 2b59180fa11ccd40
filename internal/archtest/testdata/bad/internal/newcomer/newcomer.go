package newcomer

import (
	"context"
	_ "example.com/nobody"
	"fmt"
	"log"
	_ "modernc.org/sqlite"
	"net/http"
	"os"
	"text/template"
	clock "time"
)

var _ = log.Fatal
var _ template.Template

func now() (clock.Time, string) { return clock.Now(), os.Getenv("HOME") }
func say()                      { fmt.Println("out") }
func file() *os.File            { return os.Stderr }
func client() *http.Client      { return http.DefaultClient }

// A variable that hides an import is no use of it.
func shadow() int {
	os := struct{ Getenv int }{1}
	return os.Getenv
}

// Wide has one method too many.
type Wide interface {
	A()
	B()
	C()
	D()
	E()
	F()
}

func Many(ctx context.Context, a, b, c int, d, e, f string) {}

// Enough takes five parameters beside its context, which is allowed.
func Enough(ctx context.Context, a, b, c int, d, e string) {}

// Lost tells nobody why.
func Lost() {}
