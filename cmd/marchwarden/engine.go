package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// engineFlag adds the flag that names a cluster.
func engineFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "engine", "", "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas")
}

// engineURLFor is the cluster that the flag or the setting names; "" for none. Its errors
// name who said it.
func (c *config) engineURLFor(flag string) (string, error) {
	if flag == "" {
		return c.text(setEngine), nil
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
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return plainName(fmt.Sprintf("%s-%d-%s", host, os.Getpid(), a.newID().String()[24:]))
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

// The evidence stores that a cluster may have besides its own.
const (
	blobsDir = "dir:"
	blobsS3  = "s3://"
	blobsOwn = "jetstream"
)

// checkBlobs refuses a place for the evidence of a cluster that is none.
func checkBlobs(field, where string) error {
	switch path, isDir := strings.CutPrefix(where, blobsDir); {
	case where == "" || where == blobsOwn:
		return nil
	case isDir && filepath.IsAbs(path):
		return nil
	case strings.HasPrefix(where, blobsS3) && strings.Contains(where, "@"): // not repeated: it may hold a password
		return invalid(field, "keys come from "+settingEnv(setS3Key)+" and "+settingEnv(setS3Secret), passwordInEngine)
	case strings.HasPrefix(where, blobsS3):
		if u, err := url.Parse(where); err == nil && u.Host != "" && u.User == nil {
			return nil
		}
	}
	return invalid(field, "for example s3://bucket/prefix?endpoint=minio.example.com:9000; keys come from "+settingEnv(setS3Key)+" and "+settingEnv(setS3Secret),
		fmt.Sprintf("must be %s, %s and an absolute path, or an s3:// address, not %q", blobsOwn, blobsDir, clip(term.CleanLine(where), 60)))
}
