package access

import (
	"encoding/json"
	"net/url"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Metadata tells clients where to get a token for this server, as RFC 9728 says.
type Metadata struct {
	Resource             string   // this server's address as clients know it, such as https://research.example.org/mcp
	AuthorizationServers []string // issuers of tokens; none if there are only those of the tokens file
	ScopesSupported      []string // that a token may have
	ResourceName         string   // for people; "" has none
}

const metadataPath = "/.well-known/oauth-protected-resource"

// URL is the address of the document, for a WWW-Authenticate header: the path of the
// resource comes behind the well-known one. CodeInvalid if Resource is no http or https
// address, or has a query, a fragment or a user.
func (m Metadata) URL() (string, error) {
	u, err := m.resource()
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// resource is the address of the document.
func (m Metadata) resource() (*url.URL, error) {
	u, err := url.Parse(m.Resource)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resource", Message: "must be an http or https address without a query, a fragment or a user"}
	}
	path := u.Path
	if path == "/" {
		path = ""
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: metadataPath + path}, nil
}

// JSON is the document. Equal metadata makes equal bytes. Errors are those of URL.
func (m Metadata) JSON() ([]byte, error) {
	if _, err := m.resource(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers,omitempty"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name,omitempty"`
	}{m.Resource, m.AuthorizationServers, m.ScopesSupported, []string{"header"}, m.ResourceName})
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the metadata")
	}
	return text, nil
}
