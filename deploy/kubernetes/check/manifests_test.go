// Package check reads the manifests of Marchwarden as a Kubernetes server would, without
// one: every field must be of the type that the API has, and what manifests say of each
// other must hold. It is a module of its own, so that no other module pays for that API.
package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Manifest is one object and where it stands.
type Manifest struct {
	Where  string // file and number of the document
	Object metav1.Object
	Kind   string
}

// kinds are the kinds that may be there, each with a new one.
var kinds = map[string]func() metav1.Object{
	"v1 Namespace":                           func() metav1.Object { return &corev1.Namespace{} },
	"v1 ServiceAccount":                      func() metav1.Object { return &corev1.ServiceAccount{} },
	"v1 Service":                             func() metav1.Object { return &corev1.Service{} },
	"v1 ConfigMap":                           func() metav1.Object { return &corev1.ConfigMap{} },
	"apps/v1 StatefulSet":                    func() metav1.Object { return &appsv1.StatefulSet{} },
	"apps/v1 Deployment":                     func() metav1.Object { return &appsv1.Deployment{} },
	"policy/v1 PodDisruptionBudget":          func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":     func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
}

// Load reads every YAML file in folders, in order of their names.
func Load(folders ...string) ([]Manifest, error) {
	var all []Manifest
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := Parse(filepath.Base(file), data)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// Parse reads the documents of a file. Unknown and repeated fields, fields in a wrong
// case and values of a wrong type are errors.
func Parse(file string, data []byte) ([]Manifest, error) {
	var all []Manifest
	for i, document := range bytes.Split(data, []byte("\n---\n")) {
		where := fmt.Sprintf("%s, document %d", file, i+1)
		object, kind, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		all = append(all, Manifest{Where: where, Object: object, Kind: kind})
	}
	return all, nil
}

func decode(document []byte) (metav1.Object, string, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, "", err
	}
	var meta metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &meta); err != nil {
		return nil, "", err
	}
	kind := meta.APIVersion + " " + meta.Kind
	make, ok := kinds[kind]
	if !ok {
		return nil, "", fmt.Errorf("%q is not among the kinds that are looked at", kind)
	}
	object := make()
	strict, err := json.UnmarshalStrict(text, object)
	if err != nil {
		return nil, "", err
	}
	if len(strict) > 0 {
		lines := []string{}
		for _, e := range strict {
			lines = append(lines, e.Error())
		}
		return nil, "", fmt.Errorf("%s", strings.Join(lines, "; "))
	}
	return object, meta.Kind, nil
}

// pods are the templates of pods in a manifest, none or one, with what selects them and
// the volumes that it makes for each.
func (m Manifest) pods() (template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, claims []string) {
	switch o := m.Object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template, o.Spec.Selector, nil
	case *appsv1.StatefulSet:
		for _, c := range o.Spec.VolumeClaimTemplates {
			claims = append(claims, c.Name)
		}
		return &o.Spec.Template, o.Spec.Selector, claims
	}
	return nil, nil, nil
}
