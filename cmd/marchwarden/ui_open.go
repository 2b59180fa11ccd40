package main

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// invite prints a link that lets the local user's browser in and opens it; another at
// every Enter.
func (b *uiApp) invite(ctx context.Context, base string, noOpen bool) {
	b.a.note("the page is at %s; this link lets your browser in, once:", base)
	link := b.server.Link(base)
	fmt.Fprintln(b.a.stdout, link)
	if b.a.errStyle().Width <= 0 {
		return // there is no screen
	}
	if !noOpen {
		b.a.openBrowser(link)
	}
	b.a.note("press Enter for another link, Ctrl-C to end")
	readInBackground()
	go func() {
		lines := bufio.NewScanner(b.a.stdin)
		for lines.Scan() && ctx.Err() == nil {
			fmt.Fprintln(b.a.stdout, b.server.Link(base))
		}
	}()
}

// openBrowser asks the system to open an address. Where it cannot, the link that was
// printed is there to be copied. What it starts outlives this program.
func (a *app) openBrowser(address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	default:
		// Without a screen xdg-open looks for a browser that works in a terminal, which would use up
		// the link unseen.
		x, _ := a.Env("DISPLAY")
		wayland, _ := a.Env("WAYLAND_DISPLAY")
		if x == "" && wayland == "" {
			return
		}
	}
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = onItsOwn()
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // how it ends is the browser's business
	}
}
