package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// disabledFeatures would talk to others than the page's servers, or round the proxy.
const disabledFeatures = "AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,DnsOverHttps,GlobalMediaControls,HttpsFirstBalancedModeAutoEnable," +
	"HttpsUpgrades,InterestFeedContentSuggestions,LoadingPredictorPrefetch,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PrefetchPrivacyChanges," +
	"SegmentationPlatform,SpeculationRulesPrefetchFuture,Translate,WebRtcHideLocalIpsWithMdns"

// Flags are those that every browser gets: no window, no calls home, nothing but TCP, pipes to drive it by. They say nothing about which hosts it may reach.
func Flags(profile string) []string {
	args := []string{
		"--headless", "--remote-debugging-pipe", "--no-startup-window", "--block-new-web-contents", "--user-data-dir=" + profile,
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

// longestScratch leaves room for the name of the socket that the browser makes in its folder for temporary files: a socket's path may have 104 bytes.
const longestScratch = 56

// MakeProfile makes the folders of one browser below parent, "" for the system's place for temporary files: the profile with its preferences, and one for the browser's
// temporary files, which is the same unless its path is too long for that. It returns what it made even with an error.
func MakeProfile(parent, preferences string) (profile, scratch string, err error) {
	if profile, err = os.MkdirTemp(parent, "marchwarden-render-"); err != nil {
		return "", "", err
	}
	scratch = profile
	if len(profile) > longestScratch && os.PathSeparator == '/' {
		if scratch, err = os.MkdirTemp("/tmp", "marchwarden-render-"); err != nil {
			return profile, "", err
		}
	}
	dir := filepath.Join(profile, "Default")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return profile, scratch, err
	}
	return profile, scratch, os.WriteFile(filepath.Join(dir, "Preferences"), []byte(preferences), 0o600)
}

// RemoveProfile removes one of these folders. It tries for a while: children that were killed may still be writing. A folder that was never made, or is gone, is removed.
func RemoveProfile(dir string) error {
	if dir == "" {
		return nil
	}
	var err error
	for wait := time.Millisecond; wait < 600*time.Millisecond; wait *= 2 {
		if err = os.RemoveAll(dir); err == nil {
			if _, gone := os.Lstat(dir); errors.Is(gone, os.ErrNotExist) {
				return nil
			}
		}
		time.Sleep(wait)
	}
	if err == nil {
		err = errors.New("still in use")
	}
	return fmt.Errorf("remove profile: %w", err)
}
