package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// margin is how long before its end a token is renewed.
	margin = 10 * time.Second
	// patience is how long a server may take to renew one.
	patience = 20 * time.Second
	// maxScopeBytes bounds the scopes that a researcher asks for.
	maxScopeBytes = 1000
)

// Login is the user's login with one researcher at an address that asks for it by OAuth: it
// gets, keeps and renews the access token for that one address.
//
//	researcher says 401 ⇒ Refused ⇒ renewed by the file, or the user asked in a browser (login_ends.go)
//
// The steps of OAuth are the SDK's: metadata, registration, PKCE, state and issuer. What goes
// between them is here: the file, the browser's way back, renewal, and errors that hold no secret.
//
// Its fields are not to be changed after the first use. It is safe for concurrent use.
type Login struct {
	// URL is the address of the researcher.
	URL string
	// Name is what the user calls it.
	Name string
	// File keeps what was given for this address and others.
	File string
	// HTTP reaches authorization servers, as LoginClient does: where they are is an untrusted address.
	// It must not change what they answer. Required.
	HTTP *http.Client
	// ClientID is the name by which the authorization server knows this program, or the address of a
	// document about it; "" has it register itself. ClientSecret goes with it, and may be "".
	ClientID, ClientSecret string
	// Browser is where the user logs in anew; nil for all who only use a login.
	Browser Browser
	// Hide is told every secret before it is used. Required.
	Hide func(secrets ...string)
	// Now is the clock that tells whether a token is over. Required.
	Now func() time.Time

	mu      sync.Mutex // guards what follows
	have    *entry     // nil until there is one
	handler *auth.AuthorizationCodeHandler
	bound   string   // what the login under way is for
	scopes  []string // that it asks for in addition to what the researcher names
}

// LoginClient reaches the authorization server of the researcher at home: what is there as
// well by own, since the user has named that address, and all else, which servers name, by others.
// It follows no redirect to another server.
func LoginClient(home *url.URL, own, others http.RoundTripper) *http.Client {
	return &http.Client{Timeout: patience, Transport: &split{home: home, own: own, others: others}, CheckRedirect: withinServer("the authorization server")}
}

type split struct {
	home        *url.URL
	own, others http.RoundTripper

	refused atomic.Pointer[marchwarden.Error] // the last address that was; the SDK drops the kind of it
}

// RoundTrip sends one request.
func (s *split) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameServer(req.URL, s.home) {
		return s.own.RoundTrip(req)
	}
	resp, err := s.others.RoundTrip(req)
	if refused, ok := errors.AsType[*marchwarden.Error](err); ok {
		s.refused.Store(refused)
	}
	return resp, err
}

// Browser shows the user an address and waits for the way back.
type Browser interface {
	// Redirect is where the browser comes back to.
	Redirect() string
	// Visit gives what the browser came back with.
	Visit(ctx context.Context, address string) (url.Values, error)
}

// Token is the access token, renewed if it is over; "" if the user has not logged in.
func (l *Login) Token(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Browser == nil && (l.have == nil || l.over(*l.have)) {
		found, err := l.read()
		if err != nil {
			return "", err
		}
		l.have = found
	}
	switch {
	case l.have == nil:
		return "", nil
	case l.over(*l.have) && l.have.Refresh != "":
		if err := l.renew(ctx, l.have.Access); err != nil {
			return "", err
		}
	}
	return l.have.Access, nil
}

// Refused gets a token that is better than the one the researcher refused, "" for none, and nil is
// to send the request again. Else the error says what the user can do. The body of resp is closed.
func (l *Login) Refused(req *http.Request, resp *http.Response, used string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Browser != nil {
		return l.ask(req, resp)
	}
	_ = resp.Body.Close() // it says no more than its status and header
	switch {
	case resp.StatusCode == http.StatusForbidden:
		if err := l.note(resp.Header.Values("WWW-Authenticate")); err != nil {
			return err
		}
		return l.denied("the researcher refused access (status 403): it asks for a login that allows more")
	case used == "":
		return l.denied("the researcher asks for a login (status 401)")
	case l.have != nil && l.have.Access != used:
		return nil // another call has renewed it
	}
	return l.renew(req.Context(), used)
}

// Anew has the user log in with a researcher that has not asked for it. It does nothing if the user just did.
func (l *Login) Anew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have != nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL, http.NoBody)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the address of the researcher")
	}
	return l.ask(req, &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody})
}

// note keeps the scopes that a refusal asks for, for the next login. l.mu is held.
func (l *Login) note(header []string) error {
	challenges, err := oauthex.ParseWWWAuthenticate(header)
	if err != nil {
		return nil // a refusal it is, whatever it says
	}
	var scopes []string
	for _, c := range challenges {
		if c.Params["error"] == "insufficient_scope" && len(c.Params["scope"]) <= maxScopeBytes {
			scopes = strings.Fields(c.Params["scope"])
		}
	}
	if len(scopes) == 0 {
		return nil
	}
	return l.edit(func(e *entry) error {
		e.Scopes = scopes
		return nil
	})
}

// ask has the user log in. l.mu is held.
func (l *Login) ask(req *http.Request, resp *http.Response) error {
	if l.handler == nil {
		before, err := l.read()
		if err == nil {
			if before != nil {
				l.scopes = before.Scopes
			}
			l.handler, err = auth.NewAuthorizationCodeHandler(l.config())
		}
		if err != nil {
			_ = resp.Body.Close()
			return marchwarden.Wrap(err, marchwarden.CodeInvalid, "prepare the login")
		}
	}
	return l.failure(req.Context(), l.handler.Authorize(req.Context(), req, resp))
}

