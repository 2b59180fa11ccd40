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

// Load is the configuration of either end: it shows its certificate if it has one, and
// believes the authorities of CA. Without CA a client believes those of the system, and a server
// asks for no certificate. It is nil, without an error, if no file is named.
func (f TLSFiles) Load() (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if (f.Cert == "") != (f.Key == "") {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "a certificate and its key must be given together"}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the certificate %s and its key", f.Cert)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the certificates of authorities")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the file %s has no certificate", f.CA)
	}
	c.RootCAs, c.ClientCAs, c.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	return c, nil
}

// server is Load for a server, which needs a certificate.
func (f TLSFiles) server() (*tls.Config, error) {
	if !f.IsZero() && f.Cert == "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "must be given for a server with TLS"}
	}
	return f.Load()
}
