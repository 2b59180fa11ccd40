package hub

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TLSFiles are the files, in PEM, of one end of TLS connections. None is no TLS.
type TLSFiles struct {
	Cert, Key string // the certificate and its key, both or neither
	CA        string // the authorities that the other end's certificate must come from
}

// IsZero reports whether no file is named.
func (f TLSFiles) IsZero() bool { return f == TLSFiles{} }

// Client is the configuration of a client: it believes the authorities of CA, or those
// of the system if there is none, and shows its certificate if it has one. It is nil,
// without an error, if no file is named.
func (f TLSFiles) Client() (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	c, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	c.RootCAs = pool
	return c, nil
}

// Server is the configuration of a server. With CA, who connects must show a certificate
// of one of its authorities. It is nil, without an error, if no file is named.
func (f TLSFiles) Server() (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	if f.Cert == "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "must be given for a server with TLS"}
	}
	c, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	if pool != nil {
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// Peer is the configuration of servers that connect to each other: each shows its
// certificate and demands one of the authorities of CA. All three files are needed.
func (f TLSFiles) Peer() (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	if f.CA == "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "cluster_ca", Message: "must be given for TLS between hubs"}
	}
	c, err := f.Server()
	if err != nil {
		return nil, err
	}
	c.RootCAs = c.ClientCAs
	return c, nil
}

// load reads the files.
func (f TLSFiles) load() (*tls.Config, *x509.CertPool, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if (f.Cert == "") != (f.Key == "") {
		return nil, nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "a certificate and its key must be given together"}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the certificate %s and its key", f.Cert)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA == "" {
		return c, nil, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the certificates of authorities")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the file %s has no certificate", f.CA)
	}
	return c, pool, nil
}
