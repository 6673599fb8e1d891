// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/allow"
	"github.com/capstan-dev/capstan/function/placement"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// setting that has the lists.
const setting = "algorithm.allowed"

// Allowed returns what a spec with its defaults names and the platform does not allow in the namespace of its Algorithm.
func Allowed(namespace string, s v1alpha1.AlgorithmSpec, settings inputv1alpha1.AlgorithmSettings) field.ErrorList {
	var errs field.ErrorList
	refuse := func(at *field.Path, value, why string) {
		if why != "" {
			errs = append(errs, field.Invalid(at, value, why))
		}
	}
	list := func(name string, entries []inputv1alpha1.Allowed) allow.List {
		return allow.List{Setting: setting + "." + name, Namespace: namespace, Entries: entries}
	}
	may, pod := settings.Allowed, spec.Child("pod")
	if r := s.Route; r != nil {
		refuse(spec.Child("route", "host"), r.Host, list("hosts", may.Hosts).Host(r.Host))
		if r.Gateway != nil {
			gateways := list("gateways", may.Gateways)
			if g := settings.Gateway; g != nil {
				gateways.Own = []string{gatewayOf(namespace, *g)}
			}
			name := gatewayOf(namespace, *r.Gateway)
			refuse(spec.Child("route", "gateway"), name, gateways.Name(name))
		}
	}
	if account := s.Pod.ServiceAccountName; account != "" {
		refuse(pod.Child("serviceAccountName"), account, list("serviceAccounts", may.ServiceAccounts).Name(account))
	}
	lists := placement.Lists{Setting: setting, Namespace: namespace, PriorityClasses: may.PriorityClasses, Tolerations: may.Tolerations}
	return append(errs, lists.Allowed(pod, &s.Pod.Scheduling)...)
}

// gatewayOf an Algorithm as namespace/name.
func gatewayOf(namespace string, g v1alpha1.GatewayReference) string {
	return cmp.Or(g.Namespace, namespace) + "/" + g.Name
}
