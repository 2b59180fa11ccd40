// Package engines has the search engines of the web: Tavily, Brave Search, SearXNG and
// Wikipedia, a file each, and the limit that all who work for one engine of tasks share. It
// owns their protocols: what is asked, and how an answer becomes hits. It reads no page and
// asks for no answer of an engine's own: what is cited is fetched and checked by others.
package engines

import (
	"net/http"
	"time"
)

// Config says how to reach an engine. Tavily and Brave need a Key, SearXNG a BaseURL.
type Config struct {
	Key       string
	BaseURL   string           // "" is the service's own; a user and password in it are sent
	HTTP      *http.Client     // nil is a client of its own
	UserAgent string           // names the program and a way to reach who runs it; "" is "marchwarden"
	Timeout   time.Duration    // of one request; 0 is httpapi.DefaultTimeout
	Now       func() time.Time // for a range of dates that ends today; nil passes none on
}
