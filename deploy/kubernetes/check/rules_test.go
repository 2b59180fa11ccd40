package check

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// book is what manifests can refer to, and what was found wrong.
type book struct {
	all    []Manifest
	faults []string
}

// Faults are the sentences about all that does not hold in manifests which Load could
// read. None is well.
func Faults(all []Manifest) []string {
	b := &book{all: all}
	seen := map[string]bool{}
	for _, m := range all {
		id := m.Kind + " " + m.Object.GetNamespace() + "/" + m.Object.GetName()
		if seen[id] {
			b.fault(m, "%s is there twice", id)
		}
		seen[id] = true
		b.names(m)
		b.template(m)
		switch o := m.Object.(type) {
		case *corev1.Service:
			b.service(m, o)
		case *appsv1.StatefulSet:
			if !b.has("Service", o.Spec.ServiceName) {
				b.fault(m, "no service %q", o.Spec.ServiceName)
			}
		case *policyv1.PodDisruptionBudget:
			b.selects(m, o.Spec.Selector)
		case *networkingv1.NetworkPolicy:
			b.network(m, o)
		case *autoscalingv2.HorizontalPodAutoscaler:
			if t := o.Spec.ScaleTargetRef; !b.has(t.Kind, t.Name) {
				b.fault(m, "scales %s %q, which is not there", t.Kind, t.Name)
			}
		}
	}
	return b.faults
}

func (b *book) fault(m Manifest, format string, args ...any) {
	b.faults = append(b.faults, fmt.Sprintf("%s: %s %s: ", m.Where, m.Kind, m.Object.GetName())+fmt.Sprintf(format, args...))
}

func (b *book) has(kind, name string) bool {
	return slices.ContainsFunc(b.all, func(m Manifest) bool { return m.Kind == kind && m.Object.GetName() == name })
}

// names checks names, labels and the namespace, which must be one of ours.
func (b *book) names(m Manifest) {
	for _, e := range validation.IsDNS1123Subdomain(m.Object.GetName()) {
		b.fault(m, "name: %s", e)
	}
	if ns := m.Object.GetNamespace(); m.Kind != "Namespace" && !b.has("Namespace", ns) {
		b.fault(m, "no namespace %q", ns)
	}
	b.labels(m, m.Object.GetLabels())
}

func (b *book) labels(m Manifest, set map[string]string) {
	for key, value := range set {
		for _, e := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			b.fault(m, "label %s=%s: %s", key, value, e)
		}
	}
}

// template checks the pods that a manifest makes.
func (b *book) template(m Manifest) {
	template, selector, claims := m.pods()
	if template == nil {
		return
	}
	b.labels(m, template.Labels)
	if s, err := metav1.LabelSelectorAsSelector(selector); err != nil || s.Empty() || !s.Matches(labels.Set(template.Labels)) {
		b.fault(m, "its selector does not match the labels of its pods")
	}
	spec := template.Spec
	if !b.has("ServiceAccount", spec.ServiceAccountName) {
		b.fault(m, "no service account %q", spec.ServiceAccountName)
	}
	if c := spec.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil {
		b.fault(m, "its pods may run as root, or without seccomp")
	}
	for _, c := range spec.TopologySpreadConstraints {
		b.selects(m, c.LabelSelector)
	}
	volumes := slices.Clone(claims)
	for _, v := range spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
		b.container(m, c, volumes)
	}
	b.outward(m, template)
}

// outward checks that workers have a way to pages and models.
func (b *book) outward(m Manifest, pod *corev1.PodTemplateSpec) {
	if pod.Labels["app.kubernetes.io/component"] != "worker" {
		return
	}
	held, out := false, false
	for _, other := range b.all {
		p, ok := other.Object.(*networkingv1.NetworkPolicy)
		if !ok || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !slices.Contains(b.selected(&p.Spec.PodSelector), pod) {
			continue
		}
		held = true
		out = out || slices.ContainsFunc(p.Spec.Egress, letsOut)
	}
	if held && !out {
		b.fault(m, "its pods are not let out to port 443 of the internet")
	}
}

