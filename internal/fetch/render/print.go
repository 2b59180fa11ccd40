package render

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	printTime = time.Minute
	maxPDF    = 64 << 20 // in bytes
)

// Print prints a document of our own to PDF in the browser with a path. The document is handed
// over as it is: the browser runs none of its scripts and reaches nothing. When it
// returns, the browser and its profile are gone. Errors carry the codes of Render.
func Print(ctx context.Context, chromium, html string) (pdf []byte, err error) {
	if !Supported {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the browser cannot be told to print on this system")
	}
	profile, scratch, err := MakeProfile("", preferences)
	defer func() { err = errors.Join(err, RemoveProfile(profile), RemoveProfile(scratch)) }()
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	program := Program{Path: chromium, Args: append(Flags(profile), "--proxy-server=http://browser.invalid", "--host-resolver-rules=MAP * ~NOTFOUND"),
		Env: Environment(profile, scratch), MaxMessage: 2 * maxPDF}
	err = Run(limited, program, func(w *Wire) error {
		s, err := openSession(w)
		if err != nil {
			return err
		}
		pdf, err = s.print(html)
		return err
	})
	switch {
	case err == nil:
		return pdf, nil
	case ctx.Err() != nil:
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "print the report")
	case limited.Err() != nil:
		return nil, marchwarden.Wrap(limited.Err(), marchwarden.CodeTimeout, "print the report: not done after %v", printTime)
	}
	return nil, marchwarden.Wrap(err, marchwarden.CodeOf(err), "print the report")
}

func (s *session) print(html string) ([]byte, error) {
	var tree struct {
		Tree struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	var printed struct {
		Data []byte `json:"data"` // in base64 on the wire
	}
	if err := s.call("Emulation.setScriptExecutionDisabled", params{"value": true}, nil); err != nil {
		return nil, err
	}
	if err := s.call("Page.getFrameTree", nil, &tree); err != nil {
		return nil, err
	}
	if err := s.call("Page.setDocumentContent", params{"frameId": tree.Tree.Frame.ID, "html": html}, nil); err != nil {
		return nil, err
	}
	err := s.call("Page.printToPDF", params{"printBackground": true, "preferCSSPageSize": true, "generateTaggedPDF": true, "generateDocumentOutline": true}, &printed)
	return printed.Data, err
}
