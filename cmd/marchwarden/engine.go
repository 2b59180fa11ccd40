package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// engineFlag adds the flag that names a cluster.
func engineFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "engine", "", "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas; "+settings.NoEngine+" for no cluster, whatever the settings say")
}

// engineName is who the program is to a hub, for people who look at its connections.
func (a *app) engineName() string {
	return plainName(fmt.Sprintf("%s-%d-%s", hostName(), os.Getpid(), a.NewID().String()[24:]))
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// plainName is a name with nothing but letters, digits, dashes and underscores.
func plainName(s string) string {
	return strings.Trim(notPlain.ReplaceAllString(s, "-"), "-")
}

// owner is for whom the program asks.
func (a *app) owner() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if v, ok := a.Env(name); ok && v != "" {
			return v
		}
	}
	return ""
}