func (l *Login) config() *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: l.Browser.Redirect(), Client: l.HTTP, RequestRefreshToken: true,
		AuthorizationCodeFetcher: l.visit, NewTokenSource: l.keep,
		ScopeFilter: func(found []string) []string {
			missing := slices.DeleteFunc(slices.Clone(l.scopes), func(s string) bool { return slices.Contains(found, s) })
			return append(slices.Clip(found), missing...)
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Marchwarden", RedirectURIs: []string{l.Browser.Redirect()},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
	}
	switch {
	case strings.HasPrefix(l.ClientID, "https://"):
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: l.ClientID}
	case l.ClientID != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: l.ClientID}
		if l.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: l.ClientSecret}
		}
	}
	return c
}

// visit sends the user to the authorization server and gives what it has sent back.
func (l *Login) visit(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	to, err := url.Parse(args.URL)
	odd := strings.ContainsFunc(args.URL, func(r rune) bool { return r <= ' ' || r > '~' }) // which a terminal may act on
	if err != nil || odd || to.Scheme != "https" && to.Scheme != "http" {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "the page of the login is at no address of the web")
	}
	l.bound = to.Query().Get("resource")
	back, err := l.Browser.Visit(ctx, args.URL)
	if err != nil {
		return nil, err
	}
	if code := back.Get("error"); code != "" {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "the authorization server refused the login%s", named(code))
	}
	return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
}

// keep stores what the user was given. l.mu is held by ask.
func (l *Login) keep(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	e := entry{URL: l.URL, Resource: l.bound, TokenURL: c.Endpoint.TokenURL, Style: int(c.Endpoint.AuthStyle), ClientID: c.ClientID, Scopes: l.scopes}
	if c.ClientSecret != l.ClientSecret {
		e.ClientSecret = c.ClientSecret // of the registration; the user's own stays where it is
	}
	e.take(t)
	l.Hide(e.secrets()...)
	err := l.edit(func(old *entry) error {
		*old = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.have = &e
	return oauth2.StaticTokenSource(t), nil
}

// renew exchanges the refresh token, unless another process has done so since old was given; l.mu is held.
func (l *Login) renew(ctx context.Context, old string) error {
	return l.edit(func(e *entry) error {
		switch {
		case e.URL == "":
			l.have = nil
			return l.denied("the login is not there any more")
		case e.Access != old && !l.over(*e):
			l.use(*e)
			return nil
		case e.Refresh == "":
			return l.denied("the login is over")
		}
		l.Hide(e.secrets()...)
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, l.HTTP), patience)
		defer cancel()
		grant := clientcredentials.Config{
			ClientID: e.ClientID, ClientSecret: cmp.Or(e.ClientSecret, l.ClientSecret), TokenURL: e.TokenURL, AuthStyle: oauth2.AuthStyle(e.Style),
			EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {e.Refresh}, "resource": {e.Resource}},
		}
		t, err := grant.Token(ctx)
		if err != nil {
			return l.failure(ctx, err)
		}
		e.take(t)
		l.use(*e)
		return nil
	})
}

// use takes an entry for the calls to come.
func (l *Login) use(e entry) {
	l.Hide(e.secrets()...)
	l.have = &e
}

func (l *Login) over(e entry) bool {
	return e.Expires != nil && l.Now().Add(margin).After(*e.Expires)
}

// denied says that the user has to log in, and how.
func (l *Login) denied(format string, args ...any) error {
	e := marchwarden.Errorf(marchwarden.CodeDenied, format, args...)
	e.Hint = fmt.Sprintf("run: marchwarden researchers login %s", l.Name)
	return e
}

// failure says why there is no token, without what a server has answered to a secret.
func (l *Login) failure(ctx context.Context, err error) error {
	outside := l.outside() // since it was last asked for, also where all went well
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*marchwarden.Error](err); ok {
		return own
	}
	refused, answered := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case answered && refused.Response != nil && refused.Response.StatusCode >= 500:
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the authorization server fails (status %d)", refused.Response.StatusCode)
	case answered:
		status := 0
		if refused.Response != nil {
			status = refused.Response.StatusCode
		}
		return l.denied("the authorization server gave no token (status %d)%s", status, named(refused.ErrorCode))
	case outside != nil:
		return outside
	case context.Cause(ctx) != nil:
		return marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeTimeout, "log in with the researcher")
	case l.Browser == nil: // a token was to be renewed, and a request with a secret was sent
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the authorization server could not be asked")
	}
	said := err.Error()
	if strings.Contains(said, "register client") || strings.Contains(said, "registration methods") { // and then, maybe, what it was given
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "the authorization server does not register this program",
			Hint: "register it there yourself, and write its client_id into config.yaml"}
	}
	return marchwarden.Errorf(marchwarden.CodeDenied, "the login failed: %s", mcpkit.Clip(mcpkit.Plain(said), maxSaidChars))
}

// outside is why an address that a server named was refused since it was last asked for, or nil.
func (l *Login) outside() *marchwarden.Error {
	if s, ok := l.HTTP.Transport.(*split); ok {
		return s.refused.Swap(nil)
	}
	return nil
}

var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// named is a code of OAuth as part of a sentence; what is none is left out.
func named(code string) string {
	if !errorCode.MatchString(code) {
		return ""
	}
	return ": " + code
}
