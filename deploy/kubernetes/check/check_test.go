package check

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestManifests(t *testing.T) {
	all, err := Load("..", "../optional")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range Faults(all) {
		t.Error(fault)
	}
	if len(all) < 10 {
		t.Errorf("only %d manifests were found", len(all))
	}
	for _, m := range all {
		if m.Kind == "Secret" {
			t.Errorf("%s: secrets are made where they are used, and stand in no file", m.Where)
		}
	}
}

// Every rule finds what it is for: each change to a manifest that passes is a fault.
func TestRulesFind(t *testing.T) {
	for file, changes := range map[string]map[string]string{
		"../10-hub.yaml": {
			"replicas: 3":                        "replicas: three",
			"serviceName: marchwarden-hubs":      "serviceName: elsewhere",
			"podManagementPolicy:":               "podManagementPolitics:",
			"minReadySeconds:":                   "minreadyseconds:",
			"targetPort: engine":                 "targetPort: motor",
			"{name: tmp, mountPath: /tmp}":       "{name: temp, mountPath: /tmp}",
			"{path: /readyz, port: probe}":       "{path: /readyz, port: prob}",
			"storage: 200Gi":                     "storage: 200 Gi",
			"runAsNonRoot: true":                 "runAsNonRoot: false",
			"serviceAccountName: marchwarden":    "serviceAccountName: other",
			"readOnlyRootFilesystem: true":       "readOnlyRootFilesystem: false",
			"limits: {memory: 8Gi}":              "limits: {memory: 1Gi}",
			"name: marchwarden-engine":           "name: Marchwarden_Engine",
			"- name: MARCHWARDEN_HUB_LISTEN":     "- name: MARCHWARDEN_HUB_NAME",
			"- name: probe":                      "- name: a-name-that-is-too-long",
			"maxUnavailable: 1\n  selector:":     "maxUnavailable: 1\n  maxUnavailable: 2\n  selector:",
			"  namespace: marchwarden\n  labels": "  namespace: elsewhere\n  labels",
		},
		"../30-network.yaml": {"port: 443": "port: 444", "cidr: 0.0.0.0/0": "cidr: 10.0.0.0/8", "{protocol: TCP, port: cluster}": "{protocol: TCP, port: clusters}", "port: 6222": "port: 6223", "component: worker": "component: walker"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for from, to := range changes {
			changed := strings.Replace(string(text), from, to, 1)
			if changed == string(text) {
				t.Errorf("%s has no %q", file, from)
			}
			if got := with(t, file, changed); got == "" {
				t.Errorf("%s with %q for %q: no fault was found", file, to, from)
			}
		}
	}
}

// with is the faults of all manifests if one file had another text.
func with(t *testing.T, file, text string) string {
	t.Helper()
	all, err := Load("..", "../optional")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`[^/]+$`).FindString(file)
	changed, err := Parse(name, []byte(text))
	if err != nil {
		return err.Error()
	}
	for _, m := range all {
		if !strings.HasPrefix(m.Where, name+",") {
			changed = append(changed, m)
		}
	}
	return strings.Join(Faults(changed), "\n")
}
