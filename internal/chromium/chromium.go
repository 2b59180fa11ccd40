// Package chromium has a local headless Chromium print a report to PDF. It stands alone because it runs
// a program that is not ours, and knows the flags without which that would call home.
//
// It loads no page of the web: Print hands it a document of our own, runs none of its scripts and lets
// it reach nothing.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	printTime = time.Minute
	killTime  = time.Second // in which the children of a browser that was killed end, too
	// longestScratch leaves room for the name of the socket that the browser makes in its folder for temporary
	// files: a socket's path may have 104 bytes.
	longestScratch = 56
)

// names are the programs that Find looks for, best first.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chromium-headless-shell", "headless_shell", "microsoft-edge",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}

// Find looks for a browser. An explicit name or path, when not "", is the only one that counts. The lookPath function is exec.LookPath or one like it.
func Find(explicit string, lookPath func(string) (string, error)) (path string, ok bool) {
	wanted := names
	if explicit != "" {
		wanted = []string{explicit}
	}
	for _, name := range wanted {
		if path, err := lookPath(name); err == nil && path != "" {
			return path, true
		}
	}
	return "", false
}

// policy is what a report may do: show its own text, styles and pictures.
const policy = `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'">`

// Print prints a document of our own to PDF in the browser with a path. When it returns, the
// browser and its profile are gone. Errors carry a code: CodeCanceled when ctx ended, CodeTimeout
// after a minute, CodeUnavailable when the browser printed nothing.
func Print(ctx context.Context, browser, html string) (pdf []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	pdf, err = printed(limited, browser, html)
	switch {
	case err == nil:
		return pdf, nil
	case ctx.Err() != nil:
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "print the report")
	case limited.Err() != nil:
		return nil, marchwarden.Wrap(limited.Err(), marchwarden.CodeTimeout, "print the report: not done after %v", printTime)
	}
	return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "print the report", Err: err,
		Hint: "run it by hand with --headless --print-to-pdf to see why; in a container its sandbox may not be allowed"}
}

func printed(ctx context.Context, browser, html string) (pdf []byte, err error) {
	dir, err := os.MkdirTemp("", "marchwarden-print-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove(dir)) }()
	page, out := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.pdf")
	if err := os.WriteFile(page, []byte(policy+html), 0o600); err != nil {
		return nil, err
	}
	address := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(page), "/")}
	args := append(Flags(dir), "--proxy-server=http://browser.invalid", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--no-pdf-header-footer", "--generate-pdf-document-outline", "--print-to-pdf="+out, address.String())
	scratch := dir
	if len(dir) > longestScratch {
		scratch = os.TempDir()
	}
	cmd := exec.CommandContext(ctx, browser, args...)
	cmd.Env, cmd.WaitDelay = Environment(dir, scratch), killTime
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w", browser, err)
	}
	return os.ReadFile(out)
}

// remove removes a folder. It tries for a while: children of a browser that was killed may still write there.
func remove(dir string) (err error) {
	for wait := time.Millisecond; wait < killTime; wait *= 2 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return err
}

// disabledFeatures would talk to others than the page's servers, or round the proxy.
const disabledFeatures = "AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,DnsOverHttps,GlobalMediaControls,HttpsFirstBalancedModeAutoEnable," +
	"HttpsUpgrades,InterestFeedContentSuggestions,LoadingPredictorPrefetch,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PrefetchPrivacyChanges," +
	"SegmentationPlatform,SpeculationRulesPrefetchFuture,Translate,WebRtcHideLocalIpsWithMdns"

// Flags are those that every browser gets: no window, no calls home, nothing but TCP. They say nothing about which hosts it may reach.
func Flags(profile string) []string {
	args := []string{
		"--headless", "--block-new-web-contents", "--user-data-dir=" + profile,
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--disable-quic", "--dns-prefetch-disable", "--no-pings",
		"--disable-features=" + disabledFeatures, "--disable-background-networking", "--disable-component-update", "--disable-domain-reliability", "--disable-sync",
		"--disable-client-side-phishing-detection", "--disable-default-apps", "--disable-extensions", "--disable-component-extensions-with-background-pages",
		"--disable-breakpad", "--disable-crash-reporter", "--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--metrics-recording-only",
		"--gaia-url=http://browser.invalid", "--apps-gallery-update-url=http://browser.invalid", "--component-updater=url-source=http://browser.invalid", // no calls home
		"--deny-permission-prompts", "--disable-notifications", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--password-store=basic", "--use-mock-keychain",
		"--js-flags=--max-old-space-size=512",
	}
	if os.Geteuid() == 0 {
		// Chromium refuses to start its sandbox for root. As any other user it has one, and a page that breaks the renderer is still inside it: running as root is
		// the worse choice, and the container or machine is then the only wall.
		args = append(args, "--no-sandbox")
	}
	return args
}

// Environment is all that the browser learns about this machine. It is not ours: that may hold keys.
func Environment(profile, scratch string) []string {
	return []string{"HOME=" + profile, "TMPDIR=" + scratch, "XDG_CONFIG_HOME=" + profile, "XDG_CACHE_HOME=" + profile, "XDG_RUNTIME_DIR=" + profile,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:"}
}
