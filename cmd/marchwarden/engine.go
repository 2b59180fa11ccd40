package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/depot"
)

// engineFlag adds the flag that names a cluster.
func engineFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "engine", "", "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas; "+noEngine+" for no cluster, whatever the settings say")
}

// noEngine is the flag's value where the settings name a cluster that is not wanted. A
// hub of that name is nats://none.
const noEngine = "none"

// engineURLFor is the cluster that the flag or the setting names; "" for none. Its errors
// name who said it.
func (c *config) engineURLFor(flag string) (string, error) {
	switch flag {
	case "":
		return c.text(setEngine), nil
	case noEngine:
		return "", nil
	}
	read, problem := readEngine(flag)
	if problem != "" {
		return "", invalid("--engine", engineHint(problem), problem)
	}
	return read, nil
}

// needEngine is engineURLFor for commands that are about a cluster.
func (c *config) needEngine(flag string) (string, error) {
	at, err := c.engineURLFor(flag)
	if err == nil && at == "" {
		err = invalid("--engine", "for example --engine nats://127.0.0.1:4222, or set "+settingEnv(setEngine), "is missing: which cluster?")
	}
	return at, err
}

var seedText = regexp.MustCompile(`S[A-Z][A-Z2-7]{56}`)

// pastedSeed is the key that stands where the path of its file should; "" if there is
// none.
func pastedSeed(path string) string { return seedText.FindString(path) }

const passwordInEngine = "must hold no user and no password"

func engineHint(problem string) string {
	if problem == passwordInEngine {
		return "put the key into a file that only you can read, and name it by " + settingEnv(setEngineKey)
	}
	return ""
}

// readEngine checks the addresses of hubs. Its error repeats none of them: one may hold
// a password.
func readEngine(t string) (read, problem string) {
	var all []string
	for part := range strings.SplitSeq(t, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(part)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return "", "must be an address such as nats://127.0.0.1:4222 or tls://hub1.example.com:4222"
		case u.User != nil:
			return "", passwordInEngine
		}
		all = append(all, u.Scheme+"://"+u.Host)
	}
	return strings.Join(all, ","), ""
}

// engineName is who the program is to a hub, for people who look at its connections.
func (a *app) engineName() string {
	return plainName(fmt.Sprintf("%s-%d-%s", hostName(), os.Getpid(), a.newID().String()[24:]))
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// plainName is a name with nothing but letters, digits, dashes and underscores.
func plainName(s string) string {
	return strings.Trim(notPlain.ReplaceAllString(s, "-"), "-")
}

// owner is for whom the program asks.
func (a *app) owner() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if v, ok := a.env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// blobsOwn is the evidence store that a cluster has in itself.
const blobsOwn = depot.JetStream

// checkBlobs refuses a place for the evidence of a cluster that is none, in the name of
// who said it.
func checkBlobs(field, where string) error {
	err := depot.Check(where)
	var e *marchwarden.Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Field = field
	return &named
}
