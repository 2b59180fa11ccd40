package settings

import (
	"net/url"
	"regexp"
	"strings"
)

// EngineURLFor is the cluster that the flag or the setting names; "" for none. Its errors
// name who said it.
func (c *Settings) EngineURLFor(flag string) (string, error) {
	switch flag {
	case "":
		return c.Text(Engine), nil
	case NoEngine:
		return "", nil
	}
	read, problem := readEngine(flag)
	if problem != "" {
		return "", Invalid("--engine", engineHint(problem), problem)
	}
	return read, nil
}

// NeedEngine is engineURLFor for commands that are about a cluster.
func (c *Settings) NeedEngine(flag string) (string, error) {
	at, err := c.EngineURLFor(flag)
	if err == nil && at == "" {
		err = Invalid("--engine", "for example --engine nats://127.0.0.1:4222, or set "+EnvOf(Engine), "is missing: which cluster?")
	}
	return at, err
}

func engineHint(problem string) string {
	if problem == passwordInEngine {
		return "put the key into a file that only you can read, and name it by " + EnvOf(EngineKey)
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

// PastedSeed is the key that stands where the path of its file should; "" if there is
// none.
func PastedSeed(path string) string { return seedText.FindString(path) }

var seedText = regexp.MustCompile(`S[A-Z][A-Z2-7]{56}`)

const passwordInEngine = "must hold no user and no password"

// NoEngine is the flag's value where the settings name a cluster that is not wanted. A
// hub of that name is nats://none.
const NoEngine = "none"