// letsOut says whether a rule lets out to HTTPS on the internet.
func letsOut(rule networkingv1.NetworkPolicyEgressRule) bool {
	return slices.ContainsFunc(rule.To, func(to networkingv1.NetworkPolicyPeer) bool {
		return to.IPBlock != nil && to.IPBlock.CIDR == "0.0.0.0/0"
	}) &&
		slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port != nil && p.Port.IntValue() == 443 })
}

func (b *book) container(m Manifest, c corev1.Container, volumes []string) {
	mounts := map[string]bool{}
	for _, v := range c.VolumeMounts {
		if !slices.Contains(volumes, v.Name) {
			b.fault(m, "%s mounts volume %q, which is not there", c.Name, v.Name)
		}
		if mounts[v.MountPath] {
			b.fault(m, "%s mounts two volumes at %s", c.Name, v.MountPath)
		}
		mounts[v.MountPath] = true
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		for _, e := range append(validation.IsValidPortName(p.Name), validation.IsValidPortNum(int(p.ContainerPort))...) {
			b.fault(m, "port %q: %s", p.Name, e)
		}
		ports[p.Name] = true
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		switch {
		case probe == nil || probe.HTTPGet == nil:
			b.fault(m, "%s has no %s probe", c.Name, name)
		case probe.HTTPGet.Port.Type == intstr.String && !ports[probe.HTTPGet.Port.StrVal]:
			b.fault(m, "the %s probe asks port %q, which is not there", name, probe.HTTPGet.Port.StrVal)
		}
	}
	env := map[string]bool{}
	for _, e := range c.Env {
		if env[e.Name] || e.Value != "" && e.ValueFrom != nil {
			b.fault(m, "variable %s is set twice", e.Name)
		}
		env[e.Name] = true
	}
	if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil || len(s.Capabilities.Drop) == 0 {
		b.fault(m, "%s may gain privileges or write to its image", c.Name)
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		b.fault(m, "%s does not say what memory and processor it needs", c.Name)
	}
	if c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
		b.fault(m, "%s asks for more memory than it may have", c.Name)
	}
}

// selected are the templates of pods that a selector matches.
func (b *book) selected(selector *metav1.LabelSelector) []*corev1.PodTemplateSpec {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	var found []*corev1.PodTemplateSpec
	for _, m := range b.all {
		if t, _, _ := m.pods(); t != nil && s.Matches(labels.Set(t.Labels)) {
			found = append(found, t)
		}
	}
	return found
}

func (b *book) selects(m Manifest, selector *metav1.LabelSelector) {
	if len(b.selected(selector)) == 0 {
		b.fault(m, "a selector matches no pods")
	}
}

// service checks that a service leads to ports that all its pods have.
func (b *book) service(m Manifest, s *corev1.Service) {
	pods := b.selected(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
	if len(s.Spec.Selector) == 0 || len(pods) == 0 {
		b.fault(m, "its selector matches no pods")
	}
	for _, p := range s.Spec.Ports {
		for _, pod := range pods {
			if !hasPort(pod, p.TargetPort) {
				b.fault(m, "port %s leads to %s, which its pods have not", p.Name, p.TargetPort.String())
			}
		}
	}
}

func hasPort(pod *corev1.PodTemplateSpec, port intstr.IntOrString) bool {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal {
				return true
			}
		}
	}
	return false
}

// network checks that a policy is about pods that are there, and names ports of theirs.
func (b *book) network(m Manifest, p *networkingv1.NetworkPolicy) {
	pods := b.selected(&p.Spec.PodSelector)
	if len(pods) == 0 {
		b.fault(m, "is about no pods")
	}
	for _, rule := range p.Spec.Ingress {
		for _, port := range rule.Ports {
			for _, pod := range pods {
				if port.Port != nil && !hasPort(pod, *port.Port) {
					b.fault(m, "lets in port %s, which its pods have not", port.Port.String())
				}
			}
		}
	}
	for _, rule := range p.Spec.Egress {
		for _, to := range rule.To {
			if to.PodSelector == nil || to.NamespaceSelector != nil {
				continue
			}
			for _, pod := range b.selected(to.PodSelector) {
				for _, port := range rule.Ports {
					if port.Port != nil && !hasPort(pod, *port.Port) {
						b.fault(m, "lets out to port %s, which those pods have not", port.Port.String())
					}
				}
			}
		}
	}
}
