package settings

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/joho/godotenv"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// The origins of a value that are no flag.
const (
	FromEnv     = "environment"
	FromDotEnv  = ".env"
	FromFile    = "config.yaml"
	FromDefault = "default"
)

// Value is what a setting has and where that came from.
type Value struct {
	Texts  []string // one text, or the folders of a list
	Origin string
}

// Settings is all settings of one command.
type Settings struct {
	Values  map[string]Value
	Members []Member // the researchers of config.yaml
}

func (c *Settings) Text(name string) string {
	if v := c.Values[name]; len(v.Texts) > 0 {
		return v.Texts[0]
	}
	return ""
}

func (c *Settings) List(name string) []string { return c.Values[name].Texts }

// Secrets are the values that must never leave the program but by their own door.
func (c *Settings) Secrets() (all []string) {
	for _, s := range All {
		if s.Secret && c.Text(s.Name) != "" {
			all = append(all, c.Text(s.Name))
		}
		if u, err := url.Parse(c.Text(s.Name)); (s.Kind == Address || s.Name == DB) && err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				// The second is how it travels, and how a service may send it back.
				all = append(all, password, base64.RawStdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
			}
		}
	}
	return all
}

// secrets are what a value of the setting holds that must not be seen: a key, or the passwords of an
// address. That of a database may be a plain file.
func (s Setting) secrets(value string) []string {
	if s.Secret && s.Name != DB && value != "" {
		return []string{value}
	}
	return Passwords(value)
}

// EarlySecrets are the secrets that are known before the settings are read, whose faults are
// told too: of the environment, and passwords in the addresses of arguments.
func EarlySecrets(env func(string) (string, bool), args []string) (all []string) {
	for _, s := range All {
		v, _ := env(s.Env)
		all = append(all, s.secrets(v)...)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		v, _ := env(name)
		all = append(all, Passwords(v)...)
	}
	if v, ok := env("PGPASSWORD"); ok { // which the driver reads
		all = append(all, v)
	}
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "--") {
			arg = value
		}
		all = append(all, Passwords(arg)...)
	}
	return all
}

// Hidden are the values that are taken out of what is printed and stored: keys,
// passwords in addresses, and what external researchers are given.
func (c *Settings) Hidden(env func(string) (string, bool)) (all []string) {
	for _, s := range All {
		all = append(all, s.secrets(c.Text(s.Name))...)
	}
	all = append(all, PastedSeed(c.Text(EngineKey)))
	for _, m := range c.Members {
		for _, name := range append([]string{m.TokenEnv, m.SecretEnv}, m.Env...) {
			if v, ok := env(name); ok && (name == m.TokenEnv || name == m.SecretEnv || soundsSecret(name)) {
				all = append(all, v)
			}
		}
	}
	return all
}

// Passwords are those in an address: before its host, or among its parameters. They
// come in no order.
func Passwords(address string) []string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme == "" {
		return nil
	}
	var all []string
	if u.User != nil {
		password, _ := u.User.Password()
		if password == "" && (u.Scheme == "http" || u.Scheme == "https") {
			password = u.User.Username() // a token, as some services want it
		}
		all = append(all, password)
	}
	for name, values := range u.Query() {
		if soundsSecret(name) {
			all = append(all, values...)
		}
	}
	return all
}

// Origin is where the value of a setting came from.
func (c *Settings) Origin(name string) string { return c.Values[name].Origin }

func (c *Settings) On(name string) bool { return c.Text(name) == "true" }

func (c *Settings) Home() string { return c.Text(Home) }

// layer answers for a setting from one place, or says that it has nothing.
type layer struct {
	origin string
	get    func(s Setting) (texts []string, ok bool)
	base   string // what relative paths are relative to
}

// Source is where settings are read from.
type Source struct {
	Env      func(name string) (string, bool)
	Dir      string                 // the working directory, where .env is
	UserHome func() (string, error) // the home folder of the user
	Warn     func(string)
	// Flags are what flags say in the place of settings, by the names of the settings.
	Flags map[string]Flag
	// Home is the home folder of a program that has its own settings: neither .env nor
	// config.yaml is read then. "" leaves it to the settings.
	Home string
}

// Flag is what a flag of the command line says.
type Flag struct{ Name, Text string }

