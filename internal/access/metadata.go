package access

import (
	"encoding/json"
	"net/url"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// ServerURL reads the http or https address of a server, without a user, a query or a fragment.
func ServerURL(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// Metadata tells clients where to get a token for a server, as RFC 9728 says: the document, and its
// address for a WWW-Authenticate header. resource is the server's address as clients know it, such as
// https://research.example.org/mcp, issuer makes its tokens, and name is for people. CodeInvalid if
// resource is none.
func Metadata(resource, issuer, name string) (document []byte, at string, err error) {
	u, ok := ServerURL(resource)
	if !ok {
		return nil, "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resource", Message: "must be an http or https address without a query, a fragment or a user"}
	}
	path := u.Path
	if path == "/" {
		path = ""
	}
	document, err = json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{resource, []string{issuer}, Scopes(), []string{"header"}, name})
	to := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource" + path}
	return document, to.String(), marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the metadata")
}
