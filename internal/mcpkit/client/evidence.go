package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// codeNotFoundOnce was, in earlier versions of the protocol, what CodeInvalidParams is for a resource.
const codeNotFoundOnce = -32002

// Evidence is the stored content that a citation's hash ("sha256:…") names, held
// against it: CodeCorrupt says that the server gave something else. CodeNotFound
// and CodeUnsupported say that it has none to give.
func (s *Session) Evidence(ctx context.Context, hash string) ([]byte, error) {
	digits, ok := strings.CutPrefix(hash, "sha256:")
	if !ok || !mcpkit.IsHex(digits) {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "read evidence: the hash must be sha256: and 64 hex digits")
	}
	if !s.card.Evidence {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the researcher hands over no evidence")
	}
	l, err := s.enter(nil)
	if err != nil {
		return nil, err
	}
	defer s.leave(l)
	inner, stop := context.WithCancel(s.life)
	defer stop()
	var contents []*mcp.ResourceContents
	answers := begin(context.WithValue(inner, contentsKey{}, &contents), func(ctx context.Context) (*mcp.ReadResourceResult, error) {
		return s.cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: mcpkit.EvidencePrefix + digits})
	})
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, s.evidenceFault(a.err)
		}
	case <-ctx.Done():
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "read evidence")
	case <-s.life.Done():
		return nil, errWasClosed
	}
	if len(contents) != 1 || contents[0] == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher gave %d contents for one hash", len(contents))
	}
	data := contents[0].Blob
	if data == nil {
		data = []byte(contents[0].Text)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digits {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the researcher gave another content than the hash names")
	}
	return data, nil
}

func (s *Session) evidenceFault(err error) error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch said.Code {
		case jsonrpc.CodeInvalidParams, codeNotFoundOnce:
			return marchwarden.Errorf(marchwarden.CodeNotFound, "the researcher does not have that content")
		case jsonrpc.CodeMethodNotFound:
			return marchwarden.Errorf(marchwarden.CodeUnsupported, "the researcher hands over no evidence")
		}
	}
	return s.fault(err)
}

// contentsKey is where, in the context of a read, the contents are put.
type contentsKey struct{}

// uncached takes the contents of a read out of the SDK's hands, which would keep every document.
func uncached(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		read, isRead := res.(*mcp.ReadResourceResult)
		out, wanted := ctx.Value(contentsKey{}).(*[]*mcp.ResourceContents)
		if err != nil || !isRead || !wanted {
			return res, err
		}
		*out = read.Contents
		return &mcp.ReadResourceResult{}, nil
	}
}
