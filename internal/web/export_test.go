package web

// Stream sends events as they come, and Event is one as it goes over the wire.
var (
	Stream = stream
	Event  = event
)
