package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/joho/godotenv"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/configfile"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client/login"
)

// The origins of a value that are no flag.
const (
	fromEnv     = "environment"
	fromDotEnv  = ".env"
	fromFile    = "config.yaml"
	fromDefault = "default"
)

// value is what a setting has and where that came from.
type value struct {
	texts  []string // one text, or the folders of a list
	origin string
}

// config is all settings of one command.
type config struct {
	values  map[string]value
	members []member // the researchers of config.yaml
}

func (c *config) text(name string) string {
	if v := c.values[name]; len(v.texts) > 0 {
		return v.texts[0]
	}
	return ""
}

func (c *config) list(name string) []string { return c.values[name].texts }

// secrets are the values that must never leave the program but by their own door.
func (c *config) secrets() []string {
	var all []string
	for _, s := range settings {
		if s.secret && c.text(s.name) != "" {
			all = append(all, c.text(s.name))
		}
		if u, err := url.Parse(c.text(s.name)); (s.kind == address || s.name == setDB) && err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				// The second is how it travels, and how a service may send it back.
				all = append(all, password, base64.RawStdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
			}
		}
	}
	return all
}

// early are the secrets that are known before the settings are read, whose faults are
// told too: of the environment, and passwords in the addresses of arguments.
func (a *app) early(args []string) []string {
	var all []string
	for _, s := range settings {
		if v, ok := a.env(s.env); ok && s.secret && s.name != setDB {
			all = append(all, v)
		} else if ok {
			all = append(all, passwords(v)...)
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		for _, spelling := range []string{name, strings.ToLower(name)} {
			v, _ := a.env(spelling)
			all = append(all, passwords(v)...)
		}
	}
	if v, ok := a.env("PGPASSWORD"); ok { // which the driver reads
		all = append(all, v)
	}
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "--") {
			arg = value
		}
		all = append(all, passwords(arg)...)
	}
	return all
}

// hidden are the values that are taken out of what is printed and stored: keys,
// passwords in addresses, and what researchers of somebody else's are given.
func (a *app) hidden(c *config) []string {
	var all []string
	for _, s := range settings {
		if s.secret && s.name != setDB { // which may be a plain file
			all = append(all, c.text(s.name))
		}
		if s.kind == address || s.name == setDB {
			all = append(all, passwords(c.text(s.name))...)
		}
	}
	all = append(all, pastedSeed(c.text(setEngineKey)))
	for _, m := range c.members {
		for _, name := range m.secretVariables() {
			v, _ := a.env(name)
			all = append(all, v)
		}
	}
	return append(all, login.Secrets(c.loginsPath())...)
}

