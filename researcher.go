package marchwarden

import "context"

// Researcher answers research requests. A local loop, an MCP client, a cluster
// worker and a principal investigator all are one, so where research runs is a
// wiring choice.
type Researcher interface {
	// Research answers req. It returns a valid, normalised Result whenever there
	// is anything to report: a failed source is a gap, not an error, and a
	// cancelled context ends the work with a partial result. It returns an error
	// only when there is no result: a request that breaks the contract
	// (CodeInvalid) or a record that cannot be written. A Result and an error are
	// never both nil and never both set.
	//
	// Progress goes to sink, which may be nil, from any goroutine and one event at
	// a time; a sink must not block. Events are a courtesy: nothing depends on
	// their arrival. Research is safe for concurrent use.
	Research(ctx context.Context, req Request, sink Sink) (*Result, error)
}

// Sink receives progress.
type Sink func(Event)
