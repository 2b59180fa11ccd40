package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Member is one researcher that the configuration names: a built-in one with other weights, or an
// external one.
type Member struct {
	At        string // file and line
	Name      string
	Scope     string
	Connector bool              // a server with tools of its own, to search and to fetch
	Search    map[string]string // how its tools are used, where that is said
	Fetch     map[string]string
	Command   []string
	URL       string
	TokenEnv  string
	ClientID  string   // by which an authorization server knows this program
	SecretEnv string   // the variable with what goes with it
	Env       []string // names of variables that it may see
	Share     float64
	Trust     dispatch.Trust
	Private   bool
	Off       bool
	Timeout   time.Duration
}

// External reports whether the member is not part of this program.
func (m Member) External() bool { return len(m.Command) > 0 || m.URL != "" }

// soundsSecret reports whether the name of a variable or a parameter says that its value is secret.
func soundsSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "secret", "pass", "pwd", "credential", "auth"}, func(part string) bool { return strings.Contains(name, part) })
}

// Transport says where the member runs.
func (m Member) Transport() string { return cmp.Or(m.URL, strings.Join(m.Command, " ")) }

// memberKeys are the keys of one researcher in config.yaml, and what they set.
var memberKeys = map[string]func(m *Member, texts []string) (problem string){
	"name":  func(m *Member, t []string) string { return one(t, &m.Name) },
	"scope": func(m *Member, t []string) string { return one(t, &m.Scope) },
	"kind": func(m *Member, t []string) string {
		var word string
		if problem := one(t, &word); problem != "" || word != "connector" {
			return "must be connector, or not be there"
		}
		m.Connector = true
		return ""
	},
	"command": func(m *Member, t []string) string {
		if m.Command = t; len(t) > 0 && strings.TrimSpace(t[0]) == "" {
			return "must begin with a program"
		}
		return ""
	},
	"url":               func(m *Member, t []string) string { return one(t, &m.URL) },
	"token_env":         func(m *Member, t []string) string { return one(t, &m.TokenEnv) },
	"client_id":         func(m *Member, t []string) string { return one(t, &m.ClientID) },
	"client_secret_env": func(m *Member, t []string) string { return one(t, &m.SecretEnv) },
	"env":               func(m *Member, t []string) string { m.Env = t; return "" },
	"share": func(m *Member, t []string) string {
		share, err := strconv.ParseFloat(strings.Join(t, " "), 64)
		if err != nil || !(share > 0 && share <= 100) {
			return "must be a number above 0, at most 100"
		}
		m.Share = share
		return ""
	},
	"trust": func(m *Member, t []string) string {
		var word string
		if problem := one(t, &word); problem != "" || word != string(dispatch.Known) && word != string(dispatch.Unknown) {
			return "must be known or unknown"
		}
		m.Trust = dispatch.Trust(word)
		return ""
	},
	"private": func(m *Member, t []string) string { return flag(t, &m.Private) },
	"off":     func(m *Member, t []string) string { return flag(t, &m.Off) },
	"timeout": func(m *Member, t []string) (problem string) {
		var word string
		if problem = one(t, &word); problem == "" {
			m.Timeout, problem = ParseSpan(word)
		}
		return problem
	},
}

// one takes a single value.
func one(texts []string, to *string) (problem string) {
	if len(texts) != 1 || strings.TrimSpace(texts[0]) == "" {
		return "must be one value, and not blank"
	}
	*to = strings.TrimSpace(texts[0])
	return ""
}

// flag takes true or false.
func flag(texts []string, to *bool) (problem string) {
	read, problem := Setting{Kind: Boolean}.Read(texts, nil)
	if problem == "" {
		*to = read[0] == "true"
	}
	return problem
}

