package main

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/configfile"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// member is one researcher that the configuration names: a built-in one with other
// weights, or one of somebody else's.
type member struct {
	at        string // file and line
	name      string
	scope     string
	command   []string
	url       string
	tokenEnv  string
	clientID  string   // by which an authorization server knows this program
	secretEnv string   // the variable with what goes with it
	env       []string // names of variables that it may see
	share     float64
	trust     dispatch.Trust
	private   bool
	off       bool
	timeout   time.Duration
}

// external reports whether the member is somebody else's.
func (m member) external() bool { return len(m.command) > 0 || m.url != "" }

// secretVariables are the variables of the environment with what the member is given in
// confidence: its token, and of those that a program may see the ones whose names
// say so.
func (m member) secretVariables() []string {
	names := slices.DeleteFunc(slices.Clone(m.env), func(name string) bool { return !soundsSecret(name) })
	for _, name := range []string{m.tokenEnv, m.secretEnv} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// soundsSecret reports whether the name of a variable or a parameter says that its
// value is nobody's business.
func soundsSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "token", "secret", "pass", "pwd", "credential", "auth"}, func(part string) bool { return strings.Contains(name, part) })
}

// transport says where the member runs.
func (m member) transport() string { return firstOf(m.url, strings.Join(m.command, " ")) }

// memberKeys are the keys of one researcher in config.yaml, and what they set.
var memberKeys = map[string]func(m *member, texts []string) (problem string){
	"name":  func(m *member, t []string) string { return one(t, &m.name) },
	"scope": func(m *member, t []string) string { return one(t, &m.scope) },
	"command": func(m *member, t []string) string {
		if m.command = t; len(t) > 0 && strings.TrimSpace(t[0]) == "" {
			return "must begin with a program"
		}
		return ""
	},
	"url":               func(m *member, t []string) string { return one(t, &m.url) },
	"token_env":         func(m *member, t []string) string { return one(t, &m.tokenEnv) },
	"client_id":         func(m *member, t []string) string { return one(t, &m.clientID) },
	"client_secret_env": func(m *member, t []string) string { return one(t, &m.secretEnv) },
	"env":               func(m *member, t []string) string { m.env = t; return "" },
	"share": func(m *member, t []string) string {
		share, err := strconv.ParseFloat(strings.Join(t, " "), 64)
		if err != nil || !(share > 0 && share <= 100) {
			return "must be a number above 0, at most 100"
		}
		m.share = share
		return ""
	},
	"trust": func(m *member, t []string) string {
		var word string
		if problem := one(t, &word); problem != "" || word != string(dispatch.Known) && word != string(dispatch.Unknown) {
			return "must be known or unknown"
		}
		m.trust = dispatch.Trust(word)
		return ""
	},
	"private": func(m *member, t []string) string { return flag(t, &m.private) },
	"off":     func(m *member, t []string) string { return flag(t, &m.off) },
	"timeout": func(m *member, t []string) string {
		read, problem := setting{kind: span}.read(t, nil)
		if problem == "" {
			m.timeout, _ = time.ParseDuration(read[0]) // read has parsed it
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
	read, problem := setting{kind: boolean}.read(texts, nil)
	if problem == "" {
		*to = read[0] == "true"
	}
	return problem
}

// memberName is what a researcher may be called.
var memberName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

// readMembers reads the researchers of config.yaml. Errors name the line.
func readMembers(path string, e configfile.Entry) ([]member, error) {
	if len(e.Texts) > 0 {
		return nil, invalid(fmt.Sprintf("%s:%d", path, e.Line), "see docs/configuration.md", "researchers must be a list of items with name, scope and command or url")
	}
	var out []member
	for _, t := range e.Tables {
		m := member{at: fmt.Sprintf("%s:%d", path, t.Line)}
		for i, entry := range t.Entries {
			where := fmt.Sprintf("%s:%d", path, entry.Line)
			if slices.ContainsFunc(t.Entries[:i], func(e configfile.Entry) bool { return e.Key == entry.Key }) {
				return nil, invalid(where, "", fmt.Sprintf("key %q is there twice", clip(entry.Key, 60)))
			}
			set, known := memberKeys[entry.Key]
			if !known {
				return nil, invalid(where, "the keys are name, scope, command, url, token_env, client_id, client_secret_env, env, share, trust, private, off and timeout", fmt.Sprintf("unknown key %q of a researcher", clip(entry.Key, 60)))
			}
			if problem := set(&m, entry.Texts); problem != "" {
				return nil, invalid(where, "", entry.Key+" "+problem)
			}
		}
		if problem, hint := m.problem(out); problem != "" {
			return nil, invalid(m.at, hint, problem)
		}
		out = append(out, m)
	}
	return out, nil
}

// problem says what is wrong with a member as a whole.
func (m member) problem(before []member) (problem, hint string) {
	builtin := isBuiltin(m.name)
	switch {
	case !memberName.MatchString(m.name):
		return "name must be 1 to 40 of a-z, 0-9, _ and -, and begin with a letter", ""
	case slices.ContainsFunc(before, func(o member) bool { return o.name == m.name }):
		return fmt.Sprintf("two researchers are called %s", m.name), ""
	case m.name == piName:
		return "pi is the name of the investigator itself", ""
	case len(m.command) > 0 && m.url != "":
		return fmt.Sprintf("researcher %s has a command and a url; one of them must go", m.name), ""
	case builtin && m.external():
		return fmt.Sprintf("%s is a built-in researcher and cannot have a command or url", m.name), "choose another name"
	case builtin && m.described():
		return fmt.Sprintf("%s is a built-in researcher: only share, timeout and off can be set", m.name), ""
	case !builtin && !m.external():
		return fmt.Sprintf("researcher %s has neither a command nor a url", m.name), ""
	case !builtin && m.scope == "":
		return fmt.Sprintf("researcher %s has no scope", m.name), "say in a sentence what it covers: the investigator chooses by it"
	case m.tokenEnv != "" && m.url == "":
		return fmt.Sprintf("token_env of %s is for a url", m.name), "env names the variables that a command may see"
	case m.clientID != "" && (m.url == "" || m.tokenEnv != ""):
		return fmt.Sprintf("client_id of %s is for a url without token_env", m.name), "it is for 'marchwarden researchers login'"
	case m.secretEnv != "" && m.clientID == "":
		return fmt.Sprintf("client_secret_env of %s goes with a client_id", m.name), ""
	case len(m.env) > 0 && m.url != "":
		return fmt.Sprintf("env of %s is for a command", m.name), "token_env names the variable with the token for a url"
	}
	return m.urlProblem()
}

// described reports whether more is said of a member than its weights.
func (m member) described() bool {
	return m.scope != "" || m.tokenEnv != "" || m.clientID != "" || m.secretEnv != "" || len(m.env) > 0 || m.trust != "" || m.private
}

// urlProblem says what is wrong with the address, which may hold a password and is
// not repeated.
func (m member) urlProblem() (problem, hint string) {
	if m.url == "" {
		return "", ""
	}
	u, err := url.Parse(m.url)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("url of %s must begin with http:// or https:// and a host", m.name), ""
	case u.User != nil:
		return fmt.Sprintf("url of %s must hold no password", m.name), "token_env names the variable with its token"
	}
	return "", ""
}
