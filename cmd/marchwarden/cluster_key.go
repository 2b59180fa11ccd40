package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type clusterKeyOptions struct{ role, out string }

func newClusterKey(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use: "key", Short: "make, list and remove the keys of a cluster",
	}, newClusterKeyAdd(a), newClusterKeyList(a), newClusterKeyRemove(a))
}

func newClusterKeyAdd(a *app) *cobra.Command {
	var o clusterKeyOptions
	cmd := &cobra.Command{
		Use: "add NAME", Short: "make a key and write it to a file", Args: argCount(1, 1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error { return runClusterKeyAdd(a, o, args[0]) },
	}
	var roles []string
	for _, r := range hub.Roles() {
		roles = append(roles, string(r))
	}
	keysFlag(cmd)
	cmd.Flags().StringVar(&o.role, "role", string(hub.RoleClient), "what it is good for, its `ROLE`: "+strings.Join(roles, ", "))
	cmd.Flags().StringVar(&o.out, "out", "", "write the key to this new `FILE` (default NAME.key)")
	complete(cmd, "role", roles...)
	return cmd
}

func keysFlag(cmd *cobra.Command) {
	settingFlag(cmd.Flags(), "keys", settings.HubKeys, "`FILE` of the keys (default cluster-keys.json in the home folder)")
}

// clusterKeys is the keys file, and what is in it.
func clusterKeys(a *app) (file hub.KeysFile, list []hub.Key, err error) {
	c, err := a.loadConfig()
	if err != nil {
		return "", nil, err
	}
	path := cmp.Or(c.Text(settings.HubKeys), c.ClusterKeysPath())
	list, _, err = hub.ReadKeys(path)
	return hub.KeysFile(path), list, err
}

func runClusterKeyAdd(a *app, o clusterKeyOptions, name string) error {
	file, before, err := clusterKeys(a)
	if err != nil {
		return err
	}
	out := a.Source().Absolute(cmp.Or(o.out, name+".key"), a.Dir)
	if o.out == "" && plainName(name) != name {
		return invalid("NAME", "name the file: --out FILE", fmt.Sprintf("%q makes no name of a file", plaintext.Clip(name, 40)))
	}
	// The file first: an unused key does no harm, and one that cannot be stored is lost.
	f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return invalid("--out", "choose another name", fmt.Sprintf("%q is there already", out))
	}
	if err != nil {
		return invalid("--out", "", fmt.Sprintf("%q cannot be written: %s", out, durable.Cause(err)))
	}
	seed, err := file.Add(a.Now(), name, hub.Role(o.role))
	if err != nil {
		return errors.Join(asFlag(err), durable.Discard(f))
	}
	a.Hide.Learn(string(seed))
	_, err = f.Write(append(seed, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return marchwarden.Wrap(errors.Join(err, file.Remove(name)), marchwarden.CodeUnavailable, "write the key to %s", out)
	}
	a.note("the key %s (%s) is in %s; where it is used: %s=%s", name, o.role, out, settings.EnvOf(settings.EngineKey), out)
	if len(before) == 0 {
		a.note("it is the first in %s: from now on hubs with that file refuse connections without a key", file)
	}
	return nil
}

func newClusterKeyList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list the keys of a cluster", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return runClusterKeyList(a, asJSON) },
	}
	keysFlag(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func runClusterKeyList(a *app, asJSON bool) error {
	file, list, err := clusterKeys(a)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, k := range list {
		rows = append(rows, []string{k.Name, string(k.Role), a.inZone(k.Created), k.Public})
	}
	none := fmt.Sprintf("there are no keys in %s yet; 'marchwarden cluster key add NAME' makes one", file)
	return a.show(asJSON, append([]hub.Key{}, list...), []string{"name", "role", "created", "public half"}, rows, none)
}

func newClusterKeyRemove(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "accept a key no longer", Args: argCount(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, _, err := clusterKeys(a)
			if err != nil {
				return err
			}
			if err := file.Remove(args[0]); err != nil {
				return err
			}
			a.note("the key %s is removed from %s; hubs cut its connections within a second", args[0], file)
			return nil
		},
	}
	keysFlag(cmd)
	return cmd
}