// MemberName is what a researcher may be called.
var MemberName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// problem says what is wrong with a member as a whole.
func (m Member) problem(before []Member) (problem, hint string) {
	builtin := IsBuiltin(m.Name)
	switch {
	case !MemberName.MatchString(m.Name):
		return "name must be 1 to 40 of a-z, 0-9, _ and -, and begin with a letter", ""
	case slices.ContainsFunc(before, func(o Member) bool { return o.Name == m.Name }):
		return fmt.Sprintf("two researchers are called %s", m.Name), ""
	case m.Name == PI:
		return "pi is the name of the investigator itself", ""
	case len(m.Command) > 0 && m.URL != "":
		return fmt.Sprintf("researcher %s has a command and a url; one of them must go", m.Name), ""
	case builtin && m.External():
		return fmt.Sprintf("%s is a built-in researcher and cannot have a command or url", m.Name), "choose another name"
	case builtin && m.described():
		return fmt.Sprintf("%s is a built-in researcher: only share, timeout and off can be set", m.Name), ""
	case !builtin && !m.External():
		return fmt.Sprintf("researcher %s has neither a command nor a url", m.Name), ""
	case !builtin && m.Scope == "":
		return fmt.Sprintf("researcher %s has no scope", m.Name), "say in a sentence what it covers: the investigator chooses by it"
	case m.Connector && m.Trust != "":
		return fmt.Sprintf("trust of %s is for a researcher", m.Name), "what a connector hands over is stored and checked here"
	case !m.Connector && (m.Search != nil || m.Fetch != nil):
		return fmt.Sprintf("search and fetch of %s are for a connector", m.Name), "kind: connector makes it one"
	case m.TokenEnv != "" && m.URL == "":
		return fmt.Sprintf("token_env of %s is for a url", m.Name), "env names the variables that a command may see"
	case m.ClientID != "" && (m.URL == "" || m.TokenEnv != ""):
		return fmt.Sprintf("client_id of %s is for a url without token_env", m.Name), "it is for 'marchwarden researchers login'"
	case m.SecretEnv != "" && m.ClientID == "":
		return fmt.Sprintf("client_secret_env of %s goes with a client_id", m.Name), ""
	case len(m.Env) > 0 && m.URL != "":
		return fmt.Sprintf("env of %s is for a command", m.Name), "token_env names the variable with the token for a url"
	}
	return m.URLProblem()
}

// described reports whether more is said of a member than its weights.
func (m Member) described() bool {
	return m.Scope != "" || m.Connector || m.TokenEnv != "" || m.ClientID != "" || m.SecretEnv != "" || len(m.Env) > 0 || m.Trust != "" || m.Private
}

// URLProblem says what is wrong with the address, which may hold a password and is
// not repeated.
func (m Member) URLProblem() (problem, hint string) {
	if m.URL == "" {
		return "", ""
	}
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("url of %s must begin with http:// or https:// and a host", m.Name), ""
	case u.User != nil:
		return fmt.Sprintf("url of %s must hold no password", m.Name), "token_env names the variable with its token"
	}
	return "", ""
}

// MemberNamed is what the configuration says of a researcher, if anything.
func (c *Settings) MemberNamed(name string) Member {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == name })
	if i < 0 {
		return Member{Name: name}
	}
	return c.Members[i]
}

// ResearcherNames are all that --researcher may say.
func (c *Settings) ResearcherNames() []string { return append(c.MemberNames(), PI) }

// MemberNames are all who may be in a network.
func (c *Settings) MemberNames() []string {
	names := slices.Clone(Builtin)
	for _, m := range c.Members {
		if m.External() {
			names = append(names, m.Name)
		}
	}
	return names
}

// AreMembers refuses names in field that no member of a network has.
func (c *Settings) AreMembers(field string, names []string) error {
	for _, name := range names {
		if !slices.Contains(c.MemberNames(), name) {
			return Invalid(field, "", fmt.Sprintf("must be a list of %s, not %q", Either(c.MemberNames()), plaintext.Clip(name, 40)))
		}
	}
	return nil
}

// Deadline is how long a research may take in all. One that stays on this machine
// has none unless it was asked for: a large folder may take long to index once.
func (c *Settings) Deadline(flag string, outside bool) (time.Duration, error) {
	if flag != "" {
		d, problem := ParseSpan(flag)
		if problem != "" {
			return 0, Invalid("--timeout", "", problem)
		}
		return d, nil
	}
	if !outside && c.Origin(Timeout) == FromDefault {
		return 0, nil
	}
	return time.ParseDuration(c.Text(Timeout))
}
