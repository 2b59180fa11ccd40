// Command marchwarden may use the clock, the environment and the standard streams of its process.
package main

import (
	"fmt"
	"os"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

var _ eval.Suite // the lab is no part of the program

func main() {
	fmt.Println(time.Now(), os.Getenv("HOME"))
	os.Exit(1)
}

type one struct{}

func (one) Research() {}

type other struct{}

func (other) Research() {}
