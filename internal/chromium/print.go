// Package chromium starts a local headless Chromium and talks its debugging protocol with it. The
// program prints reports to PDF by it, and tests look at pages in it.
//
// It owns the browser's process group, the pair of pipes over which it is driven, its throw-away
// profile and the flags without which it would call home. It loads no page of the web: Print hands
// it a document of our own, runs none of its scripts and lets it reach nothing.
package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const printTime = time.Minute

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

// Print prints a document of our own to PDF in the browser with a path. When it returns, the
// browser and its profile are gone. Errors carry a code: CodeUnsupported on a system where browsers
// cannot be driven (Windows), CodeCanceled when ctx ended, CodeTimeout after a minute, CodeUnavailable
// when the browser could not be had.
func Print(ctx context.Context, browser, html string) (pdf []byte, err error) {
	if !Supported {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the browser cannot be told to print on this system")
	}
	limited, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	pdf, err = printed(limited, browser, html)
	var coded *marchwarden.Error
	switch {
	case err == nil:
		return pdf, nil
	case ctx.Err() != nil:
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "print the report")
	case limited.Err() != nil:
		return nil, marchwarden.Wrap(limited.Err(), marchwarden.CodeTimeout, "print the report: not done after %v", printTime)
	case errors.As(err, &coded):
		return nil, fmt.Errorf("print the report: %w", err)
	}
	return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the report")
}

// preferences refuse every download and the permissions that a page could ask for.
const preferences = `{"download_restrictions":3,"download":{"prompt_for_download":false,"open_pdf_in_system_reader":false},"plugins":{"always_open_pdf_externally":true},
"profile":{"default_content_setting_values":{"images":2,"popups":2,"notifications":2,"geolocation":2,"media_stream":2,"automatic_downloads":2,"sensors":2}},
"net":{"network_prediction_options":2},"alternate_error_pages":{"enabled":false},"search":{"suggest_enabled":false},"safebrowsing":{"enabled":false}}`

func printed(ctx context.Context, browser, html string) (pdf []byte, err error) {
	profile, scratch, err := MakeProfile("", preferences)
	defer func() { err = errors.Join(err, RemoveProfile(profile), RemoveProfile(scratch)) }()
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	args := append(Flags(profile), "--proxy-server=http://browser.invalid", "--host-resolver-rules=MAP * ~NOTFOUND")
	program := Program{Path: browser, Args: args, Env: Environment(profile, scratch)}
	err = Run(ctx, program, func(w *Wire) (err error) {
		pdf, err = (&session{wire: w}).print(html)
		return err
	})
	return pdf, err
}

// params are those of a command.
type params map[string]any

// session is the one page of a browser.
type session struct {
	wire *Wire
	id   string
}

func (s *session) print(html string) ([]byte, error) {
	var target struct {
		ID string `json:"targetId"`
	}
	var attached struct {
		ID string `json:"sessionId"`
	}
	var tree struct {
		Top struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	var printed struct {
		Data []byte `json:"data"` // in base64 on the wire
	}
	if err := s.call("Target.createTarget", params{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	if err := s.call("Target.attachToTarget", params{"targetId": target.ID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	s.id = attached.ID
	for _, method := range []string{"Page.enable", "Inspector.enable"} {
		if err := s.call(method, nil, nil); err != nil {
			return nil, err
		}
	}
	if err := s.call("Emulation.setScriptExecutionDisabled", params{"value": true}, nil); err != nil {
		return nil, err
	}
	if err := s.call("Page.getFrameTree", nil, &tree); err != nil {
		return nil, err
	}
	if err := s.call("Page.setDocumentContent", params{"frameId": tree.Top.Frame.ID, "html": html}, nil); err != nil {
		return nil, err
	}
	err := s.call("Page.printToPDF", params{"printBackground": true, "preferCSSPageSize": true, "generateTaggedPDF": true, "generateDocumentOutline": true}, &printed)
	return printed.Data, err
}

// call sends a command and waits for its answer. Once the page has its session, commands go to it.
func (s *session) call(method string, with params, result any) error {
	id, err := s.wire.Send(s.id, method, with)
	if err != nil {
		return err
	}
	for m := range s.wire.In() {
		switch {
		case m.Method == "Inspector.targetCrashed" || m.Method == "Target.detachedFromTarget":
			return errors.New("the page broke the browser")
		case m.ID != id:
		case m.Error != nil:
			return fmt.Errorf("%s: %w", method, m.Error)
		case result == nil:
			return nil
		default:
			if err := json.Unmarshal(m.Result, result); err != nil {
				return marchwarden.Wrap(err, marchwarden.CodeMalformed, "%s", method)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: %w", method, s.wire.Err())
}
