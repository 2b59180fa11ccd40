package settings

import (
	"net/url"
	"regexp"
	"strings"
)

// NeedEngine is the cluster of the settings, for commands that are about one.
func (c *Settings) NeedEngine() (string, error) {
	if at := c.Text(Engine); at != "" {
		return at, nil
	}
	return "", Invalid("--engine", "for example --engine nats://127.0.0.1:4222, or set "+EnvOf(Engine), "is missing: which cluster?")
}

func engineHint(problem string) string {
	if problem == passwordInEngine {
		return "put the key into a file that only you can read, and name it by " + EnvOf(EngineKey)
	}
	return ""
}

// readEngine checks the addresses of hubs; there are none where no cluster is wanted. Its error repeats none of them: one may hold
// a password.
func readEngine(t string) (read, problem string) {
	if t == NoEngine {
		return "", ""
	}
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

// NoEngine is said where another setting names a cluster that is not wanted. A
// hub of that name is nats://none.
const NoEngine = "none"
