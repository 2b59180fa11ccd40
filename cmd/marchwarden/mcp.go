package main

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func newMCP(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "mcp", Short: "connect Marchwarden to Claude, VS Code, Cursor and other MCP hosts"}, newMCPConfig(a), newMCPPing(a))
}

type mcpOptions struct {
	http, tokenEnv string
	env            []string
}

func newMCPConfig(a *app) *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use: "config HOST [RESEARCHER] [-- FLAG…]", Short: "print the configuration of Marchwarden for an MCP host",
		ValidArgs: mcpkit.HostNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var flags []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, flags = slices.Clone(args[:dash]), args[dash:]
			}
			if err := argCount(1, 2, "a host and, if you like, a researcher")(cmd, args); err != nil {
				return err
			}
			args = append(args, settings.PI)[:2]
			if !slices.Contains(mcpkit.HostNames(), args[0]) {
				return invalid("host", "", fmt.Sprintf("must be %s, not %q", settings.Either(mcpkit.HostNames()), plaintext.Clip(args[0], 40)))
			}
			servable := append([]string{settings.PI}, settings.Builtin...)
			if !slices.Contains(servable, args[1]) {
				return invalid("researcher", "", fmt.Sprintf("must be %s, not %q", settings.Either(servable), plaintext.Clip(args[1], 40)))
			}
			var e mcpkit.HostEntry
			var err error
			if o.http != "" {
				e, err = remoteEntry(o, flags)
			} else {
				e, err = localEntry(a, o, args[1], flags)
			}
			if err != nil {
				return err
			}
			if e.Name = "marchwarden"; args[1] != settings.PI {
				e.Name += "-" + args[1]
			}
			text, notes := mcpkit.HostConfig(args[0], e, runtime.GOOS)
			if err := a.print("%s", text); err != nil {
				return err
			}
			for _, line := range notes {
				a.note("%s", line)
			}
			mcpWarnings(a, e)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.http, "http", "", "refer to the server at `URL` instead of starting one")
	f.StringVar(&o.tokenEnv, "token-env", "", "`NAME` of the variable that holds the token of the server of --http")
	f.StringSliceVar(&o.env, "env", nil, "`LIST` of variables, such as keys, that the started server is to see")
	return cmd
}

// variable is what the name of an environment variable looks like, and a token does not.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func localEntry(a *app, o mcpOptions, researcher string, flags []string) (mcpkit.HostEntry, error) {
	if o.tokenEnv != "" {
		return mcpkit.HostEntry{}, invalid("--token-env", "a server that the host starts needs no token; --env passes other variables on", "goes with --http")
	}
	for _, v := range o.env {
		if !variable.MatchString(v) { // and is not repeated: it may be a key
			return mcpkit.HostEntry{}, invalid("--env", "name variables, such as --env TAVILY_API_KEY; their values are not written down", "must be names of environment variables")
		}
	}
	self, err := a.Self()
	err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find this program")
	if err := cmp.Or(checkServeFlags(a, researcher, flags), err); err != nil {
		return mcpkit.HostEntry{}, err
	}
	e := mcpkit.HostEntry{Command: self, Args: append([]string{"serve", researcher}, flags...), Env: o.env}
	if home, ok := a.Env("MARCHWARDEN_HOME"); ok && home != "" {
		e.Home = a.Source().Absolute(home, a.Dir)
	}
	return e, nil
}

// checkServeFlags reads flags as 'serve' will, so that no host is given a server
// that cannot start. A password must not get into the file of a host, and a host
// starts servers in a folder of its own choice.
func checkServeFlags(a *app, researcher string, flags []string) error {
	root := &cobra.Command{Use: "marchwarden"}
	root.AddCommand(newServe(a))
	cmd, _, err := root.Find([]string{"serve", researcher})
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "find the command of the researcher %s", researcher)
	}
	if err := cmd.ParseFlags(flags); err != nil {
		return flagError(cmd, err)
	}
	if err := noArgs(cmd, cmd.Flags().Args()); err != nil {
		return err
	}
	if cmd.Flags().Changed("http") {
		return invalid("--http", "leave out the -- before it to refer to a server that runs already", "is not for a server that the host starts")
	}
	if err := cmp.Or(notBlank(cmd), cmd.PreRunE(cmd, nil)); err != nil {
		return err
	}
	for _, flag := range flags {
		_, value, _ := strings.Cut(flag, "=")
		if len(settings.Passwords(flag)) > 0 || len(settings.Passwords(value)) > 0 {
			return invalid("", "set MARCHWARDEN_DB where the host runs, and pass it on by --env MARCHWARDEN_DB", "an address with a password must not be in the configuration of a host")
		}
	}
	folders, _ := cmd.Flags().GetStringArray("library") // none where there is no such flag
	for _, dir := range folders {
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
			return invalid("--library", "the host starts the server in a folder of its own choice", fmt.Sprintf("must be an absolute path, not %q", plaintext.Clip(dir, 60)))
		}
	}
	return nil
}

func remoteEntry(o mcpOptions, flags []string) (mcpkit.HostEntry, error) {
	if len(flags) > 0 || len(o.env) > 0 {
		return mcpkit.HostEntry{}, invalid("--http", "give flags and variables to the server where it is started", "refers to a server that runs already; flags after -- and --env are for one that the host starts")
	}
	u, ok := access.ServerURL(o.http)
	if !ok {
		return mcpkit.HostEntry{}, invalid("--http", "", "must be an http or https address without user, query or fragment, such as http://127.0.0.1:8642/mcp")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	if o.tokenEnv != "" && !variable.MatchString(o.tokenEnv) { // and is not repeated: it may be the token
		return mcpkit.HostEntry{}, invalid("--token-env", "put the token into a variable and give its name", "must be the name of an environment variable")
	}
	return mcpkit.HostEntry{URL: u.String(), Token: o.tokenEnv}, nil
}

// mcpWarnings tells what makes a good configuration fail later.
func mcpWarnings(a *app, e mcpkit.HostEntry) {
	if e.URL != "" {
		if e.Token != "" && e.Unencrypted() {
			a.warn("the token travels unencrypted to " + e.URL + "; serve it by https")
		}
		return
	}
	if strings.Contains(filepath.ToSlash(e.Command), "/go-build") {
		a.warn("this program was made by 'go run' and will be gone: build it, and run the command from there")
	}
	for _, s := range settings.All {
		v, ok := a.Env(s.Env)
		if ok && s.Present(v) && s.Secret && s.Name != settings.HTTPToken && !slices.Contains(e.Env, s.Env) {
			a.note("%s is set here and may not be where the host runs: --env %s passes it on by name", s.Env, s.Env)
		}
	}
}

func newMCPPing(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ping [URL]", Short: "ask a server of 'serve --http' whether it is ready",
		Args: argCount(0, 1, "at most one address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(append(args, "http://127.0.0.1:8642")[0])
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
				return invalid("url", "", "must be an http or https address such as http://127.0.0.1:8642")
			}
			if err := httpdoor.Ping(cmd.Context(), u); err != nil {
				return err
			}
			return a.print("ready\n")
		},
	}
}
