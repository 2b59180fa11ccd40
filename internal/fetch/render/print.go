package render

import (
	"context"
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
	limited, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	program := Program{Path: chromium, Args: []string{"--proxy-server=http://browser.invalid", "--host-resolver-rules=MAP * ~NOTFOUND"}, MaxMessage: 2 * maxPDF}
	err = browse(limited, "", program, func(s *session) (err error) {
		pdf, err = s.print(html)
		return err
	})
	if err != nil {
		return nil, ended(ctx, limited, err, "print the report", printTime)
	}
	return pdf, nil
}

func (s *session) print(html string) ([]byte, error) {
	var printed struct {
		Data []byte `json:"data"` // in base64 on the wire
	}
	if err := s.call("Emulation.setScriptExecutionDisabled", params{"value": true}, nil); err != nil {
		return nil, err
	}
	frame, err := s.frame()
	if err != nil {
		return nil, err
	}
	if err := s.call("Page.setDocumentContent", params{"frameId": frame, "html": html}, nil); err != nil {
		return nil, err
	}
	err = s.call("Page.printToPDF", params{"printBackground": true, "preferCSSPageSize": true, "generateTaggedPDF": true, "generateDocumentOutline": true}, &printed)
	return printed.Data, err
}