// Load finds every setting: flags, then the environment, then .env in the
// working directory, then config.yaml in the home folder, then the default. It
// reads files and makes none. A key that config.yaml must not have, and a value that its
// setting cannot have, are errors that name it.
func Load(src Source) (*Settings, error) {
	var dotenv map[string]string
	var err error
	if src.Home == "" {
		if dotenv, err = readDotEnv(filepath.Join(src.Dir, ".env")); err != nil {
			return nil, err
		}
	}
	layers := []layer{
		{FromEnv, func(s Setting) ([]string, bool) { v, ok := src.Env(s.Env); return s.split(v), ok && s.Present(v) }, src.Dir},
		{FromDotEnv, func(s Setting) ([]string, bool) {
			v := dotenv[s.Env]
			if s.Present(v) && !src.believes(s, dotenv) {
				where := "the environment or in config.yaml"
				if s.EnvOnly {
					where = "the environment"
				}
				src.Warn(s.Env + " in .env is ignored: the folder you are in must not decide that; set it in " + where)
				return nil, false
			}
			return s.split(v), s.Present(v)
		}, src.Dir},
	}
	c := &Settings{Values: map[string]Value{}}
	home := All[0]
	if c.Values[Home], err = src.resolve(home, layers); err != nil {
		return nil, err
	}
	switch {
	case src.Home != "":
		c.Values[Home] = Value{[]string{src.Home}, FromDefault}
	case c.Home() == "":
		user, err := src.UserHome()
		if err != nil || user == "" {
			return nil, Invalid("MARCHWARDEN_HOME", "set MARCHWARDEN_HOME to a folder that marchwarden may keep its records in", "no home folder is known: neither MARCHWARDEN_HOME nor HOME is set")
		}
		c.Values[Home] = Value{[]string{filepath.Join(user, ".marchwarden")}, FromDefault}
	}
	var file map[string][]string
	if src.Home == "" {
		if file, c.Members, err = readConfigFile(filepath.Join(c.Home(), FromFile)); err != nil {
			return nil, err
		}
	}
	layers = append(layers, layer{FromFile, func(s Setting) ([]string, bool) { v, ok := file[s.Name]; return v, ok }, c.Home()})
	for name, flag := range src.Flags {
		layers = slices.Insert(layers, 0, layer{flag.Name, func(s Setting) ([]string, bool) { return s.split(flag.Text), s.Name == name }, src.Dir})
	}
	for _, s := range All[1:] {
		v, err := src.resolve(s, layers)
		if err != nil {
			return nil, err
		}
		if v.Origin == "" {
			v = s.byDefault(c.Home())
		}
		c.Values[s.Name] = v
	}
	return c, nil
}

// believes reports whether .env may say a setting: the folder of another person must
// not choose a model for the user's documents, an address for the user's key, or a
// program to run.
func (src Source) believes(s Setting, dotenv map[string]string) bool {
	if s.of == "" {
		return (s.Secret || s.harmless) && !s.Personal
	}
	key := Of(s.of)
	own, _ := src.Env(key.Env)
	return key.Present(dotenv[key.Env]) && !key.Present(own)
}

// resolve asks the layers in turn and checks what the first one says.
func (src Source) resolve(s Setting, layers []layer) (Value, error) {
	for _, l := range layers {
		texts, ok := l.get(s)
		if !ok {
			continue
		}
		texts, problem := s.Read(texts, func(p string) string { return src.Absolute(p, l.base) })
		hint := ""
		if problem == passwordInEngine {
			hint = "put the key into a file that only you can read, and name it by " + EnvOf(EngineKey)
		}
		if problem != "" {
			return Value{}, Invalid(s.label(l.origin), hint, problem)
		}
		return Value{texts, l.origin}, nil
	}
	return Value{}, nil
}

// Absolute makes a path from a setting absolute; "~/" is the user's home.
func (src Source) Absolute(path, base string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := src.UserHome(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// Either lists choices: "shallow, balanced or deep".
func Either(choices []string) string {
	if len(choices) < 2 {
		return strings.Join(choices, "")
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// maxSettingsBytes bounds .env and config.yaml.
const maxSettingsBytes = 1 << 20

// readSettings reads a small file; one that does not exist is empty.
func readSettings(path string) ([]byte, error) {
	f, err := durable.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxSettingsBytes+1))
	}
	switch {
	case err != nil:
		return nil, Invalid(path, "", "cannot be read: "+durable.Cause(err))
	case len(data) > maxSettingsBytes:
		return nil, Invalid(path, "", fmt.Sprintf("is larger than %d bytes", maxSettingsBytes))
	}
	return data, nil
}

// readDotEnv reads NAME=value lines into a map. Nothing enters the environment.
func readDotEnv(path string) (map[string]string, error) {
	data, err := readSettings(path)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	vars, err := godotenv.Parse(bytes.NewReader(data))
	if err != nil {
		// The parser's message quotes the file, which may hold secrets.
		return nil, Invalid(path, "quote values that hold spaces or special characters", "is not a list of NAME=value lines")
	}
	return vars, nil
}

// Row is a setting as 'doctor' shows it. Fields are only ever added.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Env    string `json:"env"`
}

// Rows are all settings as people may see them: secrets are masked.
func (c *Settings) Rows() (rows []Row) {
	for _, s := range All {
		v := c.Values[s.Name]
		shown := strings.Join(v.Texts, string(os.PathListSeparator))
		if s.Secret {
			shown = masked(shown)
		}
		if s.Personal && shown != "" { // an address may end in its password
			shown = masked(".")
		}
		if u, err := url.Parse(shown); s.Kind == Address && err == nil {
			shown = u.Redacted()
		}
		if shown == "" {
			shown = "not set"
		}
		rows = append(rows, Row{Name: s.Name, Value: shown, Origin: v.Origin, Env: s.Env})
	}
	return rows
}

// masked hides a secret. The last four characters of a long one stay, so that
// two keys can be told apart.
func masked(secret string) string {
	const longEnough, shown = 12, 4
	switch r := []rune(secret); {
	case len(r) == 0:
		return ""
	case len(r) > longEnough:
		return "…" + string(r[len(r)-shown:])
	}
	return "…"
}
