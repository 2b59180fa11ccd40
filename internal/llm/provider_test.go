package llm

import (
	"net/http"
	"testing"
)

// TestNoProxy looks at the transport, since no proxy of the environment is ever used for the loopback.
func TestNoProxy(t *testing.T) {
	if tr, ok := (Wire{}).Open().client.Transport.(*http.Transport); !ok || tr.Proxy != nil {
		t.Errorf("the transport of its own is %+v", tr)
	}
}
