// Command marchwarden may use the clock, the environment and the standard streams of its process.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	fmt.Println(time.Now(), os.Getenv("HOME"))
	os.Exit(1)
}