// passwords are those in an address: before its host, or among its parameters. They
// come in no order.
func passwords(address string) []string {
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

func (c *config) on(name string) bool { return c.text(name) == "true" }

func (c *config) home() string { return c.text(setHome) }

// layer answers for a setting from one place, or says that it has nothing.
type layer struct {
	origin string
	get    func(s setting) (texts []string, ok bool)
	base   string // what relative paths are relative to
}

// loadConfig finds every setting: flags, then the environment, then .env in the
// working directory, then config.yaml in the home folder, then the default. It
// reads files and makes none, and tells the app about colour and home. A key that
// config.yaml must not have, and a value that its setting cannot have, are errors
// that name it.
func (a *app) loadConfig() (*config, error) {
	dotenv, err := readDotEnv(filepath.Join(a.dir, ".env"))
	if err != nil {
		return nil, err
	}
	layers := []layer{
		{fromEnv, func(s setting) ([]string, bool) { v, ok := a.env(s.env); return s.split(v), ok && s.present(v) }, a.dir},
		{fromDotEnv, func(s setting) ([]string, bool) {
			v := dotenv[s.env]
			if s.present(v) && !a.believes(s, dotenv) {
				where := "the environment or in config.yaml"
				if s.envOnly {
					where = "the environment"
				}
				a.warn(s.env + " in .env is ignored: the folder you are in must not decide that; set it in " + where)
				return nil, false
			}
			return s.split(v), s.present(v)
		}, a.dir},
	}
	c := &config{values: map[string]value{}}
	home := settings[0]
	if c.values[setHome], err = a.resolve(home, layers); err != nil {
		return nil, err
	}
	if c.home() == "" {
		user, err := a.userHome()
		if err != nil || user == "" {
			return nil, invalid("MARCHWARDEN_HOME", "set MARCHWARDEN_HOME to a folder that marchwarden may keep its records in", "no home folder is known: neither MARCHWARDEN_HOME nor HOME is set")
		}
		c.values[setHome] = value{[]string{filepath.Join(user, ".marchwarden")}, fromDefault}
	}
	a.home = c.home()
	file, members, err := readConfigFile(filepath.Join(c.home(), fromFile))
	if err != nil {
		return nil, err
	}
	c.members = members
	layers = append(layers, layer{fromFile, func(s setting) ([]string, bool) { v, ok := file[s.name]; return v, ok }, c.home()})
	if a.logFormat != "" {
		flag := func(s setting) ([]string, bool) { return []string{a.logFormat}, s.name == setLogFormat }
		layers = slices.Insert(layers, 0, layer{"--log-format", flag, a.dir})
	}
	for _, s := range settings[1:] {
		v, err := a.resolve(s, layers)
		if err != nil {
			return nil, err
		}
		if v.origin == "" {
			v = s.byDefault(c.home())
		}
		c.values[s.name] = v
	}
	a.noColor = c.on(setNoColor)
	if a.hide != nil {
		a.hide.Learn(a.hidden(c)...)
	}
	return c, nil
}

// believes reports whether .env may say a setting: the folder of a stranger must
// not choose a model for the user's documents, an address for the user's key, or a
// program to run.
func (a *app) believes(s setting, dotenv map[string]string) bool {
	if s.of == "" {
		return (s.secret || s.harmless) && !s.personal
	}
	key := settingOf(s.of)
	own, _ := a.env(key.env)
	return key.present(dotenv[key.env]) && !key.present(own)
}

// resolve asks the layers in turn and checks what the first one says.
func (a *app) resolve(s setting, layers []layer) (value, error) {
	for _, l := range layers {
		texts, ok := l.get(s)
		if !ok {
			continue
		}
		texts, problem := s.read(texts, func(p string) string { return a.absolute(p, l.base) })
		if problem != "" {
			return value{}, invalid(s.label(l.origin), "", problem)
		}
		return value{texts, l.origin}, nil
	}
	return value{}, nil
}

// absolute makes a path from a setting absolute; "~/" is the user's home.
func (a *app) absolute(path, base string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := a.userHome(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

// either lists choices: "shallow, balanced or deep".
func either(choices []string) string {
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
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, invalid(path, "", "cannot be read: "+cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSettingsBytes+1))
	if err != nil {
		return nil, invalid(path, "", "cannot be read: "+cause(err))
	}
	if len(data) > maxSettingsBytes {
		return nil, invalid(path, "", fmt.Sprintf("is larger than %d bytes", maxSettingsBytes))
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
		return nil, invalid(path, "quote values that hold spaces or special characters", "is not a list of NAME=value lines")
	}
	return vars, nil
}

// readConfigFile reads config.yaml into the texts of each key, and its researchers.
func readConfigFile(path string) (map[string][]string, []member, error) {
	data, err := readSettings(path)
	if err != nil {
		return nil, nil, err
	}
	entries, err := configfile.Parse(data)
	var fault *configfile.Fault
	if errors.As(err, &fault) {
		where := path
		if fault.Line > 0 {
			where = fmt.Sprintf("%s:%d", path, fault.Line)
		}
		return nil, nil, invalid(where, fault.Hint, fault.Message)
	}
	file := map[string][]string{}
	var members []member
	for _, e := range entries {
		where := fmt.Sprintf("%s:%d", path, e.Line)
		if e.Key == keyResearchers {
			if members != nil {
				return nil, nil, invalid(where, "", fmt.Sprintf("key %q is there twice", e.Key))
			}
			if members, err = readMembers(path, e); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err := checkKey(where, e.Key, file); err != nil {
			return nil, nil, err
		}
		if e.Tables != nil {
			return nil, nil, invalid(where, "", fmt.Sprintf("key %q must have a plain value or a list of them", e.Key))
		}
		if e.Texts != nil {
			file[e.Key] = e.Texts
		}
	}
	return file, members, nil
}

// keyResearchers is the key of config.yaml that is no setting but a list.
const keyResearchers = "researchers"

func checkKey(where, key string, have map[string][]string) error {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == key })
	switch {
	case i < 0:
		return invalid(where, "the keys are "+either(fileKeys()), fmt.Sprintf("unknown key %q", clip(key, 60)))
	case settings[i].envOnly:
		places := "in the environment or in .env"
		if settings[i].personal {
			places = "in the environment"
		}
		return invalid(where, "set "+settings[i].env+" "+places, fmt.Sprintf("key %q cannot be set in this file", key))
	case have[key] != nil:
		return invalid(where, "", fmt.Sprintf("key %q is there twice", key))
	}
	return nil
}

// fileKeys are the keys that config.yaml may have.
func fileKeys() []string {
	var keys []string
	for _, s := range settings {
		if !s.envOnly {
			keys = append(keys, s.name)
		}
	}
	return append(keys, keyResearchers)
}

// cause is the reason of a failure without the path, which the message has.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
